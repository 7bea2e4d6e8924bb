//! Reads rule files: JSON, checked field by field, so that an error names the line and the field. Knows
//! what a rule may say, not what it means.

use std::collections::BTreeMap;

use http::HeaderName;
use regex::Regex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::head::Protocol;
use crate::verdict::{Detail, Scope, Verdict};
use crate::words::normalise;

/// Rules in one table; their ids and the labels they become are bounded.
const MOST: usize = 10_000;

const UNKNOWN_FIELD: &str = "no such field; a rule has name, verdict, scope, detail, why, and of conditions text, and, not, \
                             regex, code, status, header, provider, method, protocol, close, envelope";

/// What is wrong in a file of rules, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {field}: {message}")]
pub struct RulesError {
    /// The file's name as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The field that is wrong, or `file` for the whole.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

/// The rules of some files in order, and their named groups of phrases.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) groups: BTreeMap<String, Vec<String>>,
    pub(super) rules: Vec<Rule>,
}

/// One rule: what it says when all its conditions hold.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) scope: Scope,
    pub(super) detail: Detail,
    pub(super) when: When,
}

/// A rule's conditions; an empty list asks nothing.
#[derive(Debug, Default)]
pub(super) struct When {
    pub(super) protocol: Option<Protocol>,
    pub(super) envelope: Option<bool>,
    pub(super) provider: Vec<String>,
    pub(super) method: Vec<String>,
    pub(super) status: Vec<(u16, u16)>,
    pub(super) code: Vec<i64>,
    pub(super) close: Vec<u16>,
    pub(super) header: Vec<(HeaderName, Option<String>)>,
    /// Phrases as patterns over normalised words.
    pub(super) text: Vec<String>,
    pub(super) and: Vec<String>,
    pub(super) not: Vec<String>,
    pub(super) regex: Option<Regex>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shape<'a> {
    #[serde(default, borrow)]
    groups: BTreeMap<String, &'a RawValue>,
    #[serde(borrow)]
    rules: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Status {
    One(u16),
    Range(String),
}

impl Table {
    /// Adds a file's groups and rules behind those that are there.
    pub(super) fn add(&mut self, text: &str, file: &str) -> Result<(), RulesError> {
        let reader = Reader { text, file };
        if text.trim_start().starts_with('[') {
            return Err(reader.error(1, "file", r#"must be an object, {"rules": [...]}, not a list"#));
        }
        let shape: Shape<'_> = serde_json::from_str(text)
            .map_err(|err| reader.error(err.line(), "file", &without_position(&err)))?;
        for (name, raw) in &shape.groups {
            let phrases: Vec<String> = reader.read(raw, name)?;
            self.groups.insert(name.clone(), phrases);
        }
        for raw in &shape.rules {
            if self.rules.len() == MOST {
                return Err(reader.error(reader.line(raw), "rules", "too many rules"));
            }
            let rule = self.rule(&reader, raw)?;
            self.rules.push(rule);
        }
        Ok(())
    }

    fn rule(&self, reader: &Reader<'_>, raw: &RawValue) -> Result<Rule, RulesError> {
        let fields: BTreeMap<String, &RawValue> = reader.read(raw, "rules")?;
        let line = reader.line(raw);
        let (mut name, mut verdict, mut scope, mut detail) = (None, None, None, Detail::None);
        let mut when = When::default();
        let mut conditions = 0;
        for (field, value) in &fields {
            match field.as_str() {
                "name" => name = Some(reader.read::<String>(value, field)?),
                "why" => drop(reader.read::<String>(value, field)?),
                "verdict" => verdict = Some(reader.word(value, field, &Verdict::ALL, Verdict::as_str)?),
                "scope" => scope = Some(reader.word(value, field, &Scope::ALL, Scope::as_str)?),
                "detail" => detail = reader.word(value, field, &Detail::ALL, Detail::as_str)?,
                _ => {
                    self.condition(reader, field, value, &mut when)?;
                    conditions += 1;
                }
            }
        }
        let missing = |field| reader.error(line, field, "missing");
        let verdict = verdict.ok_or_else(|| missing("verdict"))?;
        let name = name.filter(|name| !name.trim().is_empty()).ok_or_else(|| missing("name"))?;
        if conditions == 0 {
            return Err(reader.error(line, "rules", "a rule without conditions would swallow everything"));
        }
        Ok(Rule { name, verdict, scope: scope.unwrap_or(verdict.usual_scope()), detail, when })
    }

    fn condition(
        &self,
        reader: &Reader<'_>,
        field: &str,
        value: &RawValue,
        when: &mut When,
    ) -> Result<(), RulesError> {
        if value.get().chars().filter(|c| !c.is_whitespace()).eq("[]".chars()) {
            return Err(reader.error(reader.line(value), field, "an empty list asks nothing"));
        }
        match field {
            "protocol" => when.protocol = Some(reader.protocol(value, field)?),
            "envelope" => when.envelope = Some(reader.read(value, field)?),
            "provider" => when.provider = reader.lower(value, field)?,
            "method" => when.method = reader.read(value, field)?,
            "status" => when.status = reader.statuses(value, field)?,
            "code" => when.code = reader.read(value, field)?,
            "close" => when.close = reader.read(value, field)?,
            "header" => when.header = reader.headers(value, field)?,
            "text" => when.text = self.phrases(reader, value, field)?,
            "and" => when.and = self.phrases(reader, value, field)?,
            "not" => when.not = self.phrases(reader, value, field)?,
            "regex" => when.regex = Some(reader.regex(value, field)?),
            _ => return Err(reader.error(reader.line(value), field, UNKNOWN_FIELD)),
        }
        Ok(())
    }

    /// Phrases as patterns; `@name` stands for a group's.
    fn phrases(&self, reader: &Reader<'_>, raw: &RawValue, field: &str) -> Result<Vec<String>, RulesError> {
        let line = reader.line(raw);
        let mut patterns = Vec::new();
        for phrase in reader.read::<Vec<String>>(raw, field)? {
            let Some(group) = phrase.strip_prefix('@') else {
                patterns.push(pattern(&phrase).map_err(|message| reader.error(line, field, message))?);
                continue;
            };
            let Some(members) = self.groups.get(group) else {
                return Err(reader.error(line, field, &format!("no group called {group}")));
            };
            for member in members {
                patterns.push(pattern(member).map_err(|message| reader.error(line, field, message))?);
            }
        }
        Ok(patterns)
    }
}

/// One file while it is read.
struct Reader<'a> {
    text: &'a str,
    file: &'a str,
}

impl<'a> Reader<'a> {
    fn error(&self, line: usize, field: &str, message: &str) -> RulesError {
        let (file, field, message) = (self.file.to_owned(), field.to_owned(), message.to_owned());
        RulesError { file, line, field, message }
    }

    /// The line a value starts on.
    fn line(&self, raw: &RawValue) -> usize {
        let offset = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        1 + self.text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count()
    }

    fn read<T: Deserialize<'a>>(&self, raw: &'a RawValue, field: &str) -> Result<T, RulesError> {
        serde_json::from_str(raw.get()).map_err(|err| {
            self.error(self.line(raw) + err.line().saturating_sub(1), field, &without_position(&err))
        })
    }
}

impl Reader<'_> {
    fn owned<T: DeserializeOwned>(&self, raw: &RawValue, field: &str) -> Result<T, RulesError> {
        serde_json::from_str(raw.get()).map_err(|err| {
            self.error(self.line(raw) + err.line().saturating_sub(1), field, &without_position(&err))
        })
    }

    fn word<T: Copy>(
        &self,
        raw: &RawValue,
        field: &str,
        all: &[T],
        name: fn(T) -> &'static str,
    ) -> Result<T, RulesError> {
        let word: String = self.owned(raw, field)?;
        all.iter().copied().find(|one| name(*one) == word).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(|one| name(*one)).collect();
            self.error(self.line(raw), field, &format!("`{word}` is none of {}", known.join(", ")))
        })
    }

    fn protocol(&self, raw: &RawValue, field: &str) -> Result<Protocol, RulesError> {
        let name = |protocol| match protocol {
            Protocol::Http => "http",
            Protocol::Ws => "ws",
        };
        self.word(raw, field, &[Protocol::Http, Protocol::Ws], name)
    }

    fn lower(&self, raw: &RawValue, field: &str) -> Result<Vec<String>, RulesError> {
        let words: Vec<String> = self.owned(raw, field)?;
        Ok(words.into_iter().map(|word| word.to_ascii_lowercase()).collect())
    }

    /// `429` or `"500-599"`.
    fn statuses(&self, raw: &RawValue, field: &str) -> Result<Vec<(u16, u16)>, RulesError> {
        let statuses: Vec<Status> = self.owned(raw, field)?;
        let range = |status| match status {
            Status::One(status) => Some((status, status)),
            Status::Range(range) => {
                let (from, to) = range.split_once('-')?;
                Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
            }
        };
        let ranges: Option<Vec<(u16, u16)>> = statuses.into_iter().map(range).collect();
        ranges.ok_or_else(|| self.error(self.line(raw), field, "expected 429 or \"500-599\""))
    }

    /// `"name"` or `"name: value"`.
    fn headers(&self, raw: &RawValue, field: &str) -> Result<Vec<(HeaderName, Option<String>)>, RulesError> {
        let headers: Vec<String> = self.owned(raw, field)?;
        let parse = |header: &String| {
            let (name, value) = match header.split_once(':') {
                Some((name, value)) => (name, Some(value.trim().to_ascii_lowercase())),
                None => (header.as_str(), None),
            };
            Some((name.trim().parse::<HeaderName>().ok()?, value))
        };
        let parsed: Option<Vec<_>> = headers.iter().map(parse).collect();
        parsed.ok_or_else(|| self.error(self.line(raw), field, "expected \"name\" or \"name: value\""))
    }

    fn regex(&self, raw: &RawValue, field: &str) -> Result<Regex, RulesError> {
        let source: String = self.owned(raw, field)?;
        Regex::new(&source).map_err(|err| {
            let message = err.to_string();
            self.error(self.line(raw), field, message.lines().last().unwrap_or("bad expression"))
        })
    }
}

/// A phrase as a pattern over normalised words: whole words, `#` for a number, a final `*` for any ending.
fn pattern(phrase: &str) -> Result<String, &'static str> {
    let stem = phrase.strip_suffix('*').unwrap_or(phrase);
    let mut pattern = normalise(&stem.replace('#', "0"));
    if stem.len() < phrase.len() {
        pattern.truncate(pattern.trim_end().len());
    }
    if pattern.trim().is_empty() { Err("a phrase without words") } else { Ok(pattern) }
}

/// serde_json's message without its own position, which is relative to the field.
fn without_position(err: &serde_json::Error) -> String {
    let message = err.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}
