//! A lost provider is not noticed: everything is told once and in order.

use std::fs;

use serde_json::{Value, json};
use simulator::{Answer, Behaviour, RpcError};

use super::{follower, logs_of, number, serving, subscribe, told, until, with_sockets};
use crate::harness::{GLANCE, Socket, World, soon};

const BOTH: [&str; 2] = ["a", "b"];

/// What health says of an endpoint's WebSocket, and whether it is parked.
async fn standing(world: &World, name: &str) -> (Value, bool) {
    let status = world.operator("/status").await.json();
    let endpoint = &status["chains"]["main"]["endpoints"][name];
    (endpoint["healthy"]["ws"].clone(), !endpoint["parked_until"].is_null())
}

/// Kills: a client that is closed with its provider, a head that is lost or told twice.
#[tokio::test]
async fn a_close_of_any_code_is_not_noticed() {
    let world = with_sockets(World::build_unwatched(), &BOTH).start().await;
    let (mut socket, id) = follower(&world).await;
    for code in [1000, 1001, 1006, 1011, 1012, 4000] {
        let name = serving(&world, &BOTH).await;
        if code == 1006 {
            world[name].reset_sockets();
        } else {
            world[name].close_sockets(code, "");
        }
        // Some come before it is back, some after.
        for _ in 0..3 {
            let head = world.chain.advance();
            let block = told(&mut socket, &id).await;
            assert_eq!((number(&block), &block["hash"]), (head, &json!(world.chain.hash(head))), "{code}");
        }
    }
}

/// Kills: a provider's own time limit taken for a failure.
#[tokio::test]
async fn a_normal_close_marks_nobody() {
    let world = with_sockets(World::build(), &["a"]).env("ENDPOINT_FAILURE_THRESHOLD", "1").start().await;
    let (mut socket, id) = follower(&world).await;
    for code in [1000, 1001, 1012] {
        world["a"].close_sockets(code, "time is up");
        let head = world.chain.advance();
        assert_eq!(number(&told(&mut socket, &id).await), head);
        assert_eq!(standing(&world, "a").await, (json!(true), false), "{code}");
    }
}

/// Kills: a limit at a socket that is taken for a fault, or not seen.
#[tokio::test]
async fn a_close_for_a_limit_parks_and_the_other_serves() {
    let world = with_sockets(World::build(), &BOTH).start().await;
    let (mut socket, id) = follower(&world).await;
    let name = serving(&world, &BOTH).await;
    world[name].set(Behaviour::rate_limited(Some(60))).await.expect("behaves");
    world[name].close_sockets(1013, "too many requests, rate limit exceeded");
    let head = world.chain.advance();
    assert_eq!(number(&told(&mut socket, &id).await), head);
    assert!(standing(&world, name).await.1, "parked");
}

/// Kills: a refused handshake that ends the search, and a refusal inside the socket that is passed on.
#[tokio::test]
async fn who_refuses_is_passed_over() {
    let world = with_sockets(World::build_unwatched(), &BOTH).start().await;
    world["a"].refuse_sockets(Some(Answer::rate_limited(Some(60))));
    let (mut socket, id) = follower(&world).await;
    let head = world.chain.advance();
    assert_eq!(number(&told(&mut socket, &id).await), head);
    assert_eq!((world["a"].subscriptions(), world["b"].subscriptions()), (0, 1));
    let world = with_sockets(World::build_unwatched(), &BOTH).start().await;
    world["a"].limit_subscriptions(0, RpcError::new(-32005, "too many subscriptions"));
    let (mut socket, id) = follower(&world).await;
    let head = world.chain.advance();
    assert_eq!(number(&told(&mut socket, &id).await), head);
    assert_eq!((world["a"].subscriptions(), world["b"].subscriptions()), (0, 1));
}

/// Kills: a handshake that may take as long as the provider likes.
#[tokio::test]
async fn a_handshake_without_an_end_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let endless = format!("ws://{}", listener.local_addr().expect("an address"));
    let world = World::build_unwatched().node("a", |script| script, json!({"ws_url": endless}));
    let world = with_sockets(world, &["b"]).env("PROXY_TIMEOUT_PER_TRY", "3").start().await;
    let mut held = Vec::new();
    let hold = async {
        loop {
            held.push(listener.accept().await.expect("a connection"));
        }
    };
    let (mut socket, id) = tokio::select! {
        () = hold => unreachable!("it holds for ever"),
        follower = follower(&world) => follower,
    };
    assert!(!held.is_empty(), "it was tried first");
    let head = world.chain.advance();
    assert_eq!(number(&told(&mut socket, &id).await), head);
}

/// Kills: blocks that came while nobody listened, and logs of them.
#[tokio::test]
async fn what_came_in_between_is_filled_in() {
    let world = with_sockets(World::build_unwatched(), &BOTH).start().await;
    let (mut heads, id) = follower(&world).await;
    let mut logs = Socket::open(world.proxy.address).await;
    let filter = subscribe(&mut logs, json!(["logs", {}])).await;
    let first = world.chain.advance();
    assert_eq!(number(&told(&mut heads, &id).await), first);
    logs_of(&world, first, &mut logs, &filter).await;
    // Nobody can be subscribed to while these come.
    for name in BOTH {
        world[name].refuse_sockets(Some(Answer::new(503, "")));
        world[name].reset_sockets();
    }
    until(|| BOTH.iter().all(|name| world[name].sockets() == 0)).await;
    for _ in 0..5 {
        world.chain.advance();
    }
    for name in BOTH {
        world[name].refuse_sockets(None);
    }
    let last = world.chain.advance();
    for expected in first + 1..=last {
        let block = told(&mut heads, &id).await;
        assert_eq!((number(&block), &block["hash"]), (expected, &json!(world.chain.hash(expected))));
        logs_of(&world, expected, &mut logs, &filter).await;
    }
    // Nothing comes twice: the next thing told is the next block.
    let next = world.chain.advance();
    assert_eq!(number(&told(&mut heads, &id).await), next);
    logs_of(&world, next, &mut logs, &filter).await;
}

/// Kills: a reorganisation during a switch that is hidden, or told as anything but the new blocks in order.
#[tokio::test]
async fn a_reorganisation_in_between_is_told_as_a_node_would() {
    let world = with_sockets(World::build_unwatched(), &BOTH).start().await;
    let (mut socket, id) = follower(&world).await;
    for _ in 0..4 {
        world.chain.advance();
        told(&mut socket, &id).await;
    }
    let (before, name) = (world.chain.head(), serving(&world, &BOTH).await);
    world[name].set(Behaviour::RefuseConnections).await.expect("behaves");
    world.chain.reorganise(2);
    for expected in before - 1..=before + 1 {
        let block = told(&mut socket, &id).await;
        assert_eq!((number(&block), &block["hash"]), (expected, &json!(world.chain.hash(expected))));
    }
}

/// Kills: a socket that is open and says nothing, for ever.
#[tokio::test]
async fn a_silent_provider_is_left() {
    let world = with_sockets(World::build_unwatched(), &BOTH).env("WS_PING_INTERVAL", "2").start().await;
    let (mut socket, id) = follower(&world).await;
    world[serving(&world, &BOTH).await].silence(true);
    let heads = [world.chain.advance(), world.chain.advance()];
    for head in heads {
        assert_eq!(number(&told(&mut socket, &id).await), head);
    }
}

/// Kills: a node that stands still and is believed, while another goes on.
#[tokio::test]
async fn a_node_that_stands_still_is_left() {
    let world =
        with_sockets(World::build_unwatched(), &BOTH).env("HEALTH_CHECK_INTERVAL", "200ms").start().await;
    let (mut socket, id) = follower(&world).await;
    let first = world.chain.advance();
    assert_eq!(number(&told(&mut socket, &id).await), first);
    let name = serving(&world, &BOTH).await;
    world[name].freeze(true);
    for _ in 0..4 {
        world.chain.advance();
    }
    for expected in first + 1..=first + 4 {
        assert_eq!(number(&told(&mut socket, &id).await), expected);
    }
}

/// Kills: subscriptions that end with an endpoint that a reload took away.
#[tokio::test]
async fn a_reload_hands_over() {
    let world = with_sockets(World::build(), &BOTH).start().await;
    let (mut socket, id) = follower(&world).await;
    let name = serving(&world, &BOTH).await;
    let file = world.proxy.file();
    let mut endpoints: Value = serde_json::from_slice(&fs::read(&file).expect("a file")).expect("JSON");
    endpoints["main"].as_object_mut().expect("endpoints").remove(name);
    fs::write(&file, endpoints.to_string()).expect("a file");
    world.proxy.signal("HUP");
    until(|| world[name].subscriptions() == 0).await;
    for _ in 0..3 {
        let head = world.chain.advance();
        assert_eq!(number(&told(&mut socket, &id).await), head);
    }
}

/// Kills: a client's end that counts against a provider, and a subscription that nobody wants and nobody ends.
#[tokio::test]
async fn a_client_that_vanishes_marks_nobody() {
    let world = with_sockets(World::build(), &["a"]).env("ENDPOINT_FAILURE_THRESHOLD", "1").start().await;
    for _ in 0..5 {
        let (socket, _) = follower(&world).await;
        socket.stream.get_ref().set_zero_linger().expect("a socket option");
        drop(socket);
        let gone = async {
            while world["a"].subscriptions() > 0 {
                tokio::time::sleep(GLANCE).await;
            }
        };
        soon(gone).await;
    }
    assert_eq!(standing(&world, "a").await, (json!(true), false));
}
