//! One recorded answer as a line of JSON, and its judgement as another: what `classify` reads and prints.
//! Decodes nothing: the caller has undone base64 and content codings.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::head::{Head, Protocol};
use crate::rules::Rules;
use crate::verdict::{Judgement, Verdict};

/// A recorded answer. Unknown fields are ignored.
#[derive(Debug, Deserialize)]
pub struct Line<'a> {
    /// The provider as it would be configured.
    #[serde(default, borrow)]
    pub provider: Option<Cow<'a, str>>,
    /// The host that was asked.
    #[serde(default, borrow)]
    pub host: Option<Cow<'a, str>>,
    /// The method that was asked for; `batch` for a batch.
    #[serde(default, borrow)]
    pub method: Option<Cow<'a, str>>,
    /// `http` or `ws`.
    #[serde(default, borrow)]
    pub protocol: Option<Cow<'a, str>>,
    /// `None` when unknown or on an open socket.
    #[serde(default)]
    pub http_status: Option<u16>,
    /// Headers by name; a value may be a list.
    #[serde(default)]
    pub headers: Option<BTreeMap<String, HeaderText>>,
    /// The body, or the reason of a close frame; JSON that is not in a string is a body as it stands.
    #[serde(default, borrow)]
    pub body: Option<&'a RawValue>,
    /// `base64` if the body is written so.
    #[serde(default, borrow)]
    pub body_encoding: Option<Cow<'a, str>>,
    /// A close frame's code.
    #[serde(default)]
    pub ws_close_code: Option<u16>,
    /// The ids that a batch asked for: answers that are missing are then seen.
    #[serde(default, borrow)]
    pub request_ids: Option<Vec<&'a RawValue>>,
}

/// A header's value, or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum HeaderText {
    /// One value.
    One(String),
    /// A number, as some recordings have it.
    Number(serde_json::Number),
    /// The values of a repeated header.
    Many(Vec<String>),
}

/// What is printed for a line.
#[derive(Debug, Serialize)]
pub struct Output<'a> {
    /// The verdict; of a batch the worst item's.
    pub verdict: &'static str,
    /// What it is about.
    pub scope: &'static str,
    /// The raw hint in seconds.
    pub retry_after_s: Option<f64>,
    /// The rule that decided.
    pub rule: &'a str,
    /// A batch's answers in their order, those missing last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<OutputItem>>,
}

/// What is printed for an answer of a batch.
#[derive(Debug, Serialize)]
pub struct OutputItem {
    /// The raw id, `null` if there is none.
    pub id: Box<RawValue>,
    /// Its verdict.
    pub verdict: &'static str,
    /// What it is about.
    pub scope: &'static str,
    /// The raw hint in seconds.
    pub retry_after_s: Option<f64>,
}

impl Line<'_> {
    /// The body's bytes, base64 undone; `None` if they are no base64.
    pub fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        let Some(raw) = self.body.map(RawValue::get).filter(|raw| *raw != "null") else {
            return Some(Cow::Borrowed(b""));
        };
        let Ok(text) = serde_json::from_str::<String>(raw) else {
            return Some(Cow::Borrowed(raw.as_bytes()));
        };
        match self.body_encoding.as_deref() {
            Some("base64") => from_base64(&text).map(Cow::Owned),
            _ => Some(Cow::Owned(text.into_bytes())),
        }
    }

    /// The headers that are valid.
    pub fn header_map(&self) -> HeaderMap {
        let mut map = HeaderMap::new();
        let mut add = |name: &str, value: &str| {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
                map.append(name, value);
            }
        };
        for (name, value) in self.headers.iter().flatten() {
            match value {
                HeaderText::One(value) => add(name, value),
                HeaderText::Number(value) => add(name, &value.to_string()),
                HeaderText::Many(values) => values.iter().for_each(|value| add(name, value)),
            }
        }
        map
    }

    /// Judges the line with its `body` decoded. `now_unix_ms`: milliseconds since 1970.
    pub fn judge<'r>(
        &self,
        rules: &'r Rules,
        headers: &HeaderMap,
        body: &[u8],
        now_unix_ms: u64,
    ) -> Output<'r> {
        let socket = self.protocol.as_deref().is_some_and(|protocol| protocol.starts_with('w'));
        let protocol = if socket { Protocol::Ws } else { Protocol::Http };
        let reason = String::from_utf8_lossy(body);
        let head = Head {
            provider: self.provider.as_deref(),
            host: self.host.as_deref(),
            method: self.method.as_deref(),
            status: self.http_status,
            ws_close: self.ws_close_code.map(|code| (code, reason.as_ref())),
            batch: self.request_ids.is_some(),
            ..Head::new(protocol, headers, now_unix_ms)
        };
        let mut stream = rules.whole();
        stream.push(rules, &head, body);
        let mut verdict = stream.finish(rules, &head);
        let mut items: Vec<OutputItem> = stream
            .items()
            .iter()
            .map(|item| output_item(raw_id(body, item.id.clone()), item.judgement))
            .collect();
        let batch = stream.is_batch() || self.request_ids.is_some();
        if let Some(asked) = &self.request_ids {
            verdict = self.add_missing(asked, &mut items, stream.is_batch(), verdict);
        }
        Output {
            verdict: verdict.verdict.as_str(),
            scope: verdict.scope.as_str(),
            retry_after_s: seconds(verdict),
            rule: rules.name(verdict.rule),
            items: batch.then_some(items),
        }
    }
}

impl Line<'_> {
    /// Adds what a batch asked for and did not get; one object that answers a batch answers all of it.
    fn add_missing(
        &self,
        asked: &[&RawValue],
        items: &mut Vec<OutputItem>,
        answered_one_by_one: bool,
        verdict: Judgement,
    ) -> Judgement {
        let for_all = !answered_one_by_one && verdict.verdict != Verdict::Ok;
        if for_all {
            *items = asked.iter().map(|id| output_item((*id).to_owned(), verdict)).collect();
            return verdict;
        }
        let missing = Judgement::missing();
        let answered: Vec<String> = items.iter().map(|item| item.id.get().to_owned()).collect();
        let absent = asked.iter().filter(|id| !answered.iter().any(|answer| answer == id.get()));
        let before = items.len();
        items.extend(absent.map(|id| output_item((*id).to_owned(), missing)));
        if items.len() > before { verdict.worse(missing) } else { verdict }
    }
}

fn output_item(id: Box<RawValue>, judgement: Judgement) -> OutputItem {
    OutputItem {
        id,
        verdict: judgement.verdict.as_str(),
        scope: judgement.scope.as_str(),
        retry_after_s: seconds(judgement),
    }
}

/// The raw id, or `null` where there is none or it is no JSON.
fn raw_id(body: &[u8], span: Option<std::ops::Range<usize>>) -> Box<RawValue> {
    let text = span.and_then(|span| body.get(span)).and_then(|raw| std::str::from_utf8(raw).ok());
    text.and_then(|text| RawValue::from_string(text.to_owned()).ok())
        .unwrap_or_else(|| RawValue::NULL.to_owned())
}

fn seconds(judgement: Judgement) -> Option<f64> {
    judgement.wait.map(|wait| wait.as_secs_f64())
}

/// RFC 4648, either alphabet, white space and padding ignored.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut held) = (0u32, 0u32);
    for symbol in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(value), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    Some(bytes)
}
