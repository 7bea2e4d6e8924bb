//! The collection of recorded answers, read once and judged like the lines of `classify`.

use std::collections::BTreeMap;
use std::io::Read;

use detect::Rules;
use detect::line::{Line, Output};
use serde::Deserialize;

/// Milliseconds since 1970 in the tests: 2026-10-08 12:00:00 UTC.
pub const NOW_MS: u64 = 1_791_460_800_000;

/// What the collection says about one answer.
#[derive(Debug, Deserialize)]
pub struct Label {
    pub id: String,
    pub expect: String,
    #[serde(default)]
    pub also_ok: Vec<String>,
    pub retry_after_s: Option<f64>,
    pub scope: String,
    pub batch_expect: Option<BTreeMap<String, String>>,
    pub batch_expect_by_index: Option<Vec<String>>,
}

impl Label {
    pub fn allows(&self, class: &str) -> bool {
        self.expect == class || self.also_ok.iter().any(|also| also == class)
    }

    pub fn is_limit(&self) -> bool {
        [self.expect.as_str()].into_iter().chain(self.also_ok.iter().map(String::as_str)).any(is_limit)
    }
}

pub fn is_limit(class: &str) -> bool {
    matches!(class, "rate_limited" | "quota_exhausted")
}

/// The collection's word for a verdict.
pub fn class(verdict: &str) -> &str {
    match verdict {
        "ok" | "client_fault" => "pass_through",
        "upstream_fault" => "retry_elsewhere",
        other => other,
    }
}

pub fn collection() -> Vec<(Label, Line<'static>)> {
    let lines = include_str!("../data/signals.jsonl").lines();
    let read = |line| {
        let label = serde_json::from_str(line).expect("a label");
        (label, serde_json::from_str(line).expect("an answer"))
    };
    lines.map(read).collect()
}

/// Judges a line; gzip, the only coding in the collection, is undone as the proxy would.
pub fn judge<'r>(rules: &'r Rules, line: &Line<'_>) -> Output<'r> {
    let headers = line.header_map();
    let mut body = line.bytes().expect("base64 where it says so").into_owned();
    if headers.get("content-encoding").is_some_and(|coding| coding == "gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).expect("gzip");
        body = plain;
    }
    line.judge(rules, &headers, &body, NOW_MS)
}
