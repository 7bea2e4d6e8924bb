//! Connections to providers: kept, replaced when they went stale, and never mixed up.

use serde_json::json;
use simulator::{Answer, Behaviour};

use crate::harness::{World, call, calls, right};

/// Kills: a connection per request.
#[tokio::test]
async fn connections_to_providers_are_kept() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let before = world["a"].connections();
    for id in 0..100 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
    }
    // One for each of the two workers.
    assert!(world["a"].connections() - before <= 2, "{} connections", world["a"].connections() - before);
}

/// Kills: a request lost, or given up as unsafe, because a kept connection had been closed meanwhile.
#[tokio::test]
async fn stale_connections_are_replaced() {
    let world = World::build_unwatched().primary("a", Behaviour::Healthy).start().await;
    for round in 0..10 {
        world.client.volley(1..10).await;
        world["a"].set(Behaviour::RefuseConnections).await.expect("closes all connections");
        world["a"].set(Behaviour::Healthy).await.expect("listens again");
        // On the connection, so by the worker, that the next request takes: by then it has seen the closing.
        assert_eq!(world.client.get("/health").await.status, 200);
        let send = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_sendTransaction", "params": [round]});
        let reply = world.client.post(send.to_string()).await;
        let expected = simulator::expected("eth_sendTransaction", &json!([round]));
        assert_eq!(reply.json()["result"], expected, "round {round}: {reply:?}");
        assert_eq!(world.client.post(call(round).to_string()).await.json(), right(round), "round {round}");
    }
    assert_eq!(world["a"].count("eth_sendTransaction"), 10);
}

/// Kills: a provider that closes after each answer taken for a broken one.
#[tokio::test]
async fn providers_that_close_after_each_answer_are_fine() {
    let answer = Answer::json(200, right(1).to_string()).header("connection", "close");
    let world = World::build_unwatched().primary("a", Behaviour::Answer(answer)).start().await;
    for _ in 0..20 {
        assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    }
    assert_eq!(world.asked("a"), 20);
}

/// Kills: an abandoned attempt whose late answer reaches the next request on its connection.
#[tokio::test]
async fn a_late_answer_reaches_nobody_else() {
    let late = Behaviour::delayed(std::time::Duration::from_secs(9), Behaviour::Healthy);
    let world = World::build_unwatched()
        .primary("a", Behaviour::fraction(3, late))
        .fallback("b", Behaviour::Healthy)
        .env("PROXY_TIMEOUT_PER_TRY", "3")
        .start()
        .await;
    world.client.volley_of(100, 0..400).await;
    assert!(world.asked("b") > 0, "nothing was late");
}

/// Kills: a bound on batches that is off by one, or quadratic work on them.
#[tokio::test]
async fn the_largest_batch_passes() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let answers = world.client.post(calls(0..1000)).await.json();
    assert_eq!(answers, (0..1000).map(right).collect::<serde_json::Value>());
    assert_ne!(world.client.post(calls(0..1001)).await.status, 200);
    assert_eq!(world.asked("a"), 1000);
}
