//! Endpoints that have nothing but a WebSocket serve calls as others do, of HTTP clients too.

use serde_json::json;
use simulator::{Answer, Behaviour, RpcError};

use crate::harness::{Builder, Socket, World, call, calls, right};

fn only(world: Builder, name: &str, behaviour: Behaviour) -> Builder {
    world.endpoint(name, behaviour, json!({"http_url": "", "ws_url": "own"}))
}

/// Kills: an endpoint that is asked for nothing, ids of ours that reach a client, answers that are mixed up.
#[tokio::test]
async fn calls_and_batches_go_over_the_socket() {
    let world = only(World::build(), "a", Behaviour::Healthy).start().await;
    world.client.volley(0..50).await;
    let mut socket = Socket::open(world.proxy.address).await;
    assert_eq!(socket.ask(call(7)).await, right(7));
    let batch = world.client.post(calls(0..3)).await.json();
    assert_eq!(batch, json!([right(0), right(1), right(2)]));
    let note = r#"{"jsonrpc":"2.0","method":"eth_chainId","params":[]}"#;
    assert_eq!(world.client.post(note).await.status, 204);
    // One for each worker, and none for the probes that have ended.
    assert!(world["a"].sockets() <= 2, "{} sockets", world["a"].sockets());
    let metrics = world.operator("/metrics").await;
    assert!(metrics.text().contains(r#"endpoint="a",protocol="ws",verdict="ok""#), "{}", metrics.text());
}

/// Kills: a limit, a fault or a dead endpoint behind a socket that is passed on to the client.
#[tokio::test]
async fn what_goes_wrong_there_is_taken_elsewhere() {
    for fault in [
        Behaviour::embedded_limit(),
        Behaviour::Error(RpcError::new(-32603, "internal error")),
        Behaviour::RefuseConnections,
        Behaviour::CloseConnection,
    ] {
        let world = only(World::build_unwatched(), "a", fault.clone()).primary("b", Behaviour::Healthy);
        let world = world.start().await;
        for id in 0..10 {
            assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id), "{fault:?}");
        }
    }
}

/// Kills: a refused handshake that parks nobody, or that is asked again and again.
#[tokio::test]
async fn a_limit_at_the_handshake_parks() {
    let world = only(World::build(), "a", Behaviour::Healthy).fallback("b", Behaviour::Healthy).start().await;
    world["a"].refuse_sockets(Some(Answer::rate_limited(Some(60))));
    for id in 0..10 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
    }
    let status = world.operator("/status").await.json();
    assert!(status["chains"]["main"]["endpoints"]["a"]["parked_until"].is_u64(), "{status}");
}

/// Kills: calls that hang with the socket that was to answer them.
#[tokio::test]
async fn a_socket_that_is_cut_takes_no_call_along() {
    let world = only(World::build_unwatched(), "a", Behaviour::Healthy).start().await;
    for id in 0..20 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
        if id % 4 == 0 {
            world["a"].close_sockets(1001, "going away");
        }
    }
}
