//! `--check`: everything is validated strictly, and what would be served is shown.

use super::{BAD_CONFIGURATION, print_findings};
use crate::start;
use config::{Config, EndpointConfig, Env, Finding, Options};
use std::process::ExitCode;

pub(super) fn check(options: &Options, env: &Env) -> ExitCode {
    let config = match config::load(options.clone(), env, true) {
        Ok(config) => config,
        Err(findings) => return refuse(&start::everything(findings, options, env)),
    };
    if let Err(findings) = start::sound(&config.settings, env) {
        return refuse(&findings);
    }
    print_findings(&config.warnings);
    print!("{}", table(&config));
    ExitCode::SUCCESS
}

fn refuse(findings: &[Finding]) -> ExitCode {
    print_findings(findings);
    eprintln!("{} problem(s) found", findings.len());
    ExitCode::from(BAD_CONFIGURATION)
}

/// Chains and endpoints in columns.
fn table(config: &Config) -> String {
    let mut rows = vec![["CHAIN", "ENDPOINT", "ROLE", "TYPE", "HTTP", "WS", "CEILING"].map(str::to_owned)];
    for (chain, endpoint) in config.fleet.endpoints() {
        let host = |url: &Option<config::SecretUrl>| url.as_ref().map_or("-".into(), ToString::to_string);
        rows.push([
            chain.to_owned(),
            endpoint.id.clone(),
            endpoint.role.as_str().to_owned(),
            if endpoint.archive { "archive" } else { "full" }.to_owned(),
            host(&endpoint.http_url),
            host(&endpoint.ws_url),
            ceiling(endpoint),
        ]);
    }
    let widths: Vec<usize> =
        (0..7).map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn ceiling(endpoint: &EndpointConfig) -> String {
    if endpoint.capacity.is_empty() {
        return "learned".into();
    }
    let one = |capacity: &config::Capacity| {
        let requests = capacity.max_requests.map(|n| format!("{n}"));
        let units = capacity.max_compute_units.map(|n| format!("{n} CU"));
        let amount: Vec<String> = [requests, units].into_iter().flatten().collect();
        format!("{} / {} s", amount.join(" and "), capacity.window.as_secs())
    };
    endpoint.capacity.iter().map(one).collect::<Vec<_>>().join(", ")
}
