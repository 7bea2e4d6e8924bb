//! Which source the settings name. What is wrong with a setting is found here, at the start; that a source cannot be
//! reached never is.

use super::launchdarkly::{self, LaunchDarkly};
use super::ofrep::{self, Ofrep};
use super::{Read, Values, file, value};
use crate::app::App;
use crate::upstream::Connector;
use config::{Env, Finding, FlagsProvider, Secret, SecretUrl, Settings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What every variable that is a flag begins with.
pub(super) const VARIABLE: &str = "HEADGATE_FLAG_";

/// A source as the settings describe it.
pub(crate) enum Provider {
    Static,
    /// The variables at the start.
    Environment(BTreeMap<String, String>),
    File(PathBuf),
    Valkey,
    LaunchDarkly {
        key: Secret,
        relay: Option<SecretUrl>,
    },
    Ofrep(SecretUrl),
}

/// A source that can be read.
pub(crate) enum Source {
    /// Nothing is tightened.
    Static,
    Environment(BTreeMap<String, String>),
    File(PathBuf),
    Valkey(Arc<App>),
    LaunchDarkly(Box<LaunchDarkly>),
    Ofrep(Box<Ofrep>),
}

impl Provider {
    /// # Errors
    /// What the settings name cannot be used.
    pub(crate) fn new(settings: &Settings, env: &Env) -> Result<Provider, Finding> {
        let missing = |name: &str| Finding::error(name, "not set");
        Ok(match settings.headgate_flags_provider {
            FlagsProvider::Static => Provider::Static,
            FlagsProvider::Environment => Provider::Environment(variables(env)),
            FlagsProvider::File => {
                let path =
                    settings.headgate_flags_file.clone().ok_or_else(|| missing("HEADGATE_FLAGS_FILE"))?;
                file::read(&path).map_err(|error| Finding::error("HEADGATE_FLAGS_FILE", error))?;
                Provider::File(path)
            }
            FlagsProvider::Valkey => Provider::Valkey,
            FlagsProvider::LaunchDarkly => {
                let name = "HEADGATE_LAUNCHDARKLY_SDK_KEY";
                let key = settings.headgate_launchdarkly_sdk_key.clone().ok_or_else(|| missing(name))?;
                launchdarkly::check(&key).map_err(|error| Finding::error(name, error))?;
                Provider::LaunchDarkly { key, relay: settings.headgate_launchdarkly_relay_url.clone() }
            }
            FlagsProvider::Ofrep => {
                let name = "HEADGATE_OFREP_URL";
                let url = settings.headgate_ofrep_url.as_ref().ok_or_else(|| missing(name))?;
                Provider::Ofrep(ofrep::endpoint(url).map_err(|error| Finding::error(name, error))?)
            }
        })
    }

    /// Makes ready what is needed for reading.
    pub(crate) fn open(self, app: &Arc<App>, connector: &Connector) -> anyhow::Result<Source> {
        Ok(match self {
            Provider::Static => Source::Static,
            Provider::Environment(variables) => Source::Environment(variables),
            Provider::File(path) => Source::File(path),
            Provider::Valkey => Source::Valkey(Arc::clone(app)),
            Provider::LaunchDarkly { key, relay } => {
                Source::LaunchDarkly(Box::new(LaunchDarkly::start(&key, relay.as_ref(), connector)?))
            }
            Provider::Ofrep(url) => Source::Ofrep(Box::new(Ofrep::new(url, connector.clone()))),
        })
    }
}

impl Read for Source {
    async fn read(&mut self, flags: &[Box<str>]) -> Result<Values, String> {
        match self {
            Source::Static => Ok(Values::new()),
            Source::Environment(variables) => Ok(of_variables(variables, flags)),
            Source::File(path) => file::read(path),
            Source::Valkey(app) => of_valkey(app).await,
            Source::LaunchDarkly(client) => client.read(flags),
            Source::Ofrep(service) => service.read().await,
        }
    }

    async fn close(&mut self) {
        match self {
            Source::LaunchDarkly(client) => client.close().await,
            Source::Static
            | Source::Environment(_)
            | Source::File(_)
            | Source::Valkey(_)
            | Source::Ofrep(_) => {}
        }
    }
}

async fn of_valkey(app: &App) -> Result<Values, String> {
    let valkey = app.valkey.as_ref().ok_or("no Valkey is configured")?;
    let fields = valkey.flags().await.map_err(|error| error.to_string())?;
    Ok(fields.into_iter().map(|(flag, text)| (flag, value::of_text(&text))).collect())
}

fn variables(env: &Env) -> BTreeMap<String, String> {
    let ours = env.iter().filter(|(name, text)| name.starts_with(VARIABLE) && !text.trim().is_empty());
    ours.map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// The values of `flags`, and under their own names those variables that are none of them.
fn of_variables(variables: &BTreeMap<String, String>, flags: &[Box<str>]) -> Values {
    let known: BTreeMap<String, &str> = flags.iter().map(|flag| (variable(flag), &**flag)).collect();
    let named = |name: &str| known.get(name).copied().unwrap_or(name).to_owned();
    variables.iter().map(|(name, text)| (named(name), value::of_text(text))).collect()
}

/// `HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM_MAIN` for `headgate.concurrency.upstream.main`.
fn variable(flag: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{VARIABLE}{}", flag.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Kills: a name that differs from the one that is documented, and one that a shell cannot set.
    #[test]
    fn a_flag_is_a_variable() {
        for (flag, expected) in [
            ("headgate.concurrency.upstream.main", "HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM_MAIN"),
            ("headgate.concurrency.upstream.base-1", "HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM_BASE_1"),
            (
                "headgate.concurrency.websocket.handshake",
                "HEADGATE_FLAG_HEADGATE_CONCURRENCY_WEBSOCKET_HANDSHAKE",
            ),
        ] {
            assert_eq!(variable(flag), expected);
        }
    }

    /// Kills: the selector, or another variable of ours, that is taken for a flag.
    #[test]
    fn variables_that_are_flags_are_found() {
        let env = Env::new(
            [
                ("HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM", "7"),
                ("HEADGATE_FLAG_HEADGATE_CONCURRENCY_WEBSOCKET", " "),
                ("HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTRAEM", "7"),
                ("HEADGATE_FLAGS_PROVIDER", "environment"),
            ],
            "",
        );
        let flags = ["headgate.concurrency.upstream".into(), "headgate.concurrency.websocket".into()];
        let values = of_variables(&variables(&env), &flags);
        assert_eq!(
            values,
            Values::from([
                ("headgate.concurrency.upstream".to_owned(), json!(7)),
                ("HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTRAEM".to_owned(), json!(7)),
            ])
        );
    }
}
