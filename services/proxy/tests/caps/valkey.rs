//! Flags in Valkey: one hash, several proxies.

use crate::harness::{World, call, right, soon};
use crate::seen::{Asking, in_flight, limit, until};
use crate::server::Server;
use crate::twins::{Twin, on, sharing};
use simulator::Behaviour;

const KEY: &str = "headgate:flags";
const FLAG: &str = "headgate.concurrency.upstream";

fn flagged(server: &Server) -> Vec<(String, String)> {
    let ours = [
        ("HEADGATE_FLAGS_PROVIDER", "valkey"),
        ("MAX_UPSTREAM_IN_FLIGHT", "9"),
        ("EPHEMERAL_CHECKS_ENABLED", "false"),
    ];
    let ours = ours.map(|(name, value)| (name.to_owned(), value.to_owned()));
    on(server).into_iter().chain(ours).collect()
}

async fn world(server: &Server, behaviour: Behaviour) -> World {
    let build = flagged(server).iter().fold(sharing(server), |world, (name, value)| world.env(name, value));
    let build = build.env("PROXY_TIMEOUT", "120").env("PROXY_TIMEOUT_PER_TRY", "120");
    build.primary("a", behaviour).start().await
}

async fn both(world: &World, twin: &Twin, gate: &str, expected: f64) {
    until(async || {
        limit(&world.proxy, gate).await == Some(expected) && limit(&twin.proxy, gate).await == Some(expected)
    })
    .await;
}

/// Kills: a flag that is in force on one replica only, one that cancels what is under way, a bad value that closes a
/// gate, and a release that does not come through.
#[tokio::test]
async fn a_flag_is_in_force_on_every_replica() {
    let server = Server::start(&[]);
    let world = world(&server, Behaviour::Hang).await;
    let twin = Twin::of(&world, flagged(&server)).await;
    both(&world, &twin, "upstream", 9.0).await;
    let inside = [1, 2, 3].map(|id| Asking::of(&world, id));
    soon(world["a"].in_flight(3)).await;
    server.ask(&[
        "HSET",
        KEY,
        FLAG,
        "2",
        "headgate.concurrency.upstream.main",
        "5",
        "headgate.concurrency.websocket",
        "7",
    ]);
    both(&world, &twin, "upstream", 2.0).await;
    both(&world, &twin, "upstream.main", 5.0).await;
    both(&world, &twin, "websocket", 7.0).await;
    assert_eq!(in_flight(&world.proxy, "upstream").await, Some(3.0), "a cap cancels nothing");
    server.ask(&["HSET", KEY, FLAG, "none", "headgate.concurrency.upstream.main", "0"]);
    both(&world, &twin, "upstream", 9.0).await;
    both(&world, &twin, "upstream.main", 0.0).await;
    server.ask(&["HSET", KEY, FLAG, "12"]);
    server.ask(&["HDEL", KEY, "headgate.concurrency.websocket"]);
    both(&world, &twin, "websocket", 0.0).await;
    both(&world, &twin, "upstream", 9.0).await;
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    drop(inside);
    assert_eq!(twin.client.post(call(5).to_string()).await.json(), right(5));
}

/// Kills: a cap that loosens because Valkey is away, one that a replica invents which was started meanwhile, and a start
/// that waits for a store that is away.
#[tokio::test]
async fn an_outage_changes_nothing() {
    let mut server = Server::start(&[]);
    server.ask(&["HSET", KEY, FLAG, "2"]);
    let world = world(&server, Behaviour::Healthy).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(2.0), "in force before the first client");
    server.freeze();
    world.proxy.logged("flags cannot be read", 1).await;
    let ready = "headgate_flags_ready{provider=\"valkey\"} 0";
    until(async || world.operator("/metrics").await.text().contains(ready)).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(2.0));
    server.kill();
    let twin = Twin::of(&world, flagged(&server)).await;
    assert_eq!(limit(&twin.proxy, "upstream").await, Some(9.0), "it was never told");
    assert_eq!(twin.client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!(limit(&world.proxy, "upstream").await, Some(2.0));
    server.restart();
    server.ask(&["HSET", KEY, FLAG, "3"]);
    both(&world, &twin, "upstream", 3.0).await;
    assert_eq!(world.proxy.log().matches("flags cannot be read").count(), 1, "one line per outage");
}

/// Kills: a key of another type that ends the reading for good.
#[tokio::test]
async fn what_is_no_hash_is_an_outage() {
    let server = Server::start(&[]);
    let world = world(&server, Behaviour::Healthy).await;
    server.ask(&["SET", KEY, "2"]);
    world.proxy.logged("flags cannot be read", 1).await;
    server.ask(&["DEL", KEY]);
    server.ask(&["HSET", KEY, FLAG, "4"]);
    until(async || limit(&world.proxy, "upstream").await == Some(4.0)).await;
}
