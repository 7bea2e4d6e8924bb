//! What one proxy does, all know.

use serde_json::json;
use simulator::Behaviour;

use crate::harness::{World, call};
use crate::server::Server;
use crate::twins::{Twin, hour, metric, on, parked, sharing, until};

/// A proxy with a ceiling of so many requests an hour, and an endpoint without one behind it.
async fn with_a_ceiling(server: &Server, per_hour: u32) -> World {
    let capacity = json!({"capacity": {"max_requests": per_hour, "window_seconds": 3600}});
    sharing(server)
        .endpoint("a", Behaviour::Healthy, capacity)
        .fallback("b", Behaviour::Healthy)
        .start()
        .await
}

/// Kills: a ceiling per process, tokens spent before they are subtracted, probes that are not counted.
#[tokio::test]
async fn two_proxies_keep_one_static_ceiling_exactly() {
    let server = Server::start(&[]);
    let world = with_a_ceiling(&server, 60).await;
    let before = hour();
    let twin = Twin::of(&world, on(&server)).await;
    tokio::join!(world.client.volley(0..300), twin.client.volley(1_000..1_300));
    world.client.volley(2_001..2_010).await;
    twin.client.volley(3_001..3_010).await;
    let windows = hour() - before + 1;
    let first = world["a"].total() + world.asked_before("a");
    assert!(first == 60 || (windows > 1 && first <= 60 * windows), "{first} calls in {windows} windows");
}

/// Kills: state without the prefix, which two deployments on one Valkey would share.
#[tokio::test]
async fn two_prefixes_never_meet() {
    let server = Server::start(&[]);
    let world = with_a_ceiling(&server, 20).await;
    let before = hour();
    let mut env = on(&server);
    env.push(("VALKEY_KEY_PREFIX".to_owned(), "other".to_owned()));
    let stranger = Twin::of(&world, env).await;
    world.client.volley(1..100).await;
    stranger.client.volley(1_001..1_100).await;
    let first = world["a"].total() + world.asked_before("a");
    assert!(first == 40 || hour() > before, "{first} calls");
}

/// Kills: a hit that only the proxy knows that met it.
#[tokio::test]
async fn one_proxys_hit_parks_the_account_for_all() {
    let server = Server::start(&[]);
    let world = sharing(&server)
        .primary("a", Behaviour::rate_limited(Some(3_000)))
        .fallback("b", Behaviour::Healthy)
        .start()
        .await;
    let twin = Twin::of(&world, on(&server)).await;
    let asked = world.asked("a");
    world.client.volley(1..10).await;
    assert!(world.asked("a") > asked);
    until(async || parked(&twin.proxy, "a").await).await;
    let asked = world.asked("a");
    twin.client.volley(11..50).await;
    assert_eq!(world.asked("a"), asked, "the second proxy asked all the same");
}

/// Kills: an episode that nobody ends when the proxy that saw it is gone, and one that its successor starts anew.
#[tokio::test]
async fn an_account_comes_back_when_the_proxy_that_parked_it_is_gone() {
    let server = Server::start(&[]);
    let world =
        sharing(&server).primary("a", Behaviour::Healthy).fallback("b", Behaviour::Healthy).start().await;
    let twin = Twin::of(&world, on(&server)).await;
    world["a"].set(Behaviour::rate_limited(None)).await.expect("behaves");
    twin.client.volley(1..4).await;
    until(async || parked(&world.proxy, "a").await).await;
    twin.proxy.signal("KILL");
    twin.proxy.ended().await;
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    until(async || !parked(&world.proxy, "a").await).await;
    let asked = world.asked("a");
    assert_eq!(world.client.post(call(7).to_string()).await.status, 200);
    assert!(world.asked("a") > asked, "back in service");
}

/// Kills: tokens that are given out again because who held them is gone, and a ceiling that is dry for ever.
#[tokio::test]
async fn a_proxy_killed_with_tokens_in_hand_never_leads_to_more() {
    let server = Server::start(&[]);
    let world = with_a_ceiling(&server, 200).await;
    let before = hour();
    let twin = Twin::of(&world, on(&server)).await;
    twin.client.volley(1..30).await;
    twin.proxy.signal("KILL");
    twin.proxy.ended().await;
    world.client.volley(1_000..1_400).await;
    let first = world["a"].total() + world.asked_before("a");
    assert!(first <= 200 || hour() > before, "{first} calls");
    assert!(first > 100, "{first} calls: most of it is still to be had");
}

/// Kills: metrics of the store that are not there, and a round trip for every request.
#[tokio::test]
async fn the_store_is_asked_seldom_and_counted() {
    let server = Server::start(&[]);
    let capacity = json!({"capacity": {"max_requests": 100_000, "window_seconds": 3600}});
    let world = sharing(&server).endpoint("a", Behaviour::Healthy, capacity).start().await;
    world.client.volley(0..3_000).await;
    let mut trips = 0.0;
    for op in ["lease", "sync", "swap", "claim"] {
        let line = format!("headgate_store_round_trips_total{{op=\"{op}\"}}");
        trips += metric(&world.proxy, &line).await.expect("a metric");
    }
    assert!(trips > 0.0 && trips < 300.0, "{trips} round trips for 3600 calls");
    assert_eq!(metric(&world.proxy, "headgate_store_degraded").await, Some(0.0));
}

/// Kills: tokens that a proxy takes with it when it is told to stop.
#[tokio::test]
async fn a_proxy_that_is_told_to_stop_returns_what_it_holds() {
    let server = Server::start(&[]);
    let world = with_a_ceiling(&server, 300).await;
    let before = hour();
    let mut env = on(&server);
    env.push(("SHUTDOWN_DELAY".to_owned(), "0".to_owned()));
    let twin = Twin::of(&world, env).await;
    twin.client.volley(1..50).await;
    twin.proxy.signal("TERM");
    assert_eq!(twin.proxy.ended().await, Some(0));
    world.client.volley(1_000..1_400).await;
    world.client.volley(2_001..2_010).await;
    let first = world["a"].total() + world.asked_before("a");
    assert!(first == 300 || hour() > before, "{first} calls");
}
