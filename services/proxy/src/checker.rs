//! Whether the process is ready is asked in the background as well: once ready is ready, also if nobody asked at the
//! time. With `READY_STRICT` the separate checker's own `/ready` is asked here, so that no probe of ours waits for it.

use crate::app::App;
use crate::pages;
use crate::upstream::{Connector, Target, get_status};
use config::SecretUrl;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How often readiness is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often the checker is asked, and how long it has to answer.
const ASK: Duration = Duration::from_secs(2);

/// Looks until the process ends.
pub(crate) async fn follow(app: Arc<App>, connector: Connector) {
    let asking = ask_checker(&app, &connector);
    tokio::pin!(asking);
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = &mut asking => return,
            _ = look.tick() => pages::note_readiness(&app),
        }
    }
}

async fn ask_checker(app: &App, connector: &Connector) {
    let Some(target) =
        app.asks_checker().then(|| ready_page(&app.settings.health_checker_service_url)).flatten()
    else {
        return std::future::pending().await;
    };
    let mut due = tokio::time::interval(ASK);
    loop {
        due.tick().await;
        let asked = tokio::time::timeout(ASK, get_status(connector, &target)).await;
        let ready = matches!(asked, Ok(Ok(200)));
        if app.checker_ready.swap(ready, Relaxed) != ready {
            tracing::info!(ready, checker = ?target, "health checker");
        }
    }
}

fn ready_page(service: &SecretUrl) -> Option<Target> {
    let text = format!("{}/ready", service.expose().as_str().trim_end_matches('/'));
    let target = SecretUrl::parse(&text, &["http", "https"]).ok().and_then(|url| Target::new(&url, &[]).ok());
    if target.is_none() {
        tracing::warn!("HEALTH_CHECKER_SERVICE_URL cannot be asked: not ready until it is changed");
    }
    target
}
