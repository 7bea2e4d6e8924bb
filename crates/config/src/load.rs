//! From a command line and an environment to a configuration: reads the files, puts the layers together,
//! and decides whether the process may start with what came out.

use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clients::Definition;

use crate::clients::{parse_clients, unserved_chains};
use crate::document::read_document;
use crate::env::Env;
use crate::finding::{Finding, Severity};
use crate::fleet::{FILE, FleetConfig, parse_fleet};
use crate::layers::Layers;
use crate::method_costs::MethodCosts;
use crate::options::Options;
use crate::settings::{FlagsProvider, Settings, StoreBackend};

/// Everything that was configured.
#[derive(Clone, Debug)]
pub struct Config {
    pub settings: Settings,
    pub fleet: FleetConfig,
    pub method_costs: MethodCosts,
    /// `None`: no clients file, so that everybody may, without limits.
    pub clients: Option<Definition>,
    /// What is wrong but does not keep the process from starting.
    pub warnings: Vec<Finding>,
}

/// Reads everything. The error holds every finding, warnings too; it is returned if one of them is an
/// error, and with `strict` if there is any finding at all (each then counts as an error).
///
/// Reads `headgate.toml` (or what `--settings` names), the endpoints file, the files that values refer
/// to as `${file:…}`, the clients file and the method costs; of other files that settings name only whether they can be
/// read.
#[expect(clippy::needless_pass_by_value, reason = "a command line is read once")]
pub fn load(options: Options, env: &Env, strict: bool) -> Result<Config, Vec<Finding>> {
    let (settings, mut findings) = load_settings(&options, env);
    let (method_costs, more) = load_method_costs(&settings);
    findings.extend(more);
    findings.extend(unreadable_files(&settings));
    let fleet = match reload_fleet(&settings, env) {
        Ok((fleet, more)) => {
            findings.extend(more);
            fleet
        }
        Err(more) => {
            findings.extend(more);
            FleetConfig::default()
        }
    };
    let (clients, more) = load_clients(&settings, &fleet);
    findings.extend(more);
    let warnings = judged(findings, strict)?;
    Ok(Config { settings, fleet, method_costs, clients, warnings })
}

/// The settings alone, for a service that needs no endpoints file, with everything that is wrong. An
/// error among the findings means they must not be used.
pub fn load_settings(options: &Options, env: &Env) -> (Settings, Vec<Finding>) {
    let mut unreadable = None;
    let name = options.settings_file().unwrap_or(Path::new("headgate.toml"));
    let text = match read_file(name) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound && options.settings_file().is_none() => None,
        Err(error) => {
            unreadable = Some(Finding::error(name.display().to_string(), cannot_read(&error)));
            None
        }
    };
    let (settings, mut findings) = resolve(options, env, text.as_deref().map(|text| (name, text)));
    findings.extend(unreadable);
    (settings, findings)
}

/// Reads the endpoints file again. On success what comes with the fleet are warnings; on failure the
/// fleet that is in use must stay.
pub fn reload_fleet(settings: &Settings, env: &Env) -> Result<(FleetConfig, Vec<Finding>), Vec<Finding>> {
    let name = settings.config_file.display().to_string();
    let text = read_file(&settings.config_file).map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound;
        let hint = if missing { "; configs/endpoints-example.json is one to begin with" } else { "" };
        vec![Finding::error(&name, cannot_read(&error) + hint)]
    })?;
    // The predecessor wrote defaults into its environment, so that `${SERVER_PORT}` in a URL worked.
    let filled = env.filled_from(settings.shown().into_iter().map(|(name, text)| (name.to_owned(), text)));
    let (fleet, mut findings) = parse_fleet(&text, &filled, &read_file);
    for finding in &mut findings {
        if finding.path == FILE {
            finding.path.clone_from(&name);
        }
    }
    match findings.iter().any(Finding::is_error) {
        true => Err(findings),
        false => Ok((fleet, findings)),
    }
}

/// How every file of a configuration is read: at most 64 MiB of UTF-8 text.
pub fn read_file(path: &Path) -> io::Result<String> {
    use io::Read as _;
    let mut text = String::new();
    let largest = 64 << 20;
    std::fs::File::open(path)?.take(largest + 1).read_to_string(&mut text)?;
    match text.len() as u64 > largest {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 64 MiB")),
        false => Ok(text),
    }
}

/// The settings from the three layers; pure.
fn resolve(options: &Options, env: &Env, file: Option<(&Path, &str)>) -> (Settings, Vec<Finding>) {
    let name = file.map(|(path, _)| path.display().to_string());
    let mut layers = Layers::new(options, env, name.as_deref().zip(file.map(|(_, text)| text)));
    let mut settings = Settings::read(&mut layers);
    if !layers.gives("STORE_BACKEND") && (layers.gives("VALKEY_URL") || layers.gives("VALKEY_HOST")) {
        settings.store_backend = StoreBackend::Valkey;
    }
    // Nothing may be read without a pause in between.
    settings.health_cache_ttl = settings.health_cache_ttl.max(Duration::from_secs(1));
    let contradictions = contradictions(&settings, &layers);
    let mut findings = layers.findings;
    findings.extend(contradictions);
    (settings, findings)
}

/// Settings that cannot all hold.
fn contradictions(settings: &Settings, layers: &Layers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut contradiction =
        |name: &str, message: &str| findings.push(Finding::error(layers.path(name), message));
    if settings.metrics_enabled && settings.metrics_port == settings.server_port && settings.server_port != 0
    {
        contradiction("METRICS_PORT", "the same port as SERVER_PORT");
    }
    match settings.headgate_flags_provider {
        FlagsProvider::LaunchDarkly if settings.headgate_launchdarkly_sdk_key.is_none() => {
            contradiction("HEADGATE_FLAGS_PROVIDER", "launchdarkly needs HEADGATE_LAUNCHDARKLY_SDK_KEY");
        }
        FlagsProvider::Ofrep if settings.headgate_ofrep_url.is_none() => {
            contradiction("HEADGATE_FLAGS_PROVIDER", "ofrep needs HEADGATE_OFREP_URL");
        }
        FlagsProvider::File if settings.headgate_flags_file.is_none() => {
            contradiction("HEADGATE_FLAGS_PROVIDER", "file needs HEADGATE_FLAGS_FILE");
        }
        FlagsProvider::Valkey if settings.store_backend == StoreBackend::Memory => {
            contradiction("HEADGATE_FLAGS_PROVIDER", "valkey needs STORE_BACKEND=valkey");
        }
        FlagsProvider::Static
        | FlagsProvider::Environment
        | FlagsProvider::File
        | FlagsProvider::Valkey
        | FlagsProvider::LaunchDarkly
        | FlagsProvider::Ofrep => {}
    }
    findings
}

/// Files that are named but cannot be read, of those that others read.
fn unreadable_files(settings: &Settings) -> Vec<Finding> {
    let named = [
        ("RULES_FILE", &settings.rules_file),
        ("VALKEY_CA_FILE", &settings.valkey_ca_file),
        ("HEADGATE_FLAGS_FILE", &settings.headgate_flags_file),
    ];
    let named = named.into_iter().filter_map(|(name, path)| Some((name, path.as_deref()?)));
    named.filter_map(|(name, path)| Some(unreadable(name, path, &read_file(path).err()?))).collect()
}

/// Reads the method costs, now or again; what is wrong stands in the findings, and an error among them means that the
/// costs in use must stay.
pub fn load_method_costs(settings: &Settings) -> (MethodCosts, Vec<Finding>) {
    let Some(path) = &settings.method_costs_file else { return (MethodCosts::builtin(), Vec::new()) };
    match read_document(path) {
        Ok(text) => MethodCosts::parse(&text, &path.display().to_string()),
        Err(error) => (MethodCosts::builtin(), vec![unreadable("METHOD_COSTS_FILE", path, &error)]),
    }
}

/// Reads the clients file, now or again, beside the chains of `fleet`. An error among the
/// findings means that the clients in use must stay, or nobody be served: to go on without would open every gate.
pub fn load_clients(settings: &Settings, fleet: &FleetConfig) -> (Option<Definition>, Vec<Finding>) {
    let Some(path) = &settings.clients_file else { return (None, Vec::new()) };
    match read_document(path) {
        Ok(text) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let now = u64::try_from(now).unwrap_or(u64::MAX);
            let (definition, mut findings) = parse_clients(&text, now);
            findings.extend(unserved_chains(&definition, fleet));
            (Some(definition), findings)
        }
        Err(error) => (None, vec![unreadable("CLIENTS_FILE", path, &error)]),
    }
}

fn unreadable(setting: &str, path: &Path, error: &io::Error) -> Finding {
    Finding::error(setting, format!("{}: {}", path.display(), cannot_read(error)))
}

fn cannot_read(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        return "there is no such file".to_owned();
    }
    if error.kind() == io::ErrorKind::InvalidData {
        return "cannot be read: not UTF-8 text".to_owned();
    }
    if error.kind() == io::ErrorKind::InvalidInput {
        return error.to_string();
    }
    format!("cannot be read: {error}")
}

/// The findings as warnings, or all of them if they keep the process from starting.
fn judged(mut findings: Vec<Finding>, strict: bool) -> Result<Vec<Finding>, Vec<Finding>> {
    if strict {
        findings.iter_mut().for_each(|finding| finding.severity = Severity::Error);
    }
    match findings.iter().any(Finding::is_error) {
        true => Err(findings),
        false => Ok(findings),
    }
}

#[cfg(test)]
mod tests;
