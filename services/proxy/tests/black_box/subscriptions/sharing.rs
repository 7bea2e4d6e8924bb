//! Who shares an upstream subscription, and what clients are told under their own ids.

use std::collections::BTreeSet;

use serde_json::json;

use super::{follower, logs_of, number, subscribe, told, until, with_sockets};
use crate::harness::{Socket, World, call, right};

/// Kills: an upstream subscription per client, ids that clients share or that change, heads lost or told twice.
#[tokio::test]
async fn equal_subscriptions_share_one_upstream() {
    let world = with_sockets(World::build(), &["a", "b"]).start().await;
    let mut clients = Vec::new();
    for _ in 0..6 {
        clients.push(follower(&world).await);
    }
    let ids: BTreeSet<String> = clients.iter().map(|(_, id)| id.to_string()).collect();
    assert_eq!(ids.len(), 6, "each has its own id");
    for _ in 0..5 {
        let head = world.chain.advance();
        for (socket, id) in &mut clients {
            let block = told(socket, id).await;
            assert_eq!((number(&block), &block["hash"]), (head, &json!(world.chain.hash(head))));
        }
    }
    assert_eq!(world["a"].subscriptions() + world["b"].subscriptions(), 1);
    let (mut first, id) = clients.swap_remove(0);
    let end = json!({"jsonrpc": "2.0", "id": 5, "method": "eth_unsubscribe", "params": [id]});
    assert_eq!(first.ask(&end).await["result"], true);
    assert_eq!(first.ask(&end).await["result"], false, "it has it no more");
    world.chain.advance();
    assert_eq!(first.ask(call(1)).await, right(1), "kills: telling who left");
    drop(clients);
    until(|| world["a"].subscriptions() + world["b"].subscriptions() == 0).await;
}

/// Kills: sharing although it is switched off.
#[tokio::test]
async fn sharing_can_be_switched_off() {
    let world = with_sockets(World::build(), &["a"]).env("WS_SHARE_SUBSCRIPTIONS", "false").start().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(follower(&world).await);
    }
    assert!(world["a"].subscriptions() >= 3, "{}", world["a"].subscriptions());
    let head = world.chain.advance();
    for (socket, id) in &mut clients {
        assert_eq!(number(&told(socket, id).await), head);
    }
}

/// Kills: different filters that share, or logs that reach who did not ask for them.
#[tokio::test]
async fn logs_are_told_by_filter() {
    let world = with_sockets(World::build(), &["a"]).start().await;
    let (mut all, mut none) =
        (Socket::open(world.proxy.address).await, Socket::open(world.proxy.address).await);
    let everything = subscribe(&mut all, json!(["logs", {}])).await;
    let nowhere = json!(["logs", {"address": "0x00000000000000000000000000000000deadbeef"}]);
    subscribe(&mut none, nowhere).await;
    for _ in 0..3 {
        let head = world.chain.advance();
        logs_of(&world, head, &mut all, &everything).await;
    }
    assert_eq!(none.ask(call(1)).await, right(1), "kills: telling everybody everything");
}

/// Kills: a subscription of another kind that is refused, or shared.
#[tokio::test]
async fn pending_transactions_are_each_clients_own() {
    let world = with_sockets(World::build(), &["a"]).start().await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut socket = Socket::open(world.proxy.address).await;
        let id = subscribe(&mut socket, json!(["newPendingTransactions"])).await;
        clients.push((socket, id));
    }
    world.chain.gossip(3);
    for (socket, id) in &mut clients {
        let mut heard = BTreeSet::new();
        for _ in 0..3 {
            heard.insert(told(socket, id).await.to_string());
        }
        assert_eq!(heard.len(), 3);
    }
}

/// Kills: an upstream's error that is lost, or comes without the client's id.
#[tokio::test]
async fn what_a_provider_refuses_is_told_under_the_clients_id() {
    let world = with_sockets(World::build(), &["a"]).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    let wrong = json!({"jsonrpc": "2.0", "id": 1.50, "method": "eth_subscribe", "params": ["noSuchThing"]});
    let answer = socket.ask(wrong).await;
    assert_eq!((&answer["id"], answer["error"]["code"].is_i64()), (&json!(1.5), true), "{answer}");
    let (mut socket, id) = follower(&world).await;
    world.chain.advance();
    told(&mut socket, &id).await;
}

/// Kills: a chain without a WebSocket that keeps a client waiting.
#[tokio::test]
async fn without_a_websocket_upstream_there_is_nobody_to_ask() {
    let world = World::build().primary("a", simulator::Behaviour::Healthy).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]});
    let answer = socket.ask(ask).await;
    assert_eq!(answer["error"]["data"]["reason"], "no_live_endpoint", "{answer}");
    assert_eq!(socket.ask(call(1)).await, right(1));
}

/// Kills: a client that is told of a block by one node and asks another for it.
#[tokio::test]
async fn who_follows_heads_asks_the_node_that_told_it() {
    let world = with_sockets(World::build(), &["a", "b", "c"]).start().await;
    let (mut socket, id) = follower(&world).await;
    world.chain.advance();
    told(&mut socket, &id).await;
    let name = super::serving(&world, &["a", "b", "c"]).await;
    let before = world[name].count("eth_call");
    for id in 0..12 {
        assert_eq!(socket.ask(call(id)).await, right(id));
    }
    assert_eq!(world[name].count("eth_call") - before, 12);
}
