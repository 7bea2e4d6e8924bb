//! A call that was sent may have happened: only what is safe is repeated.

use serde_json::{Value, json};
use simulator::{Behaviour, RpcError};

use crate::harness::{Builder, World};

fn world(first: Behaviour, fields: Value) -> Builder {
    World::build_unwatched()
        .endpoint("a", first, fields)
        .fallback("b", Behaviour::Healthy)
        // What hangs is given up, and a machine that stands still for two seconds is not taken for it.
        .env("PROXY_TIMEOUT_PER_TRY", "3")
}

fn send(method: &str, raw: &str) -> String {
    json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": [raw]}).to_string()
}

fn hash(raw: &str) -> Value {
    simulator::expected("eth_sendRawTransaction", &json!([raw]))
}

/// Kills: an unsafe call sent twice. What can have arrived is not repeated, whatever came back.
#[tokio::test]
async fn unsafe_calls_are_never_sent_twice() {
    for fault in [
        Behaviour::Hang,
        Behaviour::Swallow,
        Behaviour::ResetBeforeAnswer,
        Behaviour::CloseConnection,
        Behaviour::Truncated,
        Behaviour::ResetMidBody { after_bytes: 10 },
        Behaviour::garbage(),
    ] {
        let text = format!("{fault:?}");
        let world = world(fault, json!({})).start().await;
        let reply = world.client.post(send("eth_sendTransaction", "0x01")).await;
        assert!([502, 504].contains(&reply.status), "{text}: {reply:?}");
        assert_eq!((reply.json()["id"].clone(), world.asked("b")), (json!(5), 0), "{text}");
        assert_eq!(world.asked("a"), 1, "{text}");
    }
}

/// Kills: caution where none is needed: what was refused or never arrived may be sent elsewhere.
#[tokio::test]
async fn unsafe_calls_go_elsewhere_when_they_cannot_have_happened() {
    let limited = Behaviour::embedded_limit();
    for fault in [Behaviour::RefuseConnections, Behaviour::rate_limited(None), limited] {
        let text = format!("{fault:?}");
        let world = world(fault, json!({})).start().await;
        let reply = world.client.post(send("eth_sendTransaction", "0x01")).await;
        assert_eq!((reply.status, world.asked("b")), (200, 1), "{text}: {reply:?}");
    }
}

/// Kills: "already known" passed on when it was our own first attempt that made it known.
#[tokio::test]
async fn a_raw_transaction_is_repeated_and_known_is_success() {
    for (raw, fault) in
        [("0x02aa", Behaviour::Swallow), ("0x02ab", Behaviour::Hang), ("0x02ac", Behaviour::status(502))]
    {
        let text = format!("{fault:?}");
        let world = world(fault, json!({})).start().await;
        let reply = world.client.post(send("eth_sendRawTransaction", raw)).await;
        assert_eq!(
            (reply.status, reply.json()),
            (200, json!({"jsonrpc": "2.0", "id": 5, "result": hash(raw)})),
            "{text}"
        );
        assert_eq!(world["b"].count("eth_sendRawTransaction"), 1, "{text}");
    }
}

/// Kills: every "already known" taken for success, also the first answer.
#[tokio::test]
async fn a_known_transaction_at_the_first_attempt_is_the_providers_answer() {
    let world = world(Behaviour::Healthy, json!({})).start().await;
    let first = world.client.post(send("eth_sendRawTransaction", "0x02ad")).await;
    assert_eq!(first.json()["result"], hash("0x02ad"));
    let again = world.client.post(send("eth_sendRawTransaction", "0x02ad")).await;
    assert_eq!(again.json()["error"]["message"], "already known");
    assert_eq!(world.asked("b"), 0);
}

/// Kills: "nonce too low" after a repeat believed, or disbelieved, without a look.
#[tokio::test]
async fn nonce_too_low_after_a_repeat_is_looked_up() {
    let low = || {
        Behaviour::on_method(
            "eth_sendRawTransaction",
            Behaviour::Error(RpcError::new(-32000, "nonce too low")),
        )
    };
    for (first, happened) in [(Behaviour::Swallow, true), (Behaviour::Hang, false)] {
        let world = World::build_unwatched()
            .primary("a", first)
            .fallback("b", low())
            .env("PROXY_TIMEOUT_PER_TRY", "3")
            .start()
            .await;
        let reply = world.client.post(send("eth_sendRawTransaction", "0x02ae")).await.json();
        if happened {
            assert_eq!(reply["result"], hash("0x02ae"));
        } else {
            assert_eq!(reply["error"]["message"], "nonce too low");
        }
    }
}

/// Kills: a private transaction shown to anybody else.
#[tokio::test]
async fn a_private_endpoint_keeps_what_it_was_given() {
    for fault in [Behaviour::Swallow, Behaviour::status(500), Behaviour::ResetBeforeAnswer] {
        let text = format!("{fault:?}");
        let world = world(fault, json!({"private": true})).start().await;
        let reply = world.client.post(send("eth_sendRawTransaction", "0x02af")).await;
        assert_eq!(world.asked("b"), 0, "{text}: {reply:?}");
        assert!(reply.status >= 500, "{text}: {reply:?}");
    }
}

/// Kills: a transaction given to a private endpoint after a public one had it.
#[tokio::test]
async fn a_private_endpoint_is_asked_first_or_not_at_all() {
    let world = World::build_unwatched()
        .primary("a", Behaviour::Swallow)
        .endpoint("p", Behaviour::Healthy, json!({"role": "fallback", "private": true}))
        .fallback("b", Behaviour::Healthy)
        .env("PROXY_TIMEOUT_PER_TRY", "3")
        .start()
        .await;
    for raw in ["0x02b0", "0x02b1", "0x02b2", "0x02b3"] {
        let reply = world.client.post(send("eth_sendRawTransaction", raw)).await;
        assert_eq!(reply.json()["result"], hash(raw));
    }
    assert_eq!(world.asked("p"), 0);
}
