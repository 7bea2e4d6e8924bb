//! What is wrong with a configuration, and where. Decides how a finding reads; never whether the
//! process starts (that is `load`).

use std::fmt;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The process starts without what the finding names.
    Warning,
    /// The process does not start, or keeps the configuration it has.
    Error,
}

/// One thing that is wrong, and where it stands. Never holds a secret: values are quoted only where
/// they are names (roles, types, modes), never URLs, keys or passwords.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// `mainnet.alchemy-1.role`, `SERVER_PORT (environment)`, `--server-port`, `headgate.toml: server_port`.
    pub path: String,
    /// Lower case, no full stop.
    pub message: String,
    pub severity: Severity,
}

impl Finding {
    pub fn warning(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), severity: Severity::Warning }
    }

    pub fn error(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), severity: Severity::Error }
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come out of a file: none of them may begin a line of its own in a log.
        for c in self.path.chars() {
            match c.is_control() {
                true => write!(f, "{}", c.escape_default())?,
                false => write!(f, "{c}")?,
            }
        }
        write!(f, ": {}", self.message)
    }
}

/// `, did you mean "primary"?` where a known name is near enough, else nothing.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(given, known) {
        Some(name) => format!(", did you mean \"{name}\"?"),
        None => String::new(),
    }
}

/// The nearest known name, at most a third of its length (and at least one edit) away.
fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.chars().count() > MAX_QUOTED {
        return None;
    }
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= (name.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// A value as it may stand in a finding: quoted, escaped, cut where it is long.
pub(crate) fn quoted(value: &str) -> String {
    let mut short: String = value.chars().take(MAX_QUOTED).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    format!("{short:?}")
}

const MAX_QUOTED: usize = 40;

/// Prints findings where people look for them: on standard error, one a line.
pub fn print_findings(findings: &[Finding]) {
    for finding in findings {
        let severity = if finding.is_error() { "error" } else { "warning" };
        eprintln!("{severity}: {finding}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_path_then_message() {
        let roles = ["primary", "fallback", "public"];
        let hint = did_you_mean("primry", roles);
        let finding = Finding::warning("mainnet.alchemy-1.role", format!("unknown role \"primry\"{hint}"));
        assert_eq!(
            finding.to_string(),
            "mainnet.alchemy-1.role: unknown role \"primry\", did you mean \"primary\"?"
        );
    }

    // Kills: no bound on the distance (everything would be "near" something).
    #[test]
    fn only_near_names_are_offered() {
        let check = |given: &str, expected: Option<&str>| {
            assert_eq!(nearest(given, ["primary", "fallback", "public"]), expected, "{given}");
        };
        check("primry", Some("primary"));
        check("PUBLC", Some("public"));
        check("falback", Some("fallback"));
        check("backup", None);
        check("", None);
        check(&"p".repeat(100_000), None);
    }

    #[test]
    fn a_path_stays_on_its_line() {
        assert_eq!(Finding::error("a\nb\u{1b}.é", "x").to_string(), "a\\nb\\u{1b}.é: x");
    }

    #[test]
    fn long_values_are_cut_and_control_characters_escaped() {
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        assert_eq!(quoted(&"é".repeat(41)), format!("\"{}…\"", "é".repeat(40)));
    }
}
