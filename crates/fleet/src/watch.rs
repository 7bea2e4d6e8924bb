//! Tells when files changed, or when somebody sent SIGHUP.

use notify::{RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Interval;

/// Editors and deployments write in several steps.
const SETTLE: Duration = Duration::from_millis(200);
/// Some file systems announce nothing.
const LOOK: Duration = Duration::from_secs(10);

/// Files that are followed.
pub struct Watch {
    files: Vec<PathBuf>,
    texts: Vec<Option<String>>,
    hangup: Signal,
    changes: mpsc::Receiver<()>,
    look: Interval,
    _watcher: Option<notify::RecommendedWatcher>,
}

impl Watch {
    /// Follows these files from what they are now.
    ///
    /// # Errors
    /// Signals cannot be listened for.
    pub fn new(files: Vec<PathBuf>) -> std::io::Result<Watch> {
        let (changed, changes) = mpsc::channel(1);
        let (watcher, texts) = (watch(&files, changed), read(&files));
        let hangup = signal(SignalKind::hangup())?;
        Ok(Watch { files, texts, hangup, changes, look: tokio::time::interval(LOOK), _watcher: watcher })
    }

    /// Waits until a file is another one, or until SIGHUP.
    pub async fn changed(&mut self) {
        loop {
            let asked = tokio::select! {
                _ = self.hangup.recv() => true,
                Some(()) = self.changes.recv() => {
                    tokio::time::sleep(SETTLE).await;
                    while self.changes.try_recv().is_ok() {}
                    false
                }
                _ = self.look.tick() => false,
            };
            let now = read(&self.files);
            if asked || now != self.texts {
                self.texts = now;
                return;
            }
        }
    }
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
