//! What a refusal says: its code, its text and its hints, from the members that were kept or from plain
//! text. Objects inside `error.data` are read for hints only, never for text: they may echo the request.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::wait;
use crate::words::{TEXT, normalise, strip_markup};

/// Words looked at of a page of HTML; what it refuses, it says in its title and heading.
const PAGE_WORDS: usize = 80;

/// What a refusal says.
#[derive(Debug, Default)]
pub(crate) struct Said {
    /// Whether it is a JSON-RPC error object, not just some text.
    pub(crate) envelope: bool,
    pub(crate) code: Option<i64>,
    /// The text in lower case.
    pub(crate) text: String,
    /// The text as words, see [`crate::words`].
    pub(crate) words: String,
    /// The wait that a member states.
    pub(crate) wait: Option<Duration>,
    /// Requests per second that a member states.
    pub(crate) allowed_rps: Option<u64>,
    /// Whether the object calls itself a failure.
    pub(crate) failed: bool,
    main: String,
    extra: String,
}

impl Said {
    /// Nothing but the head speaks.
    pub(crate) fn nothing() -> Said {
        Said { words: " ".to_owned(), ..Said::default() }
    }

    /// From the members kept of an object; an object that was cut short gives what it has.
    pub(crate) fn from_members(object: &[u8]) -> Said {
        let mut said = Said::default();
        let text = String::from_utf8_lossy(object);
        let mut json = serde_json::Deserializer::from_str(&text);
        // The error is no news: whatever was read before it has been noted.
        let _ = Node { said: &mut said, at: At::Body, key: "" }.deserialize(&mut json);
        // A bare error object, without the envelope around it, is one too.
        said.envelope |= said.code.is_some_and(|code| code < 0 || code == 3);
        let main = std::mem::take(&mut said.main);
        let extra = std::mem::take(&mut said.extra);
        said.set_text(&if extra.is_empty() { main } else { format!("{main} {extra}") });
        said
    }

    /// From a body that is no JSON.
    pub(crate) fn from_text(body: &[u8]) -> Said {
        let mut said = Said::default();
        let text = String::from_utf8_lossy(body);
        let prose: Cow<'_, str> =
            if text.trim_start().starts_with('<') { opening(&text).into() } else { text };
        said.set_text(prose.trim());
        said
    }

    fn set_text(&mut self, text: &str) {
        let mut end = text.len().min(TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.words = normalise(&text[..end]);
        self.text = text[..end].to_ascii_lowercase();
    }
}

/// The first words of a page: further down are menus, prices and documentation.
fn opening(page: &str) -> String {
    let prose = strip_markup(page);
    prose.split_whitespace().take(PAGE_WORDS).collect::<Vec<_>>().join(" ")
}

/// Which object a member belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Body,
    Error,
    Data,
}

/// One member's value, noted into `said` as it is read.
struct Node<'a> {
    said: &'a mut Said,
    at: At,
    key: &'a str,
}

impl Node<'_> {
    fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.key.eq_ignore_ascii_case(name))
    }

    fn is_wait(&self) -> bool {
        self.is(&["retry_after", "retryafter", "retryafterseconds", "retry_after_seconds", "backoff_seconds"])
    }

    fn is_code(&self) -> bool {
        self.is(&["code", "statuscode", "status_code", "status", "errorcode", "error_code"])
    }

    fn string(&mut self, value: &str) {
        if self.is_wait() || self.is(&["try_again_in"]) {
            self.said.wait = self.said.wait.or_else(|| wait::span(&value.to_ascii_lowercase()));
        } else if self.at == At::Data {
        } else if self.is(&["status"]) && matches!(value, "0" | "error" | "fail" | "failed") {
            self.said.failed = true;
        } else if self.is_code() {
            self.string_code(value);
        } else if self.is(&["message", "msg", "error", "error_message", "errormessage"]) {
            append(&mut self.said.main, value);
        } else {
            append(&mut self.said.extra, value);
        }
    }

    /// A code in quotes is a number or a word such as `monthly_limit_exceeded`.
    fn string_code(&mut self, value: &str) {
        match value.parse::<i64>() {
            Ok(code) => self.number(code as f64),
            Err(_) => append(&mut self.said.extra, value),
        }
    }

    fn number(&mut self, value: f64) {
        if self.is_wait() {
            self.said.wait = self.said.wait.or_else(|| Duration::try_from_secs_f64(value).ok());
        } else if self.at == At::Data && self.is(&["allowed_rps"]) {
            self.said.allowed_rps = (value >= 1.0).then_some(value as u64);
        } else if self.at != At::Data && self.is_code() && (self.at == At::Error || self.said.code.is_none())
        {
            self.said.code = Some(value as i64);
        }
    }

    /// Where the members of this value, an object, belong; `None` if they say nothing.
    fn inner(&self) -> Option<At> {
        match self.at {
            At::Body if self.key.is_empty() => Some(At::Body),
            At::Body if self.is(&["error", "errors"]) => Some(At::Error),
            At::Body | At::Error if self.is(&["data"]) => Some(At::Data),
            At::Data if self.is(&["rate"]) => Some(At::Data),
            At::Body | At::Error | At::Data => None,
        }
    }
}

fn append(text: &mut String, value: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(value);
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.said.failed |= !value && self.at == At::Body && self.is(&["ok", "success"]);
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.number(value as f64);
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.number(value as f64);
        Ok(())
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<(), E> {
        self.number(value);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(mut self, value: &str) -> Result<(), E> {
        self.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if self.at == At::Body && self.is(&["errors"]) {
            while items.next_element_seed(Node { said: self.said, at: self.at, key: self.key })?.is_some() {}
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some(at) = self.inner() else {
            while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        self.said.envelope |= at == At::Error;
        while let Some(key) = members.next_key::<String>()? {
            members.next_value_seed(Node { said: self.said, at, key: &key })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(object: &str, code: Option<i64>, text: &str) {
        let said = Said::from_members(object.as_bytes());
        assert_eq!((said.code, said.text.as_str()), (code, text), "{object}");
    }

    #[test]
    fn texts_and_codes_wherever_providers_put_them() {
        check(r#"{"error":{"data":"d","code":-32005,"message":"M"}}"#, Some(-32005), "m d");
        check(r#"{"error":"Plain"}"#, None, "plain");
        check(r#"{"error":true,"code":401,"message":"m"}"#, Some(401), "m");
        check(r#"{"statusCode":429,"message":"m"}"#, Some(429), "m");
        check(r#"{"error":{"code":"credits_exhausted","message":"m"}}"#, None, "m credits_exhausted");
        check(r#"{"error":{"code":"-32005","message":"m"}}"#, Some(-32005), "m");
        check(r#"{"errors":[{"message":"a"},{"message":"b"}]}"#, None, "a b");
        check(r#"{"error":{"message":"m","code":1,"da"#, Some(1), "m");
    }

    #[test]
    fn objects_in_data_are_no_text() {
        let echo =
            r#"{"error":{"message":"m","data":{"request":{"params":["rate limit"]},"message":"quota"}}}"#;
        check(echo, None, "m");
    }

    #[test]
    fn hints_in_members() {
        let said =
            Said::from_members(br#"{"error":{"data":{"rate":{"allowed_rps":50,"backoff_seconds":0.5}}}}"#);
        assert_eq!((said.wait, said.allowed_rps), (Some(Duration::from_millis(500)), Some(50)));
        let said = Said::from_members(r#"{"error":{"data":{"try_again_in":"912.5µs"}}}"#.as_bytes());
        assert_eq!(said.wait, Some(Duration::from_nanos(912_500)));
    }
}
