//! What happened to a request: who was asked, who was passed over and why, what they said. Kept for the last
//! requests of each worker and told to an operator who has the request's id.

mod recent;

pub(crate) use recent::Glimpse;

use crate::select::Skip;
use aimd::steady::Level;
use detect::{Judgement, RuleId};
use http::HeaderValue;
use recent::Recent;
use serde::Serialize;
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;

/// Requests remembered per worker.
const REMEMBERED: usize = 4096;
/// Steps remembered per request.
const MOST_STEPS: usize = 64;

/// Digits of a request's number, with a dash after each of its parts.
const LONGEST_ID: usize = 8 + 1 + 4 + 1 + 16 + 1;

/// The number of a request: the process, the worker and a counter, written as hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestId {
    pub(crate) process: u32,
    pub(crate) worker: u16,
    pub(crate) count: u64,
}

impl RequestId {
    /// As [`Display`](std::fmt::Display) writes it: once per request, and so without what formatting costs.
    pub(crate) fn to_header(self) -> HeaderValue {
        let mut text = Digits { bytes: [b'-'; LONGEST_ID], len: 0 };
        text.push(u64::from(self.process), 8);
        text.push(u64::from(self.worker), 1);
        text.push(self.count, 1);
        HeaderValue::from_bytes(&text.bytes[..text.len - 1]).expect("digits and dashes")
    }
}

/// Hexadecimal numbers, a dash after each.
struct Digits {
    bytes: [u8; LONGEST_ID],
    len: usize,
}

impl Digits {
    /// Adds a number with at least `least` digits.
    fn push(&mut self, number: u64, least: u32) {
        let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(least);
        for place in (0..digits).rev() {
            self.bytes[self.len] = b"0123456789abcdef"[(number >> (4 * place)) as usize % 16];
            self.len += 1;
        }
        self.len += 1;
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}-{:x}-{:x}", self.process, self.worker, self.count)
    }
}

impl std::str::FromStr for RequestId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<RequestId, Self::Err> {
        let mut parts = text.trim().splitn(3, '-');
        let mut next = || parts.next().unwrap_or("");
        Ok(RequestId {
            process: u32::from_str_radix(next(), 16)?,
            worker: u16::from_str_radix(next(), 16)?,
            count: u64::from_str_radix(next(), 16)?,
        })
    }
}

/// One thing that happened, at a time since the request's start.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Duration,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Skipped {
        endpoint: Rc<str>,
        skip: Skip,
        /// What the steady law knew of an endpoint that is full by its estimate.
        level: Option<Box<Level>>,
    },
    Answered {
        endpoint: Rc<str>,
        status: u16,
        judgement: Judgement,
        took: Duration,
    },
    Failed {
        endpoint: Rc<str>,
        how: String,
        took: Duration,
    },
    Waited {
        took: Duration,
    },
    /// At a gate of ours.
    Queued {
        took: Duration,
    },
    LastResort {
        endpoint: Rc<str>,
    },
    Overflow {
        endpoint: Rc<str>,
    },
    Resolved {
        how: &'static str,
    },
}

/// The story of one request.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: RequestId,
    pub(crate) chain: Option<Rc<str>>,
    /// The generation of the detection rules that judged its answers.
    pub(crate) rules: u32,
    /// The method, or how many calls a batch had.
    pub(crate) asked: String,
    /// Unix milliseconds.
    pub(crate) started: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) status: u16,
    pub(crate) reason: Option<&'static str>,
    pub(crate) took: Duration,
}

impl Record {
    pub(crate) fn push(&mut self, at: Duration, what: What) {
        if self.steps.len() < MOST_STEPS {
            self.steps.push(Step { at, what });
        }
    }
}

/// The last requests of one worker.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    records: Vec<Record>,
    next: usize,
    recent: Recent,
}

impl Ring {
    /// A record to fill; it reuses the memory of the one that is forgotten for it.
    pub(crate) fn start(&mut self, id: RequestId, started: u64) -> Record {
        let mut record = if self.records.len() < REMEMBERED {
            None
        } else {
            let empty = Record::empty(id);
            Some(std::mem::replace(&mut self.records[self.next], empty))
        }
        .unwrap_or_else(|| Record::empty(id));
        record.steps.clear();
        record.asked.clear();
        Record { id, started, chain: None, status: 0, reason: None, took: Duration::ZERO, ..record }
    }

    pub(crate) fn finish(&mut self, record: Record) {
        let place = if self.records.len() < REMEMBERED { self.records.len() } else { self.next };
        self.recent.finished(place, &record);
        if self.records.len() < REMEMBERED {
            self.records.push(record);
        } else {
            self.records[self.next] = record;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    pub(crate) fn find(&self, id: RequestId) -> Option<&Record> {
        self.records.iter().find(|record| record.id == id)
    }

    /// The last requests that were retried, refused or failed.
    pub(crate) fn recent(&self) -> Vec<Glimpse> {
        self.recent.glimpses(&self.records)
    }
}

impl Record {
    pub(crate) fn empty(id: RequestId) -> Record {
        Record {
            id,
            chain: None,
            rules: 0,
            asked: String::new(),
            started: 0,
            steps: Vec::new(),
            status: 0,
            reason: None,
            took: Duration::ZERO,
        }
    }
}

/// A record as the operator reads it.
#[derive(Debug, Serialize)]
pub(crate) struct Story {
    request_id: String,
    chain: Option<String>,
    asked: String,
    started_unix_ms: u64,
    took_ms: f64,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    steps: Vec<Line>,
}

#[derive(Debug, Default, Serialize)]
struct Line {
    at_ms: f64,
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opens_unix_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<f64>,
}

/// Tells a record; `rule` names detection rules.
pub(crate) fn tell(record: &Record, rule: impl Fn(RuleId) -> String) -> Story {
    Story {
        request_id: record.id.to_string(),
        chain: record.chain.as_deref().map(str::to_owned),
        asked: record.asked.clone(),
        started_unix_ms: record.started,
        took_ms: millis(record.took),
        status: record.status,
        reason: record.reason,
        steps: record.steps.iter().map(|step| line(step, &rule)).collect(),
    }
}

fn line(step: &Step, rule: impl Fn(RuleId) -> String) -> Line {
    let at_ms = millis(step.at);
    let named = |endpoint: &Rc<str>| Some(endpoint.to_string());
    match &step.what {
        What::Skipped { endpoint, skip, level } => {
            let (why, opens_unix_ms) = skip_words(*skip);
            Line {
                at_ms,
                what: "skipped",
                endpoint: named(endpoint),
                why: Some(why.into()),
                opens_unix_ms,
                level: level.as_deref().map(of_level),
                ..Line::default()
            }
        }
        What::Answered { endpoint, status, judgement, took } => Line {
            at_ms,
            what: "answered",
            endpoint: named(endpoint),
            status: Some(*status),
            verdict: Some(judgement.verdict.as_str()),
            rule: Some(rule(judgement.rule)),
            took_ms: Some(millis(*took)),
            ..Line::default()
        },
        What::Failed { endpoint, how, took } => Line {
            at_ms,
            what: "failed",
            endpoint: named(endpoint),
            why: Some(how.clone()),
            took_ms: Some(millis(*took)),
            ..Line::default()
        },
        What::Waited { took } => {
            Line { at_ms, what: "waited for capacity", took_ms: Some(millis(*took)), ..Line::default() }
        }
        What::Queued { took } => {
            Line { at_ms, what: "waited at a cap", took_ms: Some(millis(*took)), ..Line::default() }
        }
        What::LastResort { endpoint } => Line {
            at_ms,
            what: "asked although it is unhealthy: nobody healthy answered",
            endpoint: named(endpoint),
            ..Line::default()
        },
        What::Overflow { endpoint } => Line {
            at_ms,
            what: "asked above its estimated ceiling",
            endpoint: named(endpoint),
            ..Line::default()
        },
        What::Resolved { how } => {
            Line { at_ms, what: "resolved", why: Some((*how).into()), ..Line::default() }
        }
    }
}

/// What the steady law knew of an account, as `/status` and the stories tell it; `debt` is in refusals not yet paid for.
pub(crate) fn of_level(level: &Level) -> Value {
    let rounded = |number: f64| (number * 1000.0).round() / 1000.0;
    json!({
        "window_ms": level.window_ms,
        "level": rounded(level.level),
        "trial": rounded(level.ceiling() - level.level),
        "refused": level.refused.is_finite().then(|| rounded(level.refused)),
        "margin": rounded(level.margin),
        "debt": rounded(level.debt),
        "next_trial": level.trial_due(),
    })
}

fn skip_words(skip: Skip) -> (&'static str, Option<u64>) {
    match skip {
        Skip::Tried => ("tried before", None),
        Skip::Unfit => ("cannot serve this call", None),
        Skip::Unhealthy => ("unhealthy", None),
        Skip::Unsupported => ("does not serve this method", None),
        Skip::TooBig => ("costs more than its ceiling ever allows at once", None),
        Skip::Doubt => ("without tokens, which are being fetched", None),
        Skip::Parked { at, soft: true } => ("parked, by our estimate", Some(at)),
        Skip::Parked { at, soft: false } => ("parked", Some(at)),
        Skip::Dry { at, soft: true } => ("at its ceiling, by our estimate", Some(at)),
        Skip::Dry { at, soft: false } => ("at its ceiling", Some(at)),
        Skip::Behind { .. } => ("at its ceiling once those who wait longer have gone on", None),
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(count: u64) -> RequestId {
        RequestId { process: 7, worker: 1, count }
    }

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let written = RequestId { process: 0xab, worker: 3, count: u64::MAX };
        assert_eq!(written.to_string().parse(), Ok(written));
        // Kills: a header that says another number, digits that are lost or too many.
        for (worker, count) in [(0, 0), (3, 1), (0x10, 0x0f00), (u16::MAX, u64::MAX)] {
            let written = RequestId { process: 0xab, worker, count };
            assert_eq!(written.to_header(), written.to_string());
        }
        for wrong in ["", "x", "1-2", "1-2-zz", "1-2-3-4"] {
            assert!(wrong.parse::<RequestId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_last_requests_are_remembered_and_older_ones_are_not() {
        let mut ring = Ring::default();
        for count in 0..REMEMBERED as u64 + 10 {
            let record = ring.start(id(count), 0);
            ring.finish(record);
        }
        assert!(ring.find(id(9)).is_none());
        assert!(ring.find(id(10)).is_some(), "kills: forgetting one too many");
        assert!(ring.find(id(REMEMBERED as u64 + 9)).is_some());
    }

    // Kills: showing what went well, or a request whose place another one took.
    #[test]
    fn only_what_went_otherwise_is_shown_and_only_while_it_is_remembered() {
        let mut ring = Ring::default();
        let finish = |ring: &mut Ring, count: u64, status: u16, tries: usize| {
            let mut record = ring.start(id(count), 0);
            record.status = status;
            for _ in 0..tries {
                let how = "timeout".to_owned();
                record.push(Duration::ZERO, What::Failed { endpoint: "a".into(), how, took: Duration::ZERO });
            }
            ring.finish(record);
        };
        for (count, status, tries) in [(0, 200, 1), (1, 200, 2), (2, 429, 0), (3, 502, 1), (4, 400, 1)] {
            finish(&mut ring, count, status, tries);
        }
        let shown = |ring: &Ring| {
            let ids = ring.recent().into_iter().map(|one| serde_json::json!(one)["request_id"].clone());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(shown(&ring), [1, 2, 3].map(|count| serde_json::json!(id(count).to_string())));
        (5..REMEMBERED as u64 + 3).for_each(|count| finish(&mut ring, count, 200, 1));
        assert_eq!(shown(&ring), [serde_json::json!(id(3).to_string())], "1 and 2 are forgotten");
    }

    #[test]
    fn memory_of_a_forgotten_record_does_not_leak_into_the_next() {
        let mut ring = Ring::default();
        for count in 0..=REMEMBERED as u64 {
            let mut record = ring.start(id(count), 0);
            assert!(record.steps.is_empty() && record.asked.is_empty());
            record.push(Duration::ZERO, What::Waited { took: Duration::ZERO });
            record.asked.push_str("eth_call");
            ring.finish(record);
        }
    }
}
