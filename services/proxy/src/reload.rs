//! Follows the endpoints file, the clients file, the detection rules and the method costs: on a change, or on SIGHUP, a new fleet for
//! new requests. A bad file changes nothing.

use crate::app::App;
use crate::caller::Callers;
use crate::fleet;
use crate::metrics;
use crate::tables::Tables;
use ::metrics::{counter, gauge};
use config::{Env, Finding};
use fleet::watch::Watch;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reloads until the process ends.
pub(crate) async fn run(app: Arc<App>, env: Env) {
    let Ok(mut watch) = Watch::new(followed(&app.settings)) else { return };
    gauge!(metrics::RELOAD_OK).set(1.0);
    loop {
        watch.changed().await;
        reload(&app, &env);
    }
}

/// The endpoints file, the clients file and what extends our own tables.
fn followed(settings: &config::Settings) -> Vec<PathBuf> {
    let tables = Tables::files(settings).map(Path::to_path_buf);
    let clients = settings.clients_file.clone();
    std::iter::once(settings.config_file.clone()).chain(clients).chain(tables).collect()
}

fn reload(app: &App, env: &Env) {
    let outcome = config::reload_fleet(&app.settings, env).and_then(|(config, mut warnings)| {
        let (clients, findings) = config::load_clients(&app.settings, &config);
        warnings.extend(findings);
        if warnings.iter().any(Finding::is_error) {
            return Err(warnings);
        }
        let before = app.fleet.load_full();
        let tables = Arc::new(Tables::load(&app.settings)?);
        let now = crate::clock::unix_ms();
        let built = fleet::build(&config, tables, &app.settings, &app.memory, &before, &app.gates, now);
        built
            .map(|fleet| (fleet, clients, warnings))
            .map_err(|error| vec![Finding::error("endpoints file", error.to_string())])
    });
    match outcome {
        Ok((fleet, clients, warnings)) => {
            warnings.iter().for_each(|finding| tracing::warn!(%finding, "configuration"));
            app.gates.keep_only(|chain| fleet.chain(chain).is_some());
            // A withdrawn key first: neither needs the other, both were found good.
            app.callers.store(clients.map(|clients| Arc::new(Callers::new(clients, &app.limits))));
            app.fleet.store(Arc::new(fleet));
            tracing::info!(file = %app.settings.config_file.display(), "endpoints reloaded");
        }
        Err(findings) => {
            findings.iter().for_each(|finding| tracing::warn!(%finding, "endpoints not reloaded"));
            counter!(metrics::RELOADS, "result" => "refused").increment(1);
            gauge!(metrics::RELOAD_OK).set(0.0);
            return;
        }
    }
    counter!(metrics::RELOADS, "result" => "ok").increment(1);
    gauge!(metrics::RELOAD_OK).set(1.0);
}
