//! Which layer's text rules for a setting: flag, environment, `headgate.toml`, default. Collects what is
//! wrong with each text and says where it came from; never reads a file.

use std::collections::BTreeMap;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Num, Value};
use figment::{Figment, Metadata, Profile, Provider};

use crate::env::Env;
use crate::finding::{Finding, Severity, did_you_mean, quoted};
use crate::options::Options;
use crate::settings::{Kind, Origin, SETTINGS, Setting, Source};

/// The text that rules for each setting, and the findings so far.
pub(crate) struct Layers {
    ruling: BTreeMap<&'static str, Ruling>,
    pub(crate) findings: Vec<Finding>,
}

struct Ruling {
    text: String,
    layer: String,
}

const FLAG: &str = "flag";
const ENVIRONMENT: &str = "environment";

impl Layers {
    /// Merges the layers; `file` is the name and the text of `headgate.toml`, if there is one.
    pub(crate) fn new(options: &Options, env: &Env, file: Option<(&str, &str)>) -> Self {
        let mut findings = env.findings().to_vec();
        findings.extend(misspelt_variables(env));
        let mut merged = Figment::new();
        if let Some((name, text)) = file {
            merged =
                merged.merge(Texts { layer: name.to_owned(), by_key: file_texts(name, text, &mut findings) });
        }
        let merged = merged
            .merge(Texts { layer: ENVIRONMENT.to_owned(), by_key: texts(|setting| variable(env, setting)) })
            .merge(Texts { layer: FLAG.to_owned(), by_key: texts(|setting| options.given(setting)) });
        Self { ruling: ruling(&merged), findings }
    }

    /// Whether any layer gives `name`, and not as blank.
    pub(crate) fn gives(&self, name: &str) -> bool {
        self.ruling.get(name).is_some_and(|ruling| !ruling.text.trim().is_empty())
    }

    /// Where the value of `name` comes from: `--server-port`, `SERVER_PORT (environment)`,
    /// `headgate.toml: server_port`, or `SERVER_PORT (default)`.
    pub(crate) fn path(&self, name: &str) -> String {
        let setting = SETTINGS.iter().find(|setting| setting.name == name);
        match (self.ruling.get(name).map(|ruling| ruling.layer.as_str()), setting) {
            (Some(FLAG), Some(setting)) => format!("--{}", setting.flag),
            (Some(ENVIRONMENT), _) => format!("{name} ({ENVIRONMENT})"),
            (Some(file), _) => format!("{file}: {}", name.to_ascii_lowercase()),
            (None, _) => format!("{name} (default)"),
        }
    }
}

impl Source for Layers {
    fn text(&self, setting: &Setting) -> Option<&str> {
        self.ruling.get(setting.name).map(|ruling| ruling.text.as_str())
    }

    fn unusable(&mut self, setting: &Setting, message: String) {
        let Some(ruling) = self.ruling.get(setting.name) else { return };
        let severity = severity(setting, ruling);
        let consequence = match (severity, setting.default) {
            (Severity::Error, _) => String::new(),
            (Severity::Warning, "") => "; left unset".to_owned(),
            (Severity::Warning, default) => format!("; the default, {default}, is used"),
        };
        let path = self.path(setting.name);
        self.findings.push(Finding { path, message: message + &consequence, severity });
    }
}

/// An environment that started the predecessor starts us too, numbers and booleans are as lenient for new
/// settings, and a flag that is a number but out of range did start it as well. All else stops.
fn severity(setting: &Setting, ruling: &Ruling) -> Severity {
    let measured = match setting.kind {
        Kind::Bool | Kind::Int { .. } | Kind::Seconds { .. } | Kind::Millis { .. } | Kind::Bytes => true,
        Kind::Text
        | Kind::Header
        | Kind::Name
        | Kind::Choice(_)
        | Kind::Path
        | Kind::Secret
        | Kind::Url(_)
        | Kind::Networks => false,
    };
    // A slot that ends at once limits nothing.
    let measured = measured && setting.name != "LIMITS_SLOT_TTL";
    let lenient = match ruling.layer == FLAG {
        true => measured && ruling.text.trim().parse::<i128>().is_ok() || setting.name == "LOG_LEVEL",
        false => measured || setting.origin == Origin::Kept,
    };
    if lenient { Severity::Warning } else { Severity::Error }
}

/// One layer, as figment takes it: every value is text, because figment's own reading of variables turns
/// a password of `007` into 7.
struct Texts {
    layer: String,
    by_key: BTreeMap<&'static str, String>,
}

impl Provider for Texts {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.layer.clone())
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        let values = self.by_key.iter().map(|(key, text)| ((*key).to_owned(), Value::from(text.clone())));
        Ok(Map::from([(Profile::Default, values.collect())]))
    }
}

fn texts<'t>(give: impl Fn(&Setting) -> Option<&'t str>) -> BTreeMap<&'static str, String> {
    SETTINGS.iter().filter_map(|setting| Some((setting.name, give(setting)?.to_owned()))).collect()
}

/// A blank variable counts as unset; so does `tcp://…`, which Kubernetes injects for services whose name
/// makes a setting's (a service `valkey` sets `VALKEY_PORT`).
fn variable<'e>(env: &'e Env, setting: &Setting) -> Option<&'e str> {
    let text = env.get(setting.name)?;
    let injected = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| text.starts_with(scheme));
    (!text.trim().is_empty() && !injected).then_some(text)
}

fn ruling(merged: &Figment) -> BTreeMap<&'static str, Ruling> {
    let mut ruling = BTreeMap::new();
    for setting in SETTINGS {
        let Ok(value) = merged.find_value(setting.name) else { continue };
        let layer = merged.get_metadata(value.tag()).map(|metadata| metadata.name.clone().into_owned());
        if let (Some(text), Some(layer)) = (value.into_string(), layer) {
            ruling.insert(setting.name, Ruling { text, layer });
        }
    }
    ruling
}

/// The settings of `headgate.toml`; keys in any case, with `-` or `_`, named after variable or flag.
fn file_texts(name: &str, text: &str, findings: &mut Vec<Finding>) -> BTreeMap<&'static str, String> {
    let dict = match Toml::from_str::<Dict>(text) {
        Ok(dict) => dict,
        Err(error) => {
            // The error's own text would quote the line, and there may be a password in it.
            let at = error.span().map_or(0, |span| span.start.min(text.len()));
            let (line, column) = line_and_column(text, at);
            let message = error.message().replace('\n', ": ");
            findings.push(Finding::error(name, format!("{message} at line {line} column {column}")));
            return BTreeMap::new();
        }
    };
    let mut texts = BTreeMap::new();
    for (key, value) in &dict {
        match (setting_of_key(key), plain(value)) {
            (Some(setting), Some(text)) => {
                texts.insert(setting.name, text);
            }
            (Some(_), None) => {
                findings.push(Finding::error(format!("{name}: {key}"), "must be one plain value"));
            }
            (None, _) => findings.push(unknown_key(name, key)),
        }
    }
    texts
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..at];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    (before.iter().filter(|byte| **byte == b'\n').count() + 1, at - line_start + 1)
}

fn setting_of_key(key: &str) -> Option<&'static Setting> {
    let key = key.to_ascii_lowercase().replace('-', "_");
    SETTINGS.iter().find(|setting| setting.key() == key || setting.flag.replace('-', "_") == key)
}

fn unknown_key(file: &str, key: &str) -> Finding {
    let keys: Vec<String> = SETTINGS.iter().map(Setting::key).collect();
    let hint = did_you_mean(key, keys.iter().map(String::as_str));
    Finding::warning(file, format!("unknown setting {}{hint}", quoted(key)))
}

/// A TOML value as text; a list of plain values with commas between them.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(_, text) => Some(text.clone()),
        Value::Bool(_, flag) => Some(flag.to_string()),
        Value::Num(_, Num::F32(number)) => Some(number.to_string()),
        Value::Num(_, Num::F64(number)) => Some(number.to_string()),
        Value::Num(_, number) => {
            number.to_i128().map(|n| n.to_string()).or_else(|| number.to_u128().map(|n| n.to_string()))
        }
        Value::Array(_, items) => {
            let items: Option<Vec<String>> = items.iter().map(plain).collect();
            items.map(|items| items.join(", "))
        }
        Value::Char(..) | Value::Dict(..) | Value::Empty(..) => None,
    }
}

/// `HEADGATE_*` variables that no setting has but that look as if they meant one.
fn misspelt_variables(env: &Env) -> Vec<Finding> {
    let ours: Vec<&str> =
        SETTINGS.iter().map(|s| s.name).filter(|name| name.starts_with("HEADGATE_")).collect();
    let candidates = env.iter().filter(|(name, value)| {
        let flag = name.starts_with("HEADGATE_FLAG_");
        name.starts_with("HEADGATE_") && !flag && !ours.contains(name) && !value.starts_with("tcp://")
    });
    candidates
        .filter_map(|(name, _)| {
            let hint =
                match SETTINGS.iter().find(|setting| name.strip_prefix("HEADGATE_") == Some(setting.name)) {
                    Some(setting) => format!(", did you mean \"{}\"?", setting.name),
                    None => did_you_mean(name, ours.iter().copied()),
                };
            let message = format!("no setting has this name{hint}");
            (!hint.is_empty()).then(|| Finding::warning(format!("{name} ({ENVIRONMENT})"), message))
        })
        .collect()
}
