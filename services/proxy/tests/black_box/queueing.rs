//! Who waits longest for a provider's limit is served first.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use simulator::{Behaviour, RpcError};
use tokio::task::JoinHandle;

use crate::harness::{Client, GLANCE, Reply, World, call, right, soon};

const PER_WINDOW: usize = 2;

fn ask(world: &World, id: u64) -> JoinHandle<Reply> {
    let client = Client::new(world.proxy.address);
    tokio::spawn(async move { client.post(call(id).to_string()).await })
}

/// Waits until all that are under way have reached the proxy.
async fn arrived(world: &World, asked: &[JoinHandle<Reply>]) {
    soon(async {
        loop {
            let waiting = asked.iter().filter(|asking| !asking.is_finished()).count();
            let metrics = world.operator("/metrics").await;
            let line = |line: &str| line.strip_prefix("headgate_http_requests_in_flight ")?.parse().ok();
            if metrics.text().lines().find_map(line).is_some_and(|there: f64| there >= waiting as f64) {
                return;
            }
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}

/// Kills: waiters that race when the window turns, a newcomer that overtakes them, a place in the queue that is lost by
/// looking, one that nobody leaves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_are_served_in_the_order_in_which_they_came() {
    let capacity = json!({"capacity": {"max_requests": PER_WINDOW, "window_seconds": 1}});
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, capacity)
        .env("SATURATION_WAIT_MS", "30000")
        .env("PROXY_TIMEOUT", "30")
        .env("HEALTH_CHECK_INTERVAL", "0")
        .start()
        .await;
    let mut asked = Vec::new();
    for id in 1..=12 {
        asked.push(ask(&world, id));
        arrived(&world, &asked).await;
    }
    // One that gives up makes room for those behind it.
    asked.remove(6).abort();
    for (id, asking) in [1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12].into_iter().zip(asked) {
        assert_eq!(soon(asking).await.expect("no panic").json(), right(id));
    }
    let served: Vec<u64> = world["a"]
        .seen()
        .iter()
        .filter(|seen| seen.method == "eth_call")
        .filter_map(|seen| seen.id.as_u64())
        .collect();
    // Those of one window go side by side.
    let in_order = |(at, id): (usize, &u64)| served.iter().skip(at + PER_WINDOW).all(|later| later > id);
    assert!(served.iter().enumerate().all(in_order), "{served:?}");
    assert!(served.len() >= 11, "{served:?}");
}

/// Kills: a request that is turned away, or sent above the level, because it came a gap too early and nobody else has room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_too_early_for_the_pace_waits_for_its_turn() {
    // Refused once: two at a time would be believed to tell of what was in use, on a busy machine much less.
    let told = RpcError::new(-32005, "rate limit exceeded: 50 requests per second");
    let once = Behaviour::sequence(vec![Behaviour::Error(told), Behaviour::Healthy]);
    let named = Behaviour::on_method("eth_call", once);
    let steady = json!({"capacity_learning": {"mode": "steady"}});
    let world = World::build().endpoint("a", named, steady).env("SATURATION_WAIT_MS", "10000").start().await;
    let ask = async |id| world.client.post(call(id).to_string()).await;
    assert_eq!(ask(0).await.status, 429);
    let rested = async {
        loop {
            let status = world.operator("/status").await.json();
            let told = &status["chains"]["main"]["endpoints"]["a"];
            if told["parked_until"].is_null() && told["ceilings"][0]["used"] == 0 {
                return told["level"].clone();
            }
            tokio::time::sleep(GLANCE).await;
        }
    };
    let level = soon(rested).await;
    assert_eq!(
        (&level["level"], &level["refused"]),
        (&json!(49.75), &json!(50.0)),
        "as it was told: {level}"
    );
    // Six at once, then one every twentieth of a second and a little sooner: two thirds of a second for all.
    let began = Instant::now();
    let replies = join_all((100..140).map(ask)).await;
    let took = began.elapsed();
    assert!(replies.iter().all(|reply| reply.status == 200), "{replies:?}");
    assert!(took >= Duration::from_millis(500), "40 within {took:?}, above the pace");
}
