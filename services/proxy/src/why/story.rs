//! A record in words: as `/status/why/<id>` and `headgate-proxy why` tell it to an operator. Names endpoints and rules, never URLs.

use super::{Record, Step, What};
use crate::fleet::Fleet;
use crate::metrics::Metrics;
use crate::select::Skip;
use aimd::steady::Level;
use detect::{Judgement, RuleId};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

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

/// Tells a record, whose chain, endpoints and rules have these names.
pub(crate) fn tell(record: &Record, metrics: &Metrics, fleet: &Fleet) -> Story {
    let rule = |rule| fleet.rule_name(rule, record.rules);
    let endpoint = |number| metrics.endpoint_name(number);
    Story {
        request_id: record.id.to_string(),
        chain: record.chain.and_then(|number| metrics.chain_name(number)),
        asked: record.asked.clone(),
        started_unix_ms: record.started,
        took_ms: millis(record.took),
        status: record.status,
        reason: record.reason,
        steps: record.steps.iter().map(|step| line(step, endpoint, rule)).collect(),
    }
}

fn line(step: &Step, name: impl Fn(u32) -> Option<String>, rule: impl Fn(RuleId) -> String) -> Line {
    let line = match &step.what {
        What::Skipped { endpoint, skip, level } => skipped(*skip, level.as_deref()).of(name(*endpoint)),
        What::Answered { endpoint, status, judgement, took } => {
            answered(*status, judgement, rule).of(name(*endpoint)).took(*took)
        }
        What::Failed { endpoint, how, took } => Line::new("failed").why(how).of(name(*endpoint)).took(*took),
        What::SentAgain { endpoint, how } => {
            Line::new("sent again over a fresh connection").why(how).of(name(*endpoint))
        }
        What::Waited { took } => Line::new("waited for capacity").took(*took),
        What::Queued { took } => Line::new("waited at a cap").took(*took),
        What::LastResort { endpoint } => {
            Line::new("asked although it is unhealthy: nobody healthy answered").of(name(*endpoint))
        }
        What::Overflow { endpoint } => Line::new("asked above its estimated ceiling").of(name(*endpoint)),
        What::Resolved { how } => Line::new("resolved").why(how),
    };
    Line { at_ms: millis(step.at), ..line }
}

impl Line {
    fn new(what: &'static str) -> Line {
        Line { what, ..Line::default() }
    }

    fn of(self, endpoint: Option<String>) -> Line {
        Line { endpoint, ..self }
    }

    fn why(self, why: &str) -> Line {
        Line { why: Some(why.to_owned()), ..self }
    }

    fn took(self, took: Duration) -> Line {
        Line { took_ms: Some(millis(took)), ..self }
    }
}

fn skipped(skip: Skip, level: Option<&Level>) -> Line {
    let (why, opens_unix_ms) = skip_words(skip);
    Line { opens_unix_ms, level: level.map(of_level), ..Line::new("skipped").why(why) }
}

fn answered(status: u16, judgement: &Judgement, rule: impl Fn(RuleId) -> String) -> Line {
    let (verdict, rule) = (Some(judgement.verdict.as_str()), Some(rule(judgement.rule)));
    Line { status: Some(status), verdict, rule, ..Line::new("answered") }
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

pub(super) fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
