//! One endpoint object. Decides whether the endpoint can be used; what makes it unusable disables it and
//! is named, what is no endpoint at all is an error.

use http::{HeaderName, HeaderValue};

use super::fields::Fields;
use super::{EndpointConfig, Role, last_of_each, limits, members_or_error};
use crate::finding::{Finding, did_you_mean, quoted};
use crate::interpolate::{self, Sources};
use crate::json::Node;
use crate::secret::{Secret, SecretUrl};

/// Reads the endpoint `id` of `chain`.
pub(super) fn read(
    chain: &str,
    id: &str,
    node: &Node,
    sources: Sources<'_>,
    findings: &mut Vec<Finding>,
) -> EndpointConfig {
    let path = format!("{chain}.{id}");
    let members = members_or_error(node, &path, "an object", findings);
    let fields = Fields::read(&path, "", members, findings);
    Reader { fields, sources, findings, disabled: None }.endpoint(chain, id, &path)
}

struct Reader<'a, 'n> {
    fields: Fields<'n>,
    sources: Sources<'a>,
    findings: &'a mut Vec<Finding>,
    disabled: Option<String>,
}

impl<'n> Reader<'_, 'n> {
    fn endpoint(mut self, chain: &str, id: &str, path: &str) -> EndpointConfig {
        let role = self.role();
        let http_url = self.url("http_url", &["http", "https"]);
        let ws_url = self.url("ws_url", &["ws", "wss"]);
        if http_url.is_none() && ws_url.is_none() && self.disabled.is_none() {
            self.disable(path.to_owned(), "has neither http_url nor ws_url");
        }
        let headers = self.headers();
        let account = Some(self.text("account")).filter(|account| !account.trim().is_empty());
        EndpointConfig {
            id: id.to_owned(),
            provider: self.text("provider"),
            role,
            archive: self.archive(),
            http_url,
            ws_url,
            skip_sync_check: self.flag("skip_sync_check"),
            account: account.unwrap_or_else(|| format!("{chain}/{id}")),
            shared_account: false,
            weight: self.weight(),
            headers,
            private: self.flag("private"),
            max_block_range: self.max_block_range(),
            recovery: self.block("rate_limit_recovery", limits::recovery).flatten(),
            capacity: self.block("capacity", limits::capacity).unwrap_or_default(),
            learning: self.block("capacity_learning", limits::learning).unwrap_or_default(),
            disabled: self.disabled,
        }
    }

    /// The first reason stays; every reason is a finding.
    fn disable(&mut self, path: String, reason: &str) {
        self.findings.push(Finding::warning(path, format!("{reason}; the endpoint is left out")));
        self.disabled.get_or_insert_with(|| reason.to_owned());
    }

    fn warn(&mut self, name: &str, message: impl Into<String>) {
        let path = self.fields.path(name);
        self.findings.push(Finding::warning(path, message));
    }

    fn text(&mut self, name: &str) -> String {
        match self.fields.get(name) {
            None => String::new(),
            Some(Node::Text(text)) => text.clone(),
            Some(other) => {
                let message = format!("must be a string, not {}", other.kind());
                self.findings.push(Finding::error(self.fields.path(name), message));
                String::new()
            }
        }
    }

    fn flag(&mut self, name: &str) -> bool {
        match self.fields.get(name) {
            None => false,
            Some(Node::Bool(flag)) => *flag,
            Some(other) => {
                let message = format!("must be true or false, not {}", other.kind());
                self.findings.push(Finding::error(self.fields.path(name), message));
                false
            }
        }
    }

    /// An endpoint whose role is unknown is disabled; which role it then carries does not matter.
    fn role(&mut self) -> Role {
        let word = self.text("role");
        if let Some(role) = Role::from_word(word.trim()) {
            return role;
        }
        let reason = match word.trim() {
            "" => format!("the role is missing (one of {})", Role::WORDS.join(", ")),
            other => {
                let hint = did_you_mean(other, Role::WORDS.iter().copied());
                format!("unknown role {}{hint}", quoted(other))
            }
        };
        self.disable(self.fields.path("role"), &reason);
        Role::Public
    }

    fn archive(&mut self) -> bool {
        let word = self.text("type");
        let known = ["archive", "full", ""];
        if !known.contains(&word.trim().to_ascii_lowercase().as_str()) {
            let hint = did_you_mean(&word, ["archive", "full"]);
            self.warn("type", format!("unknown type {}{hint}; taken as full", quoted(&word)));
        }
        word.trim().eq_ignore_ascii_case("archive")
    }

    fn url(&mut self, name: &str, schemes: &[&str]) -> Option<SecretUrl> {
        let raw = self.text(name);
        let text = self.expanded(name, &raw)?;
        if text.trim().is_empty() {
            return None;
        }
        SecretUrl::parse(&text, schemes).map_err(|why| self.disable(self.fields.path(name), &why)).ok()
    }

    /// The value with variables and files put in; nothing, and the endpoint disabled, if one is missing.
    fn expanded(&mut self, name: &str, raw: &str) -> Option<String> {
        let expanded = interpolate::expand(raw, self.sources);
        for part in &expanded.vanished {
            self.warn(name, format!("{} stands for nothing and is taken out", quoted(part)));
        }
        for reason in &expanded.missing {
            self.disable(self.fields.path(name), reason);
        }
        expanded.missing.is_empty().then_some(expanded.text)
    }

    fn headers(&mut self) -> Vec<(HeaderName, Secret)> {
        let Some(node) = self.fields.get("headers") else { return Vec::new() };
        let path = self.fields.path("headers");
        let members = members_or_error(node, &path, "an object of strings", self.findings);
        let unique = last_of_each(members, &path, "header", self.findings);
        let mut headers: Vec<(HeaderName, Secret)> = Vec::new();
        for (name, node) in unique {
            if let Some((name, value)) = self.header(name, node) {
                let before = headers.len();
                headers.retain(|(other, _)| *other != name);
                if headers.len() < before {
                    self.warn(
                        "headers",
                        format!("the header \"{name}\" is there twice; the last one counts"),
                    );
                }
                headers.push((name, value));
            }
        }
        headers
    }

    fn header(&mut self, name: &str, node: &Node) -> Option<(HeaderName, Secret)> {
        let field = format!("headers.{name}");
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            self.warn("headers", format!("{} is no header's name; it is not sent", quoted(name)));
            return None;
        };
        if OURS.contains(&parsed.as_str()) {
            self.warn(&field, "belongs to the connection and is set by the proxy; it is not sent");
            return None;
        }
        let Node::Text(raw) = node else {
            let message = format!("must be a string, not {}", node.kind());
            self.findings.push(Finding::error(self.fields.path(&field), message));
            return None;
        };
        let value = self.expanded(&field, raw)?;
        if HeaderValue::from_str(&value).is_err() {
            self.disable(self.fields.path(&field), "has characters that no header may have");
            return None;
        }
        Some((parsed, Secret::new(value)))
    }

    fn weight(&mut self) -> f64 {
        let node = self.fields.get("weight");
        match node.map(Node::number) {
            None => 1.0,
            Some(Some(weight)) if weight > 0.0 && weight <= 1e6 => weight,
            Some(_) => {
                self.warn("weight", "must be a number above 0, at most 1000000; 1 is used");
                1.0
            }
        }
    }

    fn max_block_range(&mut self) -> Option<u64> {
        let node = self.fields.get("max_block_range")?;
        let range = node.whole().filter(|range| *range >= 1).and_then(|range| u64::try_from(range).ok());
        if range.is_none() {
            self.warn("max_block_range", "must be a whole number, at least 1; no bound is used");
        }
        range
    }

    fn block<T>(&mut self, name: &str, read: impl Fn(&str, &Node, &mut Vec<Finding>) -> T) -> Option<T> {
        let node = self.fields.get(name)?;
        Some(read(&self.fields.path(name), node, self.findings))
    }
}

/// Headers that a configured value would break.
const OURS: [&str; 11] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "proxy-connection",
    "accept-encoding",
];
