//! Many chains and endpoints: the port is open before anybody has answered a probe, and probes come a few at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Instant;

use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::harness::{Client, GLANCE, Proxy, soon};
use crate::upstream::{Asked, serve};

const CHAINS: usize = 1000;
const ENDPOINTS: usize = 300;
/// HEALTH_CHECK_CONCURRENCY.
const AT_ONCE: usize = 7;

/// Counts of a provider's probes.
#[derive(Default)]
struct Probes {
    now: AtomicUsize,
    most: AtomicUsize,
    answered: AtomicUsize,
    blocks: AtomicUsize,
}

impl Probes {
    /// Holds a probe until the provider opens.
    async fn hold(&self, asked: &Asked, mut open: watch::Receiver<bool>) {
        self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
        // The test holds the other end.
        let _ = open.wait_for(|open| *open).await;
        self.now.fetch_sub(1, SeqCst);
        self.answered.fetch_add(1, SeqCst);
        if asked.question["method"] == "eth_blockNumber" {
            self.blocks.fetch_add(1, SeqCst);
        }
    }
}

fn file(address: std::net::SocketAddr) -> Value {
    let endpoint = |number: usize| json!({"provider": "x", "role": "primary", "http_url": format!("http://{address}/{number}")});
    let large: Map<String, Value> =
        (0..ENDPOINTS).map(|number| (format!("e{number}"), endpoint(number))).collect();
    let mut chains: Map<String, Value> = (1..CHAINS)
        .map(|number| (format!("chain-{number}"), json!({"a": endpoint(ENDPOINTS + number)})))
        .collect();
    chains.insert("main".to_owned(), large.into());
    chains.into()
}

/// Kills: a port that opens only after the first pass, and a first pass that asks everybody at once.
#[tokio::test]
async fn a_large_fleet_listens_at_once_and_probes_a_few_at_a_time() {
    let (gate, open) = watch::channel(false);
    let probes = Arc::new(Probes::default());
    let counted = Arc::clone(&probes);
    let before = move |asked: Asked| {
        let (counted, open) = (Arc::clone(&counted), open.clone());
        async move { counted.hold(&asked, open).await }.boxed()
    };
    let address = serve(None, Arc::new(before)).await;
    let concurrency = AT_ONCE.to_string();
    let env = [("HEALTH_CHECK_CONCURRENCY", concurrency.as_str()), ("HEALTH_CHECK_INTERVAL", "3600")];
    let started = Instant::now();
    let proxy = Proxy::before(&file(address), &env).await;
    eprintln!("{CHAINS} chains, {ENDPOINTS} endpoints of one: listening after {:?}", started.elapsed());
    assert_eq!(probes.answered.load(SeqCst), 0);
    let client = Client::new(proxy.address);
    assert_eq!(client.get("/health").await.status, 200);
    soon(async {
        while probes.now.load(SeqCst) < AT_ONCE {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    gate.send_replace(true);
    soon(async {
        while probes.blocks.load(SeqCst) < ENDPOINTS + CHAINS - 1 || client.get("/ready").await.status != 200
        {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    eprintln!("every endpoint probed after {:?}", started.elapsed());
    assert_eq!(probes.most.load(SeqCst), AT_ONCE, "probes in flight at once");
}
