//! The variables a configuration may refer to: the process's environment, filled up from `.env`.
//! Decides what a `.env` file says; never what a variable means.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::finding::Finding;

/// Variables by name. Those of the environment win over those of a `.env` file.
#[derive(Clone, Default)]
pub struct Env {
    vars: BTreeMap<String, String>,
    findings: Vec<Finding>,
}

impl Env {
    /// The process's environment and the `.env` file of the working directory, if there is one.
    /// Variables that are not UTF-8 are left out.
    pub fn of_process() -> Self {
        let vars =
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        match std::fs::read_to_string(Path::new(".env")) {
            Ok(dotenv) => Self::new(vars, &dotenv),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::new(vars, ""),
            Err(error) => {
                let mut env = Self::new(vars, "");
                env.findings.push(Finding::warning(".env", format!("cannot be read: {error}")));
                env
            }
        }
    }

    /// `vars`, and those of the text of a `.env` file that are not among them.
    pub fn new<K, V>(vars: impl IntoIterator<Item = (K, V)>, dotenv: &str) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        let mut findings = Vec::new();
        let mut all = parse_dotenv(dotenv, &mut findings);
        all.extend(vars.into_iter().map(|(name, value)| (name.into(), value.into())));
        Self { vars: all, findings }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.vars.get(name).map(String::as_str)
    }

    /// Names and values, in the names' order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.vars.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// What is wrong with the `.env` file.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// These variables, and those of `others` whose names are not taken.
    pub(crate) fn filled_from(&self, others: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut filled = self.clone();
        for (name, value) in others {
            filled.vars.entry(name).or_insert(value);
        }
        filled
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.vars.keys()).finish()
    }
}

/// Lines of `NAME=value` (or `NAME: value`), `export ` before them allowed. Values: bare up to ` #`,
/// `'literal'`, `"with \n escapes"`; `$NAME` and `${NAME}` refer to lines above, except in single quotes.
fn parse_dotenv(text: &str, findings: &mut Vec<Finding>) -> BTreeMap<String, String> {
    let mut vars = BTreeMap::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut line = 1;
    while !rest.is_empty() {
        let (entry, after) = next_entry(rest, &vars);
        match entry {
            Entry::Variable(name, value) => {
                vars.insert(name, value);
            }
            Entry::Nothing => {}
            Entry::Bad(message) => findings.push(Finding::warning(format!(".env line {line}"), message)),
        }
        line += rest[..rest.len() - after.len()].matches('\n').count();
        rest = after;
    }
    vars
}

enum Entry {
    Variable(String, String),
    Nothing,
    Bad(&'static str),
}

/// One entry of a `.env` text, and the text after its last line.
fn next_entry<'t>(text: &'t str, vars: &BTreeMap<String, String>) -> (Entry, &'t str) {
    let (line, after) = text.split_once('\n').unwrap_or((text, ""));
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with('#') {
        return (Entry::Nothing, after);
    }
    let Some(at) = line.find(['=', ':']) else {
        return (Entry::Bad("expected NAME=value"), after);
    };
    let name = line[..at].trim();
    let name = name.strip_prefix("export ").unwrap_or(name).trim();
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.') {
        return (Entry::Bad("a variable's name has letters, digits and underscores only"), after);
    }
    let value = line[at + 1..].trim_start();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            quoted_value(name, quote, &text[line.len() - value.len() + 1..], after, vars)
        }
        _ => (Entry::Variable(name.to_owned(), expand(bare(value), vars)), after),
    }
}

/// A bare value ends at the line's end or at a `#` that follows white space.
fn bare(value: &str) -> &str {
    let comment = value
        .char_indices()
        .find(|(at, c)| *c == '#' && value[..*at].chars().next_back().is_none_or(char::is_whitespace));
    comment.map_or(value, |(at, _)| &value[..at]).trim_end()
}

/// A quoted value, which may run over several lines.
fn quoted_value<'t>(
    name: &str,
    quote: char,
    text: &'t str,
    after_line: &'t str,
    vars: &BTreeMap<String, String>,
) -> (Entry, &'t str) {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let closes = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped && quote == '"';
        closes
    });
    let Some((end, _)) = end else {
        return (Entry::Bad("the value's quote is not closed"), after_line);
    };
    let value = match quote {
        '"' => unescape(&expand(&text[..end], vars)),
        _ => text[..end].to_owned(),
    };
    let after = text[end..].split_once('\n').map_or("", |(_, after)| after);
    (Entry::Variable(name.to_owned(), value), after)
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some(other)) => out.push(other),
            _ => out.push(c),
        }
    }
    out
}

/// `$NAME` and `${NAME}` of the lines above; unknown names become nothing, `\$` stays for `unescape`.
fn expand(text: &str, vars: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let body = &from[1..];
        let (braced, body) = body.strip_prefix('{').map_or((false, body), |body| (true, body));
        let length = body.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let closed = !braced || body[length..].starts_with('}');
        if length == 0 || !closed || before.ends_with('\\') {
            out.push('$');
            rest = &from[1..];
            continue;
        }
        out.push_str(vars.get(&body[..length]).map_or("", String::as_str));
        rest = &body[length + usize::from(braced)..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotenv_lines() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let mut findings = Vec::new();
            let vars = parse_dotenv(text, &mut findings);
            let got: Vec<(&str, &str)> = vars.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            assert_eq!((got.as_slice(), findings.len()), (expected, 0), "{text:?}");
        };
        check("", &[]);
        check("# comment\n\n  \nA=1\n", &[("A", "1")]);
        check("A=1\r\nB=2\r\n", &[("A", "1"), ("B", "2")]);
        check("export A = x y , z # comment", &[("A", "x y , z")]);
        check("A=key#1", &[("A", "key#1")]);
        check("A=", &[("A", "")]);
        check("A= # nothing", &[("A", "")]);
        check("A: b", &[("A", "b")]);
        check("A='a $B # \\n' # c", &[("A", "a $B # \\n")]);
        check(r#"A="a\"b\n#\$c" # c"#, &[("A", "a\"b\n#$c")]);
        check("A=\"two\nlines\"\nB=1", &[("A", "two\nlines"), ("B", "1")]);
        check("A=1\nB=${A}2$A-$C\nC='3'", &[("A", "1"), ("B", "121-"), ("C", "3")]);
        check("A=$", &[("A", "$")]);
        check("A=${B\nC=1", &[("A", "${B"), ("C", "1")]);
        check("\u{feff}A=007", &[("A", "007")]);
    }

    #[test]
    fn bad_lines_are_named_and_the_others_kept() {
        let env = Env::new([("A", "env")], "A=file\nno value\nB=\"open\nC=1\n=x\n");
        assert_eq!((env.get("A"), env.get("C"), env.get("B")), (Some("env"), Some("1"), None));
        let paths: Vec<&str> = env.findings().iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, [".env line 2", ".env line 3", ".env line 5"]);
    }

    #[test]
    fn existing_variables_win_and_values_are_not_printed() {
        let env = Env::new([("A", "secret-a")], "A=secret-b\nB=secret-c");
        assert_eq!((env.get("A"), env.get("B")), (Some("secret-a"), Some("secret-c")));
        assert!(!format!("{env:?}").contains("secret"));
    }
}
