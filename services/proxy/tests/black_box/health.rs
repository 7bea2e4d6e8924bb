//! Who is in service: bad endpoints leave, poison requests hurt nobody, excluding everybody excludes nobody.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use simulator::{Behaviour, Provider};

use crate::harness::{World, call, right, soon};

/// Kills: an endpoint that fails and stays first.
#[tokio::test]
async fn a_failing_endpoint_leaves_service() {
    let world =
        World::build().primary("a", Behaviour::status(500)).fallback("b", Behaviour::Healthy).start().await;
    for id in 0..50 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
    }
    let asked = world["a"].count("eth_call");
    assert!((2..=6).contains(&asked), "asked {asked} times");
}

/// Kills: a mark for a request that nobody could answer (with a threshold of one all would be out).
#[tokio::test]
async fn a_poison_request_hurts_nobody() {
    let poisoned = || Behaviour::on_method("eth_call", Behaviour::Hang);
    let world = World::build()
        .primary("a", poisoned())
        .primary("b", poisoned())
        .fallback("c", poisoned())
        .env("ENDPOINT_FAILURE_THRESHOLD", "1")
        .env("PROXY_TIMEOUT_PER_TRY", "3")
        .start()
        .await;
    let poison = world.client.post(call(1).to_string()).await;
    assert!([502, 504].contains(&poison.status), "{poison:?}");
    for provider in world.providers() {
        provider.forget();
    }
    for id in 0..20 {
        let chain_id = json!({"jsonrpc": "2.0", "id": id, "method": "eth_chainId", "params": []}).to_string();
        assert_eq!(world.client.post(chain_id).await.json()["result"], "0x539");
    }
    assert_eq!(world.asked("c"), 0, "the primary tier is out of service");
    assert!(world.asked("a") > 0 && world.asked("b") > 0, "an endpoint is out of service");
}

/// Kills: a chain that stays dead after everything was down.
#[tokio::test]
async fn an_outage_of_everything_ends_with_it() {
    let world = World::build().primary("a", Behaviour::Healthy).primary("b", Behaviour::Healthy);
    // No check tells that they are back.
    let world = world.env("EPHEMERAL_CHECKS_INTERVAL", "600").start().await;
    for behaviour in [Behaviour::RefuseConnections, Behaviour::status(500)] {
        for provider in world.providers() {
            provider.set(behaviour.clone()).await.expect("breaks");
        }
        for id in 0..20 {
            assert_eq!(world.client.post(call(id).to_string()).await.status, 502);
        }
        for provider in world.providers() {
            provider.set(Behaviour::Healthy).await.expect("recovers");
        }
        for id in 0..20 {
            assert_eq!(
                world.client.post(call(id).to_string()).await.json(),
                right(id),
                "after {behaviour:?}"
            );
        }
    }
}

/// Kills: a request that fails because the checks have not seen yet who is down and who is back.
#[tokio::test]
async fn who_is_back_is_asked_before_a_request_fails() {
    let world = World::build()
        .primary("a", Behaviour::status(500))
        .fallback("b", Behaviour::Healthy)
        .env("ENDPOINT_FAILURE_THRESHOLD", "1")
        .env("EPHEMERAL_CHECKS_INTERVAL", "600")
        .start()
        .await;
    world.client.volley(1..10).await;
    world.proxy.logged("Down", 1).await;
    world["a"].set(Behaviour::Healthy).await.expect("recovers");
    world["b"].set(Behaviour::status(500)).await.expect("breaks");
    for id in 0..10 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
    }
}

/// Kills: readiness that never comes without a checker.
#[tokio::test]
async fn the_proxy_becomes_ready() {
    for interval in ["0", "1"] {
        let world = World::build()
            .primary("a", Behaviour::Healthy)
            .env("HEALTH_CHECK_INTERVAL", interval)
            .start()
            .await;
        // It was ready when the world was; it stays so.
        assert_eq!(world.client.get("/ready").await.status, 200, "interval {interval}");
        assert_eq!(world.client.get("/health").await.json(), json!({"status": "healthy"}));
    }
}

/// Kills: probes that take no endpoint out, or that never bring one back.
#[tokio::test]
async fn probes_take_endpoints_out_and_bring_them_back() {
    let world = World::build()
        .primary("a", Behaviour::status(500))
        .fallback("b", Behaviour::Healthy)
        .env("HEALTH_CHECK_INTERVAL", "1")
        .env("EPHEMERAL_CHECKS_ENABLED", "false")
        .start()
        .await;
    let until = async |what: &str, done: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !done() {
            assert!(started.elapsed() < Duration::from_secs(60), "{what}: not after a minute");
            world["a"].forget();
            world.client.volley(1..10).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    world.client.volley(1..10).await;
    until("out", &|| world["a"].count("eth_call") == 0).await;
    world["a"].set(Behaviour::Healthy).await.expect("recovers");
    until("back", &|| world["a"].count("eth_call") == 9).await;
    assert!(
        world.providers().map(|provider| Provider::count(provider, "eth_blockNumber")).sum::<usize>() > 0
    );
}

/// Kills: deadlines that are looked at before what has come: a process that stood still would give up, and blame, whoever
/// answered meanwhile.
#[tokio::test]
async fn a_proxy_that_stood_still_blames_nobody() {
    let slow = Behaviour::delayed(Duration::from_millis(500), Behaviour::Healthy);
    let world = World::build()
        .primary("a", Behaviour::on_method("eth_call", slow))
        .fallback("b", Behaviour::Healthy)
        .env("ENDPOINT_FAILURE_THRESHOLD", "1")
        .env("PROXY_TIMEOUT_PER_TRY", "3")
        .env("PROXY_TIMEOUT", "3")
        .start()
        .await;
    let asking = async { join_all((0..20).map(|id| world.client.post(call(id).to_string()))).await };
    let stopping = async {
        soon(world["a"].in_flight(20)).await;
        world.proxy.signal("STOP");
        soon(world["a"].in_flight(0)).await;
        // Past the deadline of all of them.
        tokio::time::sleep(Duration::from_secs(4)).await;
        world.proxy.signal("CONT");
    };
    let (replies, ()) = soon(async { tokio::join!(asking, stopping) }).await;
    for (id, reply) in (0..).zip(replies) {
        assert_eq!((reply.status, reply.json()), (200, right(id)));
    }
    assert_eq!((world.asked("a"), world.asked("b")), (20, 0));
    assert_eq!(world.client.post(call(20).to_string()).await.json(), right(20));
    assert_eq!(world.asked("b"), 0, "it is in service still");
}
