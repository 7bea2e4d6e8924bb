//! From a command line to a running proxy: load, say what was found, bind, run.

use crate::app::{self, Bound, Configured};
use crate::caller::Callers;
use crate::cli::{BAD_CONFIGURATION, print_findings};
use crate::flags::Provider;
use crate::fleet::{self, Fleet};
use crate::gates::Gates;
use crate::tables::{self, Tables};
use anyhow::Context;
use config::{Config, DegradedMode, Env, Finding, LogFormat, Options, Settings};
use detect::Rules;
use std::process::ExitCode;
use std::sync::Arc;
use store::{ClientLimits, Lost, Memory, Valkey};
use telemetry::{logs, registry::Registry};

/// Serves until told to stop. `bound` is called once the ports are known.
pub(crate) fn serve(options: &Options, env: Env, strict: bool, bound: Option<fn(&Bound)>) -> ExitCode {
    let config = match config::load(options.clone(), &env, strict) {
        Ok(config) => config,
        Err(findings) => {
            print_findings(&everything(findings, options, &env));
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    logs::init(config.settings.log_level.as_str(), config.settings.log_format == LogFormat::Json);
    config.warnings.iter().for_each(|finding| tracing::warn!(%finding, "configuration"));
    let sound = match sound(&config.settings, &env) {
        Ok(sound) => sound,
        Err(findings) => {
            print_findings(&findings);
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    match run(config, sound, env, bound) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "cannot go on");
            ExitCode::FAILURE
        }
    }
}

/// What settings name beyond the configuration itself, as far as that can be seen without the network.
pub(crate) struct Sound {
    rules: Rules,
    flags: Provider,
    valkey: Option<Valkey>,
}

/// Makes it, or finds all that cannot be used.
pub(crate) fn sound(settings: &Settings, env: &Env) -> Result<Sound, Vec<Finding>> {
    match (tables::rules(settings), Provider::new(settings, env), fleet::shared_store(settings)) {
        (Ok(rules), Ok(flags), Ok(valkey)) => Ok(Sound { rules, flags, valkey }),
        (rules, flags, valkey) => {
            Err([rules.err(), flags.err(), valkey.err()].into_iter().flatten().collect())
        }
    }
}

/// What is wrong with a configuration that cannot be used, and with what it names beyond itself, so that nobody has to
/// correct the one to be told of the other.
pub(crate) fn everything(mut findings: Vec<Finding>, options: &Options, env: &Env) -> Vec<Finding> {
    let (settings, _) = config::load_settings(options, env);
    let mut unsound = sound(&settings, env).err().unwrap_or_default();
    let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
    unsound.retain(|more| !said.iter().any(|finding| finding.contains(&more.path)));
    findings.append(&mut unsound);
    findings
}

fn run(config: Config, sound: Sound, env: Env, bound: Option<fn(&Bound)>) -> anyhow::Result<()> {
    let Sound { rules, flags, valkey } = sound;
    let Config { settings, fleet, method_costs, clients, .. } = config;
    // Each connection is a descriptor; what the system allows is ours to use.
    let descriptors = rlimit::increase_nofile_limit(u64::MAX).unwrap_or(0);
    let memory = valkey.as_ref().map_or_else(Memory::default, |valkey| Memory::shared(valkey.sharing()));
    let limits = Arc::new(limits(&settings, valkey.as_ref()));
    let (before, gates) = (Fleet::default(), Gates::new(&settings));
    let built = fleet::build(
        &fleet,
        Arc::new(Tables::new(rules, method_costs)),
        &settings,
        &memory,
        &before,
        &gates,
        crate::clock::unix_ms(),
    )?;
    let callers = clients.map(|clients| Callers::new(clients, &limits));
    for chain in built.chains() {
        let endpoints: Vec<&str> = chain.endpoints.iter().map(|endpoint| &*endpoint.id).collect();
        tracing::info!(chain = %chain.name, endpoints = endpoints.join(", "), "serving");
    }
    tracing::info!(store = settings.store_backend.as_str(), descriptors, "starting");
    let registry = Registry::install().context("metrics")?;
    crate::metrics::describe(registry.histograms());
    let sockets = Bound::bind(&settings)?;
    if let Some(tell) = bound {
        tell(&sockets);
    }
    app::run(
        Configured { settings, fleet: built, gates, memory, callers, limits, valkey },
        flags,
        sockets,
        env,
        registry,
    )
}

/// Where limits of clients are counted: with all that share the store, if there are any.
fn limits(settings: &Settings, valkey: Option<&Valkey>) -> ClientLimits {
    let lost = Lost {
        grace: settings.limits_degraded_grace,
        denies: settings.limits_degraded_mode == DegradedMode::Deny,
        slot_life: settings.limits_slot_ttl,
    };
    match valkey {
        Some(valkey) if settings.clients_file.is_some() => {
            ClientLimits::shared(crate::clock::unix_ms, valkey, lost)
        }
        _ => ClientLimits::alone(crate::clock::unix_ms),
    }
}
