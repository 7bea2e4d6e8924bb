//! Follows the endpoints file, the clients file, the detection rules and the method costs: on a change, or on SIGHUP, a new fleet for
//! new requests. A bad file changes nothing.

use crate::app::App;
use crate::caller::Callers;
use crate::fleet;
use crate::metrics;
use crate::tables::Tables;
use ::metrics::{counter, gauge};
use config::{Env, Finding};
use notify::{RecursiveMode, Watcher};
use std::collections::BTreeSet;
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
    let files: Vec<PathBuf> = followed(&app.settings);
    let _watcher = watch(&files, changed);
    let mut texts = read(&files);
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
        let now = read(&files);
        if asked || now != texts {
            texts = now;
            reload(&app, &env);
        }
    }
}

/// The endpoints file, the clients file and what extends our own tables.
fn followed(settings: &config::Settings) -> Vec<PathBuf> {
    let tables = Tables::files(settings).map(Path::to_path_buf);
    let clients = settings.clients_file.clone();
    std::iter::once(settings.config_file.clone()).chain(clients).chain(tables).collect()
}

fn read(files: &[PathBuf]) -> Vec<Option<String>> {
    files.iter().map(|file| config::read_file(file).ok()).collect()
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Watches the folders: a file that is replaced is another file. Without a watcher the files are looked at now and
/// then.
fn watch(files: &[PathBuf], changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
    let folders: BTreeSet<&Path> = files.iter().map(|file| folder(file)).collect();
    // A full queue says already what this would say.
    let told = move |_: notify::Result<notify::Event>| changed.try_send(()).unwrap_or(());
    let watching = notify::recommended_watcher(told).and_then(|mut watcher| {
        folders.iter().try_for_each(|folder| watcher.watch(folder, RecursiveMode::NonRecursive))?;
        Ok(watcher)
    });
    match watching {
        Ok(watcher) => Some(watcher),
        Err(error) => {
            tracing::warn!(%error, ?folders, "cannot watch for changes; looking every 10 s");
            None
        }
    }
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
