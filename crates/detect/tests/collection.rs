//! Every recorded answer means what its label says; and what is left of that when parts are hidden.

use std::collections::BTreeMap;
use std::io::Read;

use detect::Rules;
use detect::line::{Line, Output};
use serde::Deserialize;

/// Milliseconds since 1970 in the tests: 2026-10-08 12:00:00 UTC.
const NOW_MS: u64 = 1_791_460_800_000;

/// What the collection says about one answer.
#[derive(Debug, Deserialize)]
struct Label {
    id: String,
    expect: String,
    #[serde(default)]
    also_ok: Vec<String>,
    retry_after_s: Option<f64>,
    scope: String,
    batch_expect: Option<BTreeMap<String, String>>,
    batch_expect_by_index: Option<Vec<String>>,
}

impl Label {
    fn allows(&self, class: &str) -> bool {
        self.expect == class || self.also_ok.iter().any(|also| also == class)
    }

    fn is_limit(&self) -> bool {
        [self.expect.as_str()].into_iter().chain(self.also_ok.iter().map(String::as_str)).any(is_limit)
    }
}

fn is_limit(class: &str) -> bool {
    matches!(class, "rate_limited" | "quota_exhausted")
}

/// The collection's word for a verdict.
fn class(verdict: &str) -> &str {
    match verdict {
        "ok" | "client_fault" => "pass_through",
        "upstream_fault" => "retry_elsewhere",
        other => other,
    }
}

fn collection() -> Vec<(Label, Line<'static>)> {
    let lines = include_str!("data/signals.jsonl").lines();
    let read = |line| {
        let label = serde_json::from_str(line).expect("a label");
        (label, serde_json::from_str(line).expect("an answer"))
    };
    lines.map(read).collect()
}

/// Judges a line; gzip, the only coding in the collection, is undone as the proxy would.
fn judge<'r>(rules: &'r Rules, line: &Line<'_>) -> Output<'r> {
    let headers = line.header_map();
    let mut body = line.bytes().expect("base64 where it says so").into_owned();
    if headers.get("content-encoding").is_some_and(|coding| coding == "gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).expect("gzip");
        body = plain;
    }
    line.judge(rules, &headers, &body, NOW_MS)
}

/// How many answers of each class were given each class, printed as a table.
#[derive(Default)]
struct Confusion(BTreeMap<(String, String), usize>);

impl Confusion {
    fn add(&mut self, expected: &str, found: &str) {
        *self.0.entry((expected.to_owned(), found.to_owned())).or_default() += 1;
    }

    fn print(&self, title: &str) {
        println!("{title}: expected, found, answers");
        for ((expected, found), count) in &self.0 {
            println!("  {expected:16} {found:16} {count:4}{}", if expected == found { "" } else { "  *" });
        }
    }
}

/// What was found for one answer; a class that the label also allows counts as the expected one.
fn found<'a>(label: &'a Label, output: &Output<'_>) -> &'a str {
    let class = class(output.verdict);
    if label.allows(class) { &label.expect } else { Box::leak(class.to_owned().into_boxed_str()) }
}

/// Judges the collection through `hide`; returns how many are wrong and how many are false alarms.
fn judge_all(title: &str, hide: impl Fn(&mut Line<'_>)) -> (usize, usize) {
    let rules = Rules::builtin();
    let mut confusion = Confusion::default();
    let (mut wrong, mut false_alarms) = (0, 0);
    for (label, mut line) in collection() {
        hide(&mut line);
        let output = judge(&rules, &line);
        let found = found(&label, &output);
        confusion.add(&label.expect, found);
        if found != label.expect {
            wrong += 1;
            false_alarms += usize::from(is_limit(found) && !label.is_limit());
            println!("{title}: {} expected {} got {} by {}", label.id, label.expect, found, output.rule);
        }
    }
    confusion.print(title);
    (wrong, false_alarms)
}

#[test]
fn every_recorded_answer_means_what_it_says() {
    assert_eq!(judge_all("all", |_| {}), (0, 0));
}

/// Rules follow meaning: hiding who answered, or the status, loses little and never raises an alarm.
#[test]
fn hiding_the_provider_or_the_status_loses_little() {
    let (wrong, false_alarms) = judge_all("no provider", |line| (line.provider, line.host) = (None, None));
    assert!(wrong <= 2 && false_alarms == 0, "{wrong} wrong, {false_alarms} false alarms");
    let (wrong, false_alarms) = judge_all("no method", |line| line.method = None);
    assert!(wrong <= 2 && false_alarms == 0, "{wrong} wrong, {false_alarms} false alarms");
    let (wrong, false_alarms) = judge_all("no status", |line| line.http_status = None);
    assert!(wrong <= 20 && false_alarms == 0, "{wrong} wrong, {false_alarms} false alarms");
}

#[test]
fn waits_are_those_recorded() {
    let rules = Rules::builtin();
    for (label, line) in collection() {
        let output = judge(&rules, &line);
        match (label.retry_after_s, output.retry_after_s) {
            (Some(expected), Some(found)) => {
                assert!((found - expected).abs() <= expected * 0.1, "{}: {found}, not {expected}", label.id);
            }
            (expected, found) => assert_eq!(found, expected, "{}", label.id),
        }
    }
}

/// The collection knows no endpoints: what is the endpoint's it calls the upstream's, as the account's.
#[test]
fn scopes_are_those_recorded() {
    let rules = Rules::builtin();
    for (label, line) in collection() {
        let output = judge(&rules, &line);
        // A mixed batch's label speaks of the whole, ours of its worst item.
        if class(output.verdict) != label.expect || label.batch_expect.is_some() {
            continue;
        }
        let expected: &[&str] = match label.scope.as_str() {
            // A success cools nothing down, whatever the collection would do about the node.
            _ if output.verdict == "ok" => &["request"],
            "upstream" => &["account", "endpoint"],
            "ip" => &["address"],
            "none" => &["request"],
            // What one node does not serve is a matter of the method or of the request.
            "request" if label.expect == "capability" => &["request", "method"],
            other => &[other],
        };
        assert!(expected.contains(&output.scope), "{}: {} not {}", label.id, output.scope, label.scope);
    }
}

#[test]
fn items_of_batches_are_judged_one_by_one() {
    let rules = Rules::builtin();
    let mut batches = 0;
    for (label, line) in collection() {
        let output = judge(&rules, &line);
        let items = output.items.as_deref().unwrap_or_default();
        let found: Vec<&str> = items.iter().map(|item| class(item.verdict)).collect();
        if let Some(expected) = &label.batch_expect_by_index {
            assert_eq!(&found, expected, "{}", label.id);
            batches += 1;
        }
        for (id, expected) in label.batch_expect.iter().flatten() {
            let item = items.iter().find(|item| item.id.get() == id);
            let class = item.map_or("retry_elsewhere", |item| class(item.verdict));
            assert_eq!(class, expected, "{} id {id}", label.id);
            batches += 1;
        }
    }
    assert!(batches >= 8, "the collection has batches");
}
