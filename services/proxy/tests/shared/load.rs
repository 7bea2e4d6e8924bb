//! Four proxies under load: a ceiling per second kept and used, and use of which nothing is lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use serde_json::{Value, json};
use simulator::{Behaviour, Limit};

use crate::harness::{Client, GLANCE, Proxy, World, call, soaking, soon};
use crate::server::Server;
use crate::twins::{Twin, metric, on, sharing, until};

/// Requests in flight at each proxy: several times what the ceiling lets through.
const AT_ONCE: usize = 24;
const SECOND: Duration = Duration::from_secs(1);
/// Who could not look for so long stood still, in milliseconds.
const STILL: u64 = 250;

async fn four(world: &World, server: &Server) -> Vec<Twin> {
    let mut twins = Vec::new();
    for _ in 0..4 {
        twins.push(Twin::of(world, on(server)).await);
    }
    twins
}

/// Asks without a pause until it is told to stop; every answer must be right.
async fn hammer(client: &Client, stop: &AtomicBool) {
    let asking = (0..AT_ONCE).map(|lane| async move {
        let mut id = lane as u64;
        while !stop.load(Relaxed) {
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

/// What is seen while nobody stands still. What was on its way comes in a later window then, and tokens whose answer was
/// awaited are lost: such seconds, and the one after them, show nothing.
struct Watch {
    looked: u64,
    still: BTreeSet<u64>,
    refused: u64,
    /// Refusals in all other seconds.
    too_many: u64,
}

impl Watch {
    fn new(world: &World) -> Watch {
        Watch { looked: millis(), still: BTreeSet::new(), refused: world["a"].refused(), too_many: 0 }
    }

    fn look(&mut self, world: &World) {
        let (now, refused) = (millis(), world["a"].refused());
        if now - self.looked > STILL {
            self.still.extend(self.looked / 1000..=now / 1000 + 1);
        }
        if !self.still.contains(&(now / 1000)) {
            self.too_many += refused - self.refused;
        }
        (self.looked, self.refused) = (now, refused);
    }

    /// Looks until there were so many full seconds.
    async fn until_full(&mut self, world: &World, limit: u64, seconds: usize) {
        while full(world, limit, &self.still).len() < seconds {
            for _ in 0..50 {
                tokio::time::sleep(GLANCE).await;
                self.look(world);
            }
        }
    }
}

fn millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

/// What `a` served in each whole second in which twice the limit had to be served elsewhere: a machine that stands still
/// wants less, and shows nothing. In the first two seconds the proxies learn what they are asked for.
fn full(world: &World, limit: u64, still: &BTreeSet<u64>) -> Vec<u64> {
    let [limited, free] = ["a", "free"].map(|name| world[name].admitted_per_window(SECOND));
    let (Some(first), Some(last)) = (free.keys().next(), free.keys().next_back()) else { return Vec::new() };
    let whole = |window: &u64| (first + 2..*last).contains(window) && !still.contains(window);
    let full = free.iter().filter(|(window, served)| whole(window) && **served >= 2 * limit);
    full.map(|(window, _)| limited.get(window).copied().unwrap_or(0)).collect()
}

/// The provider refuses what is above the ceiling: one refusal is one request too many. Kills: tokens spent after their
/// window, a window granted twice, shares that leave a part unused, a lease call per request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_proxies_keep_and_use_a_ceiling_per_second() {
    let (limit, seconds) = if soaking() { (1000, 10) } else { (100, 3) };
    let server = Server::start(&[]);
    let capacity = json!({"capacity": {"max_requests": limit, "window_seconds": 1}});
    // More than it ever gets: it counts what it serves.
    let plenty = Limit::Fixed { n: 1_000_000, window: SECOND };
    let world = sharing(&server)
        .endpoint("a", Behaviour::limited(Limit::Fixed { n: limit, window: SECOND }), capacity)
        .fallback("free", Behaviour::limited(plenty))
        .start()
        .await;
    let twins = four(&world, &server).await;
    let leases = sum(&twins, "headgate_store_round_trips_total{op=\"lease\"}").await;
    let (stop, mut watch) = (AtomicBool::new(false), Watch::new(&world));
    let watching = async {
        soon(watch.until_full(&world, limit, seconds)).await;
        stop.store(true, Relaxed);
    };
    tokio::join!(join_all(twins.iter().map(|twin| hammer(&twin.client, &stop))), watching);
    watch.look(&world);
    let leases = sum(&twins, "headgate_store_round_trips_total{op=\"lease\"}").await - leases;
    let full = full(&world, limit, &watch.still);
    let used: u64 = world["a"].admitted_per_window(SECOND).values().sum();
    eprintln!("per second: {full:?}, {leases} lease calls, {:.1} requests each", used as f64 / leases);
    assert_eq!(watch.too_many, 0, "{full:?}");
    if soaking() {
        assert!(full.iter().all(|n| *n >= limit * 99 / 100), "{full:?}");
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
