//! Follows the endpoints file, the detection rules and the method costs. A bad file changes nothing.

use crate::checker::Checker;
use config::{Env, Finding};
use fleet::Fleet;
use fleet::tables::Tables;
use fleet::watch::Watch;
use std::path::Path;
use std::sync::Arc;

/// Reloads until the process ends.
pub(crate) async fn run(checker: Arc<Checker>, env: Env) {
    let tables = Tables::files(&checker.settings).map(Path::to_path_buf);
    let files = std::iter::once(checker.settings.config_file.clone()).chain(tables).collect();
    let Ok(mut watch) = Watch::new(files) else { return };
    loop {
        watch.changed().await;
        match build(&checker, &env) {
            Ok(fleet) => {
                checker.fleet.store(Arc::new(fleet));
                tracing::info!(file = %checker.settings.config_file.display(), "endpoints reloaded");
            }
            Err(findings) => {
                findings.iter().for_each(|finding| tracing::warn!(%finding, "endpoints not reloaded"));
            }
        }
    }
}

fn build(checker: &Checker, env: &Env) -> Result<Fleet, Vec<Finding>> {
    let (config, warnings) = config::reload_fleet(&checker.settings, env)?;
    let (before, now) = (checker.fleet.load_full(), fleet::clock::unix_ms());
    let tables = Arc::new(Tables::load(&checker.settings)?);
    let built =
        fleet::build(&config, tables, &checker.settings, &checker.memory, &before, &checker.gates, now);
    warnings.iter().for_each(|finding| tracing::warn!(%finding, "configuration"));
    built.map_err(|error| vec![Finding::error("endpoints file", error.to_string())])
}
