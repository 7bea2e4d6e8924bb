//! How log lines look and which of them are written.

use std::io::IsTerminal;
use tracing_subscriber::{EnvFilter, fmt};

/// Libraries that speak of every lost connection several times; who uses them says it once.
const TALKATIVE: [&str; 3] = ["fred", "launchdarkly_server_sdk", "eventsource_client"];

/// Installs the process's log. `level` is one of `trace`, `debug`, `info`, `warn`, `error`, `disabled`,
/// or a filter such as `info,headgate_proxy=debug`; what cannot be read counts as `info`.
/// `json` writes one object a line.
pub fn init(level: &str, json: bool) {
    let level = if level.eq_ignore_ascii_case("disabled") { "off" } else { level };
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = TALKATIVE.iter().filter(|library| !level.contains(*library)).fold(filter, quiet);
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second installation (tests in one process) keeps the first.
    if json {
        let _ = log.json().flatten_event(true).with_current_span(false).try_init();
    } else {
        let _ = log.with_ansi(std::io::stderr().is_terminal()).with_target(false).try_init();
    }
}

fn quiet(filter: EnvFilter, library: &&str) -> EnvFilter {
    match format!("{library}=off").parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    }
}
