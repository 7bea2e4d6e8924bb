//! A provider closes a kept connection while a request is on its way: the request goes over a fresh one, once, and paid for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Value, json};

use crate::harness::{Client, GLANCE, Proxy, call, calls, right, soon};
use crate::raw::{Came, Does, Raw};

/// The longest window that a ceiling may have, in seconds: it is renewed once in 366 days.
const LONG: u64 = 31_622_400;

/// What the proxy asks of its own accord.
fn is_probe(came: &Came) -> bool {
    matches!(came.method.as_str(), "eth_blockNumber" | "eth_syncing")
}

/// It came over a connection that was used before.
fn is_again(came: &Came) -> bool {
    came.kept && !is_probe(came)
}

fn closes_what_is_kept(came: &Came) -> Does {
    if is_again(came) { Does::Close("") } else { Does::Answer }
}

fn entry(raw: &Raw, fields: &Value) -> Value {
    let mut entry = json!({"provider": "x", "role": "primary", "http_url": raw.url()});
    for (name, value) in fields.as_object().expect("fields") {
        entry[name] = value.clone();
    }
    entry
}

/// A proxy with one worker before these providers, whose first probes are over.
async fn before(providers: &[(&Raw, Value)], env: &[(&str, &str)]) -> (Proxy, Client) {
    let entries = ('a'..).zip(providers).map(|(id, (raw, fields))| (id.to_string(), entry(raw, fields)));
    let file = json!({"main": Value::Object(entries.collect())});
    let own = [("HEALTH_CHECK_INTERVAL", "0"), ("WORKER_THREADS", "1"), ("EXPOSE_ROUTING", "true")];
    let proxy = Proxy::before(&file, &[&own[..], env].concat()).await;
    let client = Client::new(proxy.address);
    soon(async {
        while client.get("/ready").await.status != 200 {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    for (raw, _) in providers {
        raw.has("eth_syncing", 1).await;
    }
    (proxy, client)
}

fn send(method: &str, raw: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": [raw]}).to_string()
}

/// Kills: no second try; one over the other idle connection; an attempt, a failure or an endpoint's health counted for it; a
/// story and a count that say nothing.
#[tokio::test]
async fn a_request_whose_connection_closes_goes_over_a_fresh_one() {
    for does in [Does::Close(""), Does::Reset] {
        let (told, idle) = (does.clone(), AtomicBool::new(false));
        let (idle, both) = (Arc::new(idle), Does::AnswerTogether(2));
        let both_idle = Arc::clone(&idle);
        let raw = Raw::start(move |came| match is_again(came) {
            true => does.clone(),
            false if is_probe(came) || both_idle.load(Relaxed) => Does::Answer,
            false => both.clone(),
        })
        .await;
        let (proxy, client) = before(&[(&raw, json!({}))], &[]).await;
        client.volley_of(2, 1..3).await;
        idle.store(true, Relaxed);
        let reply = client.post(call(3).to_string()).await;
        assert_eq!((reply.status, reply.json()), (200, right(3)), "{told:?}");
        assert_eq!(reply.header("x-headgate-attempts"), Some("1"), "{told:?}");
        let connections = raw.connections("eth_call");
        let [.., closed, fresh] = connections[..] else { panic!("{connections:?}") };
        assert!(connections[0] != connections[1] && connections[..2].contains(&closed), "{connections:?}");
        assert!(!connections[..2].contains(&fresh), "{connections:?}");
        assert_eq!(connections.len(), 4, "{told:?}");

        let operator = Client::new(proxy.metrics);
        let id = reply.header("x-request-id").expect("an id");
        let story = operator.get(&format!("/status/why/{id}")).await.json();
        let steps: Vec<&str> = story["steps"]
            .as_array()
            .expect("steps")
            .iter()
            .map(|s| s["what"].as_str().expect("text"))
            .collect();
        assert_eq!(steps, ["sent again over a fresh connection", "answered"], "{story}");
        assert_eq!(story["steps"][0]["endpoint"], "a", "{story}");
        let metrics = operator.get("/metrics").await;
        let closed = r#"headgate_retries_total{chain="main",reason="closed"} 1"#;
        assert!(metrics.text().contains(closed), "{}", metrics.text());
        assert!(!metrics.text().contains(r#"verdict="upstream_fault"} 1"#), "{}", metrics.text());
    }
}

/// Kills: a second try of the second try, and one of a request that was sent over a fresh connection at first.
#[tokio::test]
async fn who_closes_every_connection_is_tried_once_more_and_not_again() {
    let raw = Raw::start(|came| match came.connection {
        // Connection 0 is the probes'.
        0 => Does::Answer,
        1 if !came.kept => Does::Answer,
        _ => Does::Close(""),
    })
    .await;
    let (_proxy, client) = before(&[(&raw, json!({}))], &[]).await;
    assert_eq!(client.post(call(1).to_string()).await.json(), right(1));
    for asked in [3, 4] {
        let reply = client.post(call(2).to_string()).await;
        assert_eq!(reply.refusal(), (502, -32603, "all_attempts_failed".into()));
        assert_eq!(raw.connections("eth_call").len(), asked, "{:?}", raw.came());
    }
}

/// Kills: silence, or an answer that broke off, taken for a connection that was closed when the request came.
#[tokio::test]
async fn silence_and_half_an_answer_are_not_asked_again() {
    for does in [
        Does::Nothing,
        Does::Close("HTTP/1.1 2"),
        Does::Close("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{"),
    ] {
        let told = format!("{does:?}");
        let raw = Raw::start(move |came| if is_again(came) { does.clone() } else { Does::Answer }).await;
        let (_proxy, client) = before(&[(&raw, json!({}))], &[("PROXY_TIMEOUT_PER_TRY", "1")]).await;
        assert_eq!(client.post(call(1).to_string()).await.json(), right(1));
        let reply = client.post(call(2).to_string()).await;
        assert_eq!(reply.refusal(), (502, -32603, "all_attempts_failed".into()), "{told}");
        assert_eq!(raw.connections("eth_call").len(), 2, "{told}: {:?}", raw.came());
    }
}

/// Kills: a second sending that costs nothing, one that goes although nothing is left, one that pays less than its batch.
#[tokio::test]
async fn what_may_have_been_counted_is_paid_twice() {
    let single = |id| call(id).to_string();
    for (ceiling, bodies, expected, sent) in [
        // Two probes, a call; the second call's first sending takes the last token.
        (4, [single(1), single(2), single(3)], [200, 502, 429], 4),
        (6, [single(1), single(2), single(3)], [200, 200, 502], 6),
        // A batch is sent twice, or once if only a part of it could be.
        (7, [single(1), calls(2..4), single(4)], [200, 200, 429], 7),
        (6, [single(1), calls(2..4), single(4)], [200, 502, 200], 6),
    ] {
        let raw = Raw::start(closes_what_is_kept).await;
        let capacity = json!({"capacity": {"max_requests": ceiling, "window_seconds": LONG}});
        let (proxy, client) = before(&[(&raw, capacity)], &[("SATURATION_WAIT_MS", "0")]).await;
        let mut statuses = Vec::new();
        for body in bodies {
            statuses.push(client.post(body).await.status);
        }
        let status = Client::new(proxy.metrics).get("/status").await.json();
        let used = &status["chains"]["main"]["endpoints"]["a"]["ceilings"][0]["used"];
        assert_eq!((&statuses[..], used), (&expected[..], &json!(sent)), "{ceiling}: {:?}", raw.came());
    }
}

/// Kills: a call sent again that may not be; a transaction whose first sending is forgotten, or a private one's told to others.
#[tokio::test]
async fn what_may_have_been_carried_out_is_sent_again_only_if_it_may_be() {
    let known = json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32000, "message": "already known"}});
    let limited =
        json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -32005, "message": "rate limit exceeded"}});
    for (method, second, fields, status, sent, elsewhere) in [
        ("eth_sendTransaction", Does::Answer, json!({}), 502, 1, 0),
        ("eth_sendRawTransaction", Does::Says(200, known), json!({}), 200, 2, 0),
        ("eth_sendRawTransaction", Does::Says(429, limited.clone()), json!({}), 200, 2, 1),
        ("eth_sendRawTransaction", Does::Says(429, limited), json!({"private": true}), 502, 2, 0),
    ] {
        let raw = Raw::start(move |came| {
            let asked = came.method == method && !came.kept;
            if asked { second.clone() } else { closes_what_is_kept(came) }
        })
        .await;
        let other = Raw::start(|_| Does::Answer).await;
        let ways = [(&raw, fields), (&other, json!({"role": "fallback"}))];
        let (_proxy, client) = before(&ways, &[]).await;
        assert_eq!(client.post(call(1).to_string()).await.json(), right(1));
        let reply = client.post(send(method, "0x02ab")).await;
        let came = (reply.status, raw.connections(method).len(), other.connections(method).len());
        assert_eq!(came, (status, sent, elsewhere), "{method}: {reply:?}");
        assert!(status != 200 || reply.json()["result"].is_string(), "{reply:?}");
    }
}

/// Kills: a probe that fails because its connection was closed, and one that is sent twice and counted once.
#[tokio::test]
async fn a_probe_whose_connection_closes_is_no_failed_probe() {
    let raw = Raw::start(|came| if came.kept { Does::Close("") } else { Does::Answer }).await;
    let capacity = json!({"capacity": {"max_requests": 10, "window_seconds": LONG}});
    let (proxy, _client) = before(&[(&raw, capacity)], &[]).await;
    raw.has("eth_syncing", 2).await;
    let operator = Client::new(proxy.metrics);
    soon(async {
        while !operator.get("/metrics").await.text().contains(r#"result="good"} 1"#) {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    let metrics = operator.get("/metrics").await;
    for result in ["bad", "unreachable"] {
        assert!(!metrics.text().contains(&format!(r#"result="{result}"}} 1"#)), "{}", metrics.text());
    }
    let status = operator.get("/status").await.json();
    assert_eq!(status["chains"]["main"]["endpoints"]["a"]["ceilings"][0]["used"], 3, "{status}");
}

/// Kills: whatever else loses a request to a provider that closes each connection after an answer and does not say so, at
/// whatever moment the end comes.
#[tokio::test]
async fn a_provider_that_never_keeps_a_connection_serves_everything() {
    let raw = Raw::start(|_| Does::AnswerAndClose).await;
    let (_proxy, client) = before(&[(&raw, json!({}))], &[]).await;
    for id in 1..100 {
        assert_eq!(client.post(call(id).to_string()).await.json(), right(id));
    }
    client.volley(101..1_000).await;
}
