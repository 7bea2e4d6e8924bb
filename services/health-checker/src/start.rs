//! From a command line to a running checker: load, say what was found, bind, run.

use crate::checker::{self, Checker};
use crate::cli::{BAD_CONFIGURATION, print_findings};
use anyhow::Context;
use config::{Config, Env, Finding, LogFormat, Options, Settings};
use detect::Rules;
use fleet::Fleet;
use fleet::gates::Gates;
use fleet::tables::{self, Tables};
use std::process::ExitCode;
use std::sync::Arc;
use store::{Memory, Valkey};
use telemetry::{logs, registry::Registry};

/// Checks until told to stop.
pub(crate) fn serve(options: Options, env: Env, strict: bool) -> ExitCode {
    let config = match config::load(options, &env, strict) {
        Ok(config) => config,
        Err(findings) => return refuse(&findings),
    };
    logs::init(config.settings.log_level.as_str(), config.settings.log_format == LogFormat::Json);
    config.warnings.iter().for_each(|finding| tracing::warn!(%finding, "configuration"));
    if !config.settings.standalone_health_checks {
        tracing::info!(
            "STANDALONE_HEALTH_CHECKS is false: the proxies check by themselves, nothing to do here"
        );
        return ExitCode::SUCCESS;
    }
    let (rules, valkey) = match sound(&config.settings) {
        Ok(sound) => sound,
        Err(finding) => return refuse(&[finding]),
    };
    match run(config, rules, valkey, env) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "cannot go on");
            ExitCode::FAILURE
        }
    }
}

/// What a checker needs beyond a good configuration: two ports, somebody to tell, and rules that can be read.
pub(crate) fn sound(settings: &Settings) -> Result<(Rules, Valkey), Finding> {
    let port = settings.health_checker_server_port;
    if settings.metrics_enabled && settings.metrics_port == port && port != 0 {
        return Err(Finding::error("METRICS_PORT", "the same port as HEALTH_CHECKER_SERVER_PORT"));
    }
    let Some(valkey) = fleet::shared_store(settings)? else {
        let why = "a checker that shares nothing tells nobody: name the proxies' Valkey (VALKEY_URL or VALKEY_HOST), or \
                   run the proxy alone, which checks by itself";
        return Err(Finding::error("STORE_BACKEND", why));
    };
    Ok((tables::rules(settings)?, valkey))
}

fn refuse(findings: &[Finding]) -> ExitCode {
    print_findings(findings);
    ExitCode::from(BAD_CONFIGURATION)
}

fn run(config: Config, rules: Rules, valkey: Valkey, env: Env) -> anyhow::Result<()> {
    let Config { settings, fleet, method_costs, .. } = config;
    let (memory, gates) = (Memory::shared(valkey.sharing()), Gates::new(&settings));
    let tables = Arc::new(Tables::new(rules, method_costs));
    let now = fleet::clock::unix_ms();
    let built = fleet::build(&fleet, tables, &settings, &memory, &Fleet::default(), &gates, now)?;
    for chain in built.chains() {
        let endpoints: Vec<&str> = chain.endpoints.iter().map(|endpoint| &*endpoint.id).collect();
        tracing::info!(chain = %chain.name, endpoints = endpoints.join(", "), "checking");
    }
    let registry = Registry::install().context("metrics")?;
    prober::metrics::describe(registry.histograms());
    let checker = Checker::new(settings, built, gates, memory, valkey, registry.histograms().clone());
    checker::run(&checker, env, registry)
}
