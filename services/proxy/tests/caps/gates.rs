//! The gates on the way upstream, with a ceiling from the settings.

use crate::harness::{World, call, calls, right, soon};
use crate::seen::{Asking, check_shed, in_flight, limit, shed, stream, until, waiting};
use simulator::Behaviour;
use std::cell::Cell;
use std::time::Duration;

const GATE: &str = "upstream";

async fn world(behaviour: Behaviour, most: &str, queue: &str) -> World {
    World::build_unwatched()
        .primary("a", behaviour)
        .env("MAX_UPSTREAM_IN_FLIGHT", most)
        .env("GATE_QUEUE", queue)
        .env("PROXY_TIMEOUT_PER_TRY", "60")
        .env("PROXY_TIMEOUT", "60")
        .start()
        .await
}

/// Kills: a cap that is not looked at, a queue without a bound, a wait without an end, a place that a client which went
/// away takes with it.
#[tokio::test]
async fn some_are_inside_some_wait_the_others_are_shed() {
    let world = world(Behaviour::Hang, "2", "1").await;
    let inside = [1, 2].map(|id| Asking::of(&world, id));
    soon(world["a"].in_flight(2)).await;
    // On a busy machine the one in the queue may be gone before the next one comes: then both waited.
    until(async || {
        let queued = Asking::of(&world, 3);
        until(async || waiting(&world.proxy, GATE).await == Some(1.0)).await;
        check_shed(&world.client.post(call(4).to_string()).await);
        check_shed(&queued.reply().await);
        shed(&world.proxy, GATE, "queue_full").await == Some(1.0)
    })
    .await;
    assert_eq!(limit(&world.proxy, GATE).await, Some(2.0));
    assert_eq!(in_flight(&world.proxy, GATE).await, Some(2.0));
    assert!(shed(&world.proxy, GATE, "timeout").await >= Some(1.0));
    assert_eq!(world.asked("a"), 2, "who was shed was sent");
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    drop(inside);
    until(async || in_flight(&world.proxy, GATE).await == Some(0.0)).await;
    for id in 10..20 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
    }
    assert_eq!(waiting(&world.proxy, GATE).await, Some(0.0));
}

/// Kills: a waiter that is never told, and one that is shed although its turn comes.
#[tokio::test]
async fn who_waits_is_served_when_somebody_leaves() {
    let world = world(Behaviour::delayed(Duration::from_millis(100), Behaviour::Healthy), "1", "5").await;
    // Where the machine stands still for a second, that is as long as anybody may wait: then all ask again.
    let turned_away = Cell::new(0);
    until(async || {
        let before = turned_away.get();
        let asking = [1, 2, 3].map(|id| Asking::of(&world, id));
        for (asking, id) in asking.into_iter().zip(1..) {
            let reply = asking.reply().await;
            if reply.status == 503 {
                turned_away.set(turned_away.get() + 1);
            } else {
                assert_eq!(reply.json(), right(id));
            }
        }
        turned_away.get() == before
    })
    .await;
    assert_eq!(shed(&world.proxy, GATE, "timeout").await, Some(f64::from(turned_away.get())));
}

/// Kills: a place that is free as soon as the answer's head has come.
#[tokio::test]
async fn a_place_lasts_as_long_as_the_answers_body() {
    let world = world(Behaviour::Healthy, "1", "0").await;
    // More than sockets buffer: it ends only when the client reads it.
    let streaming = stream(&world, 30_000_000).await;
    assert_eq!(in_flight(&world.proxy, GATE).await, Some(1.0));
    check_shed(&world.client.post(call(1).to_string()).await);
    drop(streaming);
    until(async || in_flight(&world.proxy, GATE).await == Some(0.0)).await;
    assert_eq!(world.client.post(call(2).to_string()).await.json(), right(2));
}

/// Kills: a retry that waits for the place of the attempt before it, and a batch that takes a place per call.
#[tokio::test]
async fn one_place_is_enough_for_one_request() {
    let world = World::build_unwatched()
        .primary("a", Behaviour::status(500))
        .fallback("b", Behaviour::Healthy)
        .env("MAX_UPSTREAM_IN_FLIGHT", "1")
        .env("GATE_QUEUE", "0")
        .start()
        .await;
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!(
        world.client.post(calls(1..20)).await.json(),
        serde_json::Value::from_iter((1..20).map(right))
    );
    // A signed transaction of the same batch goes its own way, after the rest.
    assert_eq!(shed(&world.proxy, GATE, "queue_full").await, Some(0.0));
}

/// Kills: a batch whose refusal has no JSON-RPC error per call.
#[tokio::test]
async fn a_batch_is_shed_call_by_call() {
    let world = world(Behaviour::Hang, "1", "0").await;
    let _inside = Asking::of(&world, 1);
    soon(world["a"].in_flight(1)).await;
    let reply = world.client.post(calls(1..4)).await;
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(reply.header("retry-after").is_some());
    let reasons: Vec<_> = reply
        .json()
        .as_array()
        .expect("a batch")
        .iter()
        .map(|item| item["error"]["data"]["reason"].clone())
        .collect();
    assert_eq!(reasons, ["overloaded"; 3]);
}

/// Kills: a gate that counts where nothing can ever limit it, and one that is not told of.
#[tokio::test]
async fn without_a_cap_there_is_none() {
    let world = World::build_unwatched().primary("a", Behaviour::Hang).start().await;
    let _inside = [1, 2, 3].map(|id| Asking::of(&world, id));
    soon(world["a"].in_flight(3)).await;
    assert_eq!(
        (limit(&world.proxy, GATE).await, in_flight(&world.proxy, GATE).await),
        (Some(0.0), Some(3.0))
    );
    for gate in ["websocket", "websocket.handshake"] {
        assert_eq!(limit(&world.proxy, gate).await, Some(0.0), "{gate}");
    }
    assert_eq!(limit(&world.proxy, "upstream.main").await, None, "it can never have one");
}
