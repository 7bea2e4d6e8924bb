//! How log lines look and which of them are written.

use std::io::IsTerminal;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt, registry};

/// Who of us logs. What libraries tell below `info` is for their authors: requests with their paths and headers, keys
/// among them.
const OURS: [&str; 8] = [
    "fleet",
    "headgate_health_checker",
    "headgate_proxy",
    "health",
    "prober",
    "store",
    "telemetry",
    "upstream",
];

/// Libraries that speak of every lost connection several times; who uses them says it once.
const TALKATIVE: [&str; 3] = ["fred", "launchdarkly_server_sdk", "eventsource_client"];

/// Installs the process's log. `level` is one of `trace`, `debug`, `info`, `warn`, `error`, `disabled`; what cannot be
/// read counts as `info`. `json` writes one object a line.
pub fn init(level: &str, json: bool) {
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match json {
        true => lines.json().flatten_event(true).with_current_span(false).boxed(),
        false => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).boxed(),
    };
    // A second installation (tests in one process) keeps the first.
    let _ = registry().with(filter(level)).with(lines).try_init();
}

fn filter(level: &str) -> Targets {
    let ours = match level.eq_ignore_ascii_case("disabled") {
        true => LevelFilter::OFF,
        false => level.parse().unwrap_or(LevelFilter::INFO),
    };
    Targets::new()
        .with_default(ours.min(LevelFilter::INFO))
        .with_targets(OURS.map(|name| (name, ours)))
        .with_targets(TALKATIVE.map(|library| (library, LevelFilter::OFF)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};
    use tracing_subscriber::filter::LevelFilter as Least;

    /// Kills: libraries that tell requests with their keys as loudly as we were asked to speak; ours that do not.
    #[test]
    fn the_level_is_ours_and_libraries_stop_at_info() {
        for (level, target, loudest) in [
            ("trace", "headgate_proxy::hunt", Least::TRACE),
            ("trace", "tungstenite::handshake::client", Least::INFO),
            ("debug", "store::valkey::link", Least::DEBUG),
            ("debug", "hyper_util::client", Least::INFO),
            ("trace", "fred::router", Least::OFF),
            ("loud", "upstream", Least::INFO),
            ("warn", "rustls", Least::WARN),
            ("warn", "prober::checks", Least::WARN),
            ("disabled", "headgate_proxy", Least::OFF),
            ("disabled", "rustls", Least::OFF),
        ] {
            let shown = filter(level);
            for at in [Least::ERROR, Least::WARN, Least::INFO, Least::DEBUG, Least::TRACE] {
                let one = at.into_level().expect("a level");
                assert_eq!(shown.would_enable(target, &one), at <= loudest, "{level} {target} {one}");
            }
        }
    }

    /// Kills: a crate of ours that logs and is taken for a library.
    #[test]
    fn all_of_us_who_log_are_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["crates", "services"].map(|folder| fs::read_dir(root.join(folder)).expect("a folder"));
        for member in folders.into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            if member.join("src").is_dir() && logs(&member.join("src")) {
                let manifest = fs::read_to_string(member.join("Cargo.toml")).expect("a manifest");
                let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a name");
                let name = name.trim_matches('"').replace('-', "_");
                assert!(OURS.contains(&name.as_str()), "{name} logs and is not listed");
            }
        }
    }

    fn logs(folder: &Path) -> bool {
        let entries: Vec<PathBuf> =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        entries.iter().any(|path| match path.is_dir() {
            true => logs(path),
            false => fs::read_to_string(path).expect("a source").contains("tracing::"),
        })
    }
}
