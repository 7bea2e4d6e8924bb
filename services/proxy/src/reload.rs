//! Follows the endpoints file: on a change, or on SIGHUP, a new fleet for new requests. A bad file changes nothing.

use crate::app::App;
use crate::fleet;
use crate::metrics;
use ::metrics::{counter, gauge};
use config::{Env, Finding};
use notify::{RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Editors and deployments write in several steps.
const SETTLE: Duration = Duration::from_millis(200);
/// Some file systems announce nothing.
const LOOK: Duration = Duration::from_secs(10);

/// Reloads until the process ends.
pub(crate) async fn run(app: Arc<App>, env: Env) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    let (changed, mut changes) = mpsc::channel(1);
    let _watcher = watch(&app.settings.config_file, changed);
    let mut text = read(&app.settings.config_file);
    let mut look = tokio::time::interval(LOOK);
    gauge!(metrics::RELOAD_OK).set(1.0);
    loop {
        let asked = tokio::select! {
            _ = hangup.recv() => true,
            _ = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                while changes.try_recv().is_ok() {}
                false
            }
            _ = look.tick() => false,
        };
        let now = read(&app.settings.config_file);
        if asked || now != text {
            text = now;
            reload(&app, &env);
        }
    }
}

fn read(path: &Path) -> Option<String> {
    config::read_file(path).ok()
}

/// Watches the folder: a file that is replaced is another file. Without a watcher the file is looked at now and
/// then.
fn watch(file: &Path, changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
    let folder: PathBuf = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.into(),
        _ => ".".into(),
    };
    // A full queue says already what this would say.
    let told = move |_: notify::Result<notify::Event>| changed.try_send(()).unwrap_or(());
    let watching = notify::recommended_watcher(told).and_then(|mut watcher| {
        watcher.watch(&folder, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    match watching {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, folder = %folder.display(), "cannot watch for changes; looking every 10 s");
            None
        }
    }
}

fn reload(app: &App, env: &Env) {
    let outcome = config::reload_fleet(&app.settings, env).and_then(|(config, warnings)| {
        let before = app.fleet.load_full();
        let built = fleet::build(&config, &app.settings, &app.memory, &before, crate::clock::unix_ms());
        built
            .map(|fleet| (fleet, warnings))
            .map_err(|error| vec![Finding::error("endpoints file", error.to_string())])
    });
    match outcome {
        Ok((fleet, warnings)) => {
            warnings.iter().for_each(|finding| tracing::warn!(%finding, "configuration"));
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
