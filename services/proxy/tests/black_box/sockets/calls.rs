//! A call on a socket goes the way of every other call.

use std::time::Duration;

use futures_util::SinkExt;
use serde_json::json;
use simulator::{Answer, Behaviour, ItemFault, RpcError};
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{GLANCE, Socket, World, call, right};

async fn two() -> World {
    World::build().primary("a", Behaviour::Healthy).primary("b", Behaviour::Healthy).start().await
}

/// Kills: ids rewritten, answers mixed up, a call that is counted when the socket closes or not at all.
#[tokio::test]
async fn calls_are_answered_with_their_own_ids_and_count_at_once() {
    let world = two().await;
    let mut socket = Socket::open(world.proxy.address).await;
    for id in 0..20 {
        assert_eq!(socket.ask(call(id)).await, right(id));
    }
    assert_eq!(world.asked_together(), 20);
    assert!(world.asked("a") > 0 && world.asked("b") > 0, "kills: one upstream per socket");
    for id in [r#""a\"b""#, "1.50", "-0", "null", "123456789012345678901234567890"] {
        let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId","params":[]}}"#);
        socket.send(&ask).await;
        let answer = crate::harness::soon(futures_util::StreamExt::next(&mut socket.stream)).await;
        let text = answer.expect("an answer").expect("a message").into_text().expect("text");
        assert!(
            text.contains(&format!(r#""id":{id},"#)) || text.ends_with(&format!(r#""id":{id}}}"#)),
            "{text}"
        );
    }
    let metrics = world.operator("/metrics").await;
    let line = |start: &str| metrics.text().lines().any(|line| line.starts_with(start));
    assert!(line(r#"headgate_websocket_connections{chain="main"} 1"#), "{}", metrics.text());
    assert!(line(r#"headgate_http_requests_total{chain="main",code="101"} 1"#), "{}", metrics.text());
    assert!(line(r#"headgate_http_requests_total{chain="main",code="200"} 25"#), "{}", metrics.text());
}

/// Kills: a batch that is split on the wire, or answered out of order.
#[tokio::test]
async fn a_batch_is_one_message_there_and_back() {
    let some =
        Behaviour::Items { one_in: 2, fault: ItemFault::Error(RpcError::new(-32005, "rate limit exceeded")) };
    let world = World::build_unwatched().primary("a", some).primary("b", Behaviour::Healthy).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    for round in 0..4 {
        let ids = [round * 10, round * 10 + 1, round * 10 + 2, round * 10 + 3];
        assert_eq!(socket.ask(json!(ids.map(call))).await, json!(ids.map(right)));
    }
}

/// Kills: a socket tied to the provider that broke.
#[tokio::test]
async fn a_failing_provider_is_not_noticed() {
    for fault in [
        Behaviour::status(500),
        Behaviour::CloseConnection,
        Behaviour::rate_limited(None),
        Behaviour::embedded_limit(),
        Behaviour::html(),
        Behaviour::Answer(Answer::json(401, r#"{"error":"invalid API key"}"#)),
    ] {
        let world = World::build_unwatched().primary("a", fault.clone()).primary("b", Behaviour::Healthy);
        let world = world.start().await;
        let mut socket = Socket::open(world.proxy.address).await;
        for id in 0..10 {
            assert_eq!(socket.ask(call(id)).await, right(id), "{fault:?}");
        }
        assert!(world.asked("a") > 0, "{fault:?} was never met");
    }
}

/// Kills: an error of ours without the call's id, or of another shape than over HTTP.
#[tokio::test]
async fn a_call_that_nobody_serves_gets_its_error_and_the_socket_lives() {
    let world = World::build_unwatched().primary("a", Behaviour::Healthy).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    world["a"].set(Behaviour::Answer(Answer::new(502, "<html>bad gateway</html>"))).await.expect("behaves");
    let answer = socket.ask(call(7)).await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32603)), "{answer}");
    assert_eq!(answer["error"]["data"]["reason"], "all_attempts_failed");
    let id = answer["error"]["data"]["request_id"].as_str().expect("an id").to_owned();
    let why = world.operator(&format!("/status/why/{id}")).await.json();
    assert_eq!(
        (&why["asked"], &why["status"]),
        (&json!("eth_call"), &json!(502)),
        "kills: no decision record"
    );
    // A refusal in plain text cannot be passed on here.
    world["a"].set(Behaviour::Answer(Answer::new(400, "no"))).await.expect("behaves");
    let answer = socket.ask(call(8)).await;
    assert_eq!((&answer["id"], answer["error"].is_object()), (&json!(8), true), "{answer}");
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    assert_eq!(socket.ask(call(9)).await, right(9));
}

/// Kills: an answer to what asked for none, and silence after what cannot be read.
#[tokio::test]
async fn what_is_no_call_is_answered_as_over_http() {
    let world = two().await;
    let mut socket = Socket::open(world.proxy.address).await;
    socket.send(r#"{"jsonrpc":"2.0","method":"eth_chainId","params":[]}"#).await;
    for (body, code, id) in [
        ("", -32700, json!(null)),
        ("nonsense", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"{"id":"x","method":7}"#, -32600, json!("x")),
    ] {
        let answer = socket.ask(body).await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
    }
    for (bytes, expected) in
        [(call(3).to_string().into_bytes(), right(3)["result"].clone()), (vec![0xff, 0], json!(null))]
    {
        socket.stream.send(Message::binary(bytes)).await.expect("is sent");
        let answer = socket.hear().await;
        assert_eq!(answer["result"], expected, "binary messages are read as texts: {answer}");
    }
}

/// Kills: answers held back until those before them are there.
#[tokio::test]
async fn answers_come_as_they_are_ready() {
    let slow = Behaviour::delayed(Duration::from_secs(3), Behaviour::Healthy);
    let world = World::build().primary("a", Behaviour::on_method("eth_gasPrice", slow)).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    socket.send(json!({"jsonrpc": "2.0", "id": "slow", "method": "eth_gasPrice", "params": []})).await;
    for id in 0..3 {
        assert_eq!(socket.ask(call(id)).await, right(id));
    }
    assert_eq!(socket.hear().await["id"], "slow");
}

/// Kills: calls of one client without a bound.
#[tokio::test]
async fn calls_in_flight_are_bounded_and_none_is_lost() {
    let world = World::build().primary("a", Behaviour::Hang).env("PROXY_TIMEOUT", "5").start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    for id in 0..200 {
        socket.send(call(id)).await;
    }
    while world.asked("a") < 64 {
        tokio::time::sleep(GLANCE).await;
    }
    let asked = world.asked("a");
    assert_eq!(asked, 64, "so many at once");
    // Those that wait are answered once the first ones are given up.
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    let mut answered: Vec<u64> = Vec::new();
    while answered.len() < 200 {
        answered.push(socket.hear().await["id"].as_u64().expect("a number"));
    }
    answered.sort_unstable();
    assert_eq!(answered, (0..200).collect::<Vec<_>>());
}

/// Kills: a client's disconnect that counts against whoever was serving it.
#[tokio::test]
async fn a_client_that_vanishes_marks_nobody() {
    let world =
        World::build().primary("a", Behaviour::Hang).env("ENDPOINT_FAILURE_THRESHOLD", "1").start().await;
    for id in 0..5 {
        let mut socket = Socket::open(world.proxy.address).await;
        socket.send(call(id)).await;
        while world.asked("a") <= usize::try_from(id).expect("small") {
            tokio::time::sleep(GLANCE).await;
        }
        // With a reset, as a process that was killed ends.
        socket.stream.get_ref().set_zero_linger().expect("a socket option");
    }
    world["a"].in_flight(0).await;
    let status = world.operator("/status").await.json();
    assert_eq!(status["chains"]["main"]["endpoints"]["a"]["healthy"]["http"], true, "{status}");
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    assert_eq!(Socket::open(world.proxy.address).await.ask(call(9)).await, right(9));
}

/// Kills: `?archive=true` that is read for POST only.
#[tokio::test]
async fn a_socket_may_ask_for_archive_nodes() {
    let archive = json!({"type": "archive"});
    let world =
        World::build().primary("full", Behaviour::Healthy).endpoint("old", Behaviour::Healthy, archive);
    let world = world.start().await;
    let mut socket = Socket::open_at(world.proxy.address, "/main/?archive=true", &[]).await.expect("opens");
    for id in 0..6 {
        assert_eq!(socket.ask(call(id)).await, right(id));
    }
    assert_eq!((world.asked("full"), world.asked("old")), (0, 6));
}
