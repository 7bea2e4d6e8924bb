//! Four proxies under load: a ceiling per second kept and used, and use of which nothing is lost.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use simulator::{Behaviour, Limit};

use crate::harness::{Client, Proxy, World, call, soaking};
use crate::server::Server;
use crate::twins::{Twin, metric, on, sharing, until};

/// Requests in flight at each proxy: several times what the ceiling lets through.
const AT_ONCE: usize = 24;

async fn four(world: &World, server: &Server) -> Vec<Twin> {
    let mut twins = Vec::new();
    for _ in 0..4 {
        twins.push(Twin::of(world, on(server)).await);
    }
    twins
}

/// Asks without a pause until then; every answer must be right.
async fn hammer(client: &Client, until: Instant) {
    let asking = (0..AT_ONCE).map(|lane| async move {
        let mut id = lane as u64;
        while Instant::now() < until {
            let reply = client.post(call(id).to_string()).await;
            assert_eq!(reply.status, 200, "{reply:?}");
            id += AT_ONCE as u64;
        }
    });
    join_all(asking).await;
}

async fn sum(twins: &[Twin], line: &str) -> f64 {
    let mut sum = 0.0;
    for twin in twins {
        sum += metric(&twin.proxy, line).await.unwrap_or(0.0);
    }
    sum
}

/// The provider refuses what is above the ceiling: one refusal is one request too many. Kills: tokens spent after their
/// window, a window granted twice, shares that leave a part unused, a lease call per request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_proxies_keep_and_use_a_ceiling_per_second() {
    let (limit, seconds) = if soaking() { (1000, 12) } else { (100, 4) };
    let server = Server::start(&[]);
    let window = Duration::from_secs(1);
    let capacity = json!({"capacity": {"max_requests": limit, "window_seconds": 1}});
    let world = sharing(&server)
        .endpoint("a", Behaviour::limited(Limit::Fixed { n: limit, window }), capacity)
        .fallback("free", Behaviour::Healthy)
        .start()
        .await;
    let twins = four(&world, &server).await;
    let leases = sum(&twins, "headgate_store_round_trips_total{op=\"lease\"}").await;
    let end = Instant::now() + Duration::from_secs(seconds);
    join_all(twins.iter().map(|twin| hammer(&twin.client, end))).await;
    let leases = sum(&twins, "headgate_store_round_trips_total{op=\"lease\"}").await - leases;
    let seen = world["a"].admitted_per_window(window);
    // The first and the last window are not whole, and in the second the proxies learn what they are asked for.
    let whole = &seen[2..seen.len() - 1];
    let used: u64 = seen.iter().sum();
    eprintln!("per second: {seen:?}, {leases} lease calls, {:.1} requests each", used as f64 / leases);
    assert_eq!(world["a"].refused(), 0, "{seen:?}");
    assert!(whole.iter().all(|n| *n <= limit), "{seen:?}");
    if soaking() {
        assert!(whole.iter().all(|n| *n >= limit * 99 / 100), "{seen:?}");
        assert!(used as f64 / leases >= 10.0, "{used} requests for {leases} lease calls");
    }
}

async fn used_24h(proxy: &Proxy) -> Value {
    let status = Client::new(proxy.metrics).get("/status").await.json();
    status["chains"]["main"]["endpoints"]["a"]["used_24h"].clone()
}

/// Kills: use that is told by a number that somebody else wrote meanwhile, told twice, or not told at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_one_use_is_lost() {
    let (each, calls) = if soaking() { (250, 1000) } else { (25, 100) };
    let server = Server::start(&[]);
    let world = sharing(&server).primary("a", Behaviour::Healthy).start().await;
    let before = used_24h(&world.proxy).await.as_u64().expect("a number");
    let twins = four(&world, &server).await;
    let batch = json!((0..calls).map(call).collect::<Vec<_>>()).to_string();
    let asked = twins.iter().map(|twin| async {
        for _ in 0..each {
            let reply = twin.client.post(batch.clone()).await;
            assert_eq!((reply.status, reply.json().as_array().map(Vec::len)), (200, Some(calls as usize)));
        }
    });
    join_all(asked).await;
    let expected = json!(before + 4 * each * calls);
    // Proxies that are told to stop tell what they had not told yet.
    for twin in twins {
        twin.proxy.signal("TERM");
        assert_eq!(twin.proxy.ended().await, Some(0));
    }
    until(async || used_24h(&world.proxy).await == expected).await;
}
