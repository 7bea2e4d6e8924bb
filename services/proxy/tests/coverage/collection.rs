//! Every limit of the collection of real answers, as its provider sent it: the client notices nothing, the endpoint
//! that was limited is left alone, and nobody else pays for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use simulator::{Answer, Behaviour, Chain, Provider, Script, expected};

use crate::harness::{Client, Proxy, Reply, entry};

/// One recorded limit, a chain of its own where its provider is asked first, and that provider.
struct Case {
    id: String,
    chain: String,
    record: Value,
    answer: Answer,
    provider: Provider,
}

impl Case {
    async fn start(node: &Arc<Chain>, number: usize, line: &str) -> Option<Self> {
        let record: Value = serde_json::from_str(line).expect("a recording");
        let limit = ["rate_limited", "quota_exhausted"].map(Value::from).contains(&record["expect"]);
        if !limit || record["protocol"] != "http" {
            return None;
        }
        let answer = Answer::recorded(line).expect("a recording");
        let provider = Provider::start(Script::new(node)).await.expect("a provider starts");
        let id = record["id"].as_str().expect("an id").to_owned();
        Some(Self { id, chain: format!("case-{number}"), record, answer, provider })
    }

    fn endpoints(&self, healthy: &Provider) -> Value {
        let provider = self.record["provider"].as_str().unwrap_or_default();
        let limited = entry(&self.provider, &json!({"provider": provider}));
        json!({"limited": limited, "healthy": entry(healthy, &json!({"role": "fallback"}))})
    }

    /// Whether the collection lets the answer be taken for something else than a limit, or the limit is on a batch's
    /// method alone: a batch has no one method that could be kept away.
    fn may_be_asked_again(&self) -> bool {
        let limits = ["rate_limited", "quota_exhausted"].map(Value::from);
        let other =
            self.record["also_ok"].as_array().into_iter().flatten().any(|also| !limits.contains(also));
        other || (self.record["method"] == "batch" && self.is_of_a_method())
    }

    /// Whether the limit is on one method: in its words, or by its label.
    fn is_of_a_method(&self) -> bool {
        let body = self.record["body"].as_str().unwrap_or_default();
        self.record["scope"] == "method" || body.contains("method eth_call in batch")
    }

    /// What was asked when this was answered, as far as that is known: the ids are those of the answer.
    fn question(&self) -> Value {
        let body = self.record["body"].as_str().unwrap_or_default();
        let recorded: Value = serde_json::from_str(body).unwrap_or_default();
        match recorded.as_array() {
            // Their ids may be equal or strings: then those of the items stand for them.
            Some(items) => (1..).zip(items).map(|(id, _)| question(id)).collect(),
            None => question(recorded["id"].as_u64().unwrap_or(1)),
        }
    }
}

fn question(id: u64) -> Value {
    let params = json!([{"to": format!("{id:#042x}"), "data": "0x"}, "latest"]);
    json!({"jsonrpc": "2.0", "id": id, "method": "eth_call", "params": params})
}

/// The items that a batch's answer did not refuse are the client's as they were; everything else is the healthy
/// endpoint's.
fn is_right(asked: &Value, reply: &Reply) -> bool {
    let healthy = |call: &Value| json!({"jsonrpc": "2.0", "id": call["id"], "result": expected("eth_call", &call["params"])});
    let (status, got) = (reply.status, reply.json());
    match (asked.as_array(), got.as_array()) {
        (None, None) => status == 200 && got == healthy(asked),
        (Some(calls), Some(items)) => {
            let right = |(call, item): (&Value, &Value)| {
                *item == healthy(call) || (item["id"] == call["id"] && !limited(&item["error"]))
            };
            status == 200 && calls.len() == items.len() && calls.iter().zip(items).all(right)
        }
        _ => false,
    }
}

fn limited(error: &Value) -> bool {
    error["code"].as_i64().is_some_and(|code| code != 3)
}

async fn status(proxy: &Proxy) -> Value {
    Client::new(proxy.metrics).get("/status").await.json()["chains"].clone()
}

/// Asks a case's chain twice and says what was wrong.
async fn wrong(case: &Case, client: &Client) -> Option<String> {
    let question = case.question();
    let path = format!("/{}", case.chain);
    for _ in 0..2 {
        let reply = client.post_to(&path, question.to_string()).await;
        if !is_right(&question, &reply) {
            return Some(format!("{question} got {reply:?}"));
        }
    }
    let asked = case.provider.count("eth_call");
    let calls = question.as_array().map_or(1, Vec::len);
    let once = asked == calls || (case.may_be_asked_again() && asked == 2 * calls);
    (!once).then(|| format!("the limited endpoint was asked {asked} times for {calls} calls"))
}

/// Whether the status page shows the consequence: a park of the account or its address. A method's park is not
/// shown there, but it was seen in that nobody asked again.
fn is_parked(case: &Case, status: &Value) -> bool {
    case.is_of_a_method()
        || case.may_be_asked_again()
        || !status[&case.chain]["limited"]["parked_until"].is_null()
}

/// Kills: a recorded limit that is passed on, that is taken for a fault or an answer, that is asked again at once,
/// or that is charged to an endpoint that did not send it.
#[tokio::test]
async fn every_recorded_limit_is_felt_by_nobody() {
    let node = Chain::new(1337);
    let lines = include_str!("../../../../crates/detect/tests/data/signals.jsonl").lines();
    let cases = join_all((0..).zip(lines).map(|(number, line)| Case::start(&node, number, line))).await;
    let cases: Vec<Case> = cases.into_iter().flatten().collect();
    assert!(cases.len() > 90, "only {} limits in the collection", cases.len());
    let healthy = Provider::start(Script::new(&node)).await.expect("a provider starts");
    let file: Map<String, Value> =
        cases.iter().map(|case| (case.chain.clone(), case.endpoints(&healthy))).collect();
    let env = [("HEALTH_CHECK_INTERVAL", "0"), ("EPHEMERAL_CHECKS_ENABLED", "false")];
    let proxy = Proxy::before(&file.into(), &env).await;
    let client = Client::new(proxy.address);
    // Every first check is over: none meets an answer that is meant for a client.
    proxy.logged("health changed", 2 * cases.len()).await;

    let mut failures = BTreeMap::new();
    for case in &cases {
        case.provider.forget();
        case.provider.set(Behaviour::Answer(case.answer.clone())).await.expect("behaves");
        if let Some(wrong) = wrong(case, &client).await {
            failures.insert(case.id.as_str(), wrong);
        }
    }
    let chains = status(&proxy).await;
    for case in &cases {
        let endpoints = json!({case.chain.as_str(): chains[&case.chain]["endpoints"]});
        let other = &endpoints[&case.chain]["healthy"];
        if !other["parked_until"].is_null() || other["healthy"]["http"] != true {
            failures.insert(&case.id, format!("the healthy endpoint was marked: {other}"));
        } else if !is_parked(case, &endpoints) {
            failures.entry(&case.id).or_insert_with(|| format!("parked nobody: {endpoints}"));
        }
    }
    assert!(failures.is_empty(), "{} of {}: {failures:#?}", failures.len(), cases.len());
}
