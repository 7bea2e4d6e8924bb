//! Chains and endpoints on one host share connections to it, and nothing else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use serde_json::{Map, Value, json};

use crate::harness::{Client, GLANCE, Proxy, call, right, soon};
use crate::upstream::{Asked, serve};

const CHAINS: u64 = 20;

/// Kills: connections of its own for each chain or endpoint of a host, one that carries two requests at a time, and endpoints
/// without whom a host's connections are forgotten.
#[tokio::test]
async fn chains_on_one_host_share_its_connections() {
    let connections: Arc<Mutex<BTreeSet<usize>>> = Arc::default();
    let noted = Arc::clone(&connections);
    let before = move |asked: Asked| {
        if asked.question["method"] == "eth_call" {
            noted.lock().expect("no panic").insert(asked.connection);
        }
        async {}.boxed()
    };
    let address = serve(None, Arc::new(before)).await;
    let endpoint = |path: String| json!({"provider": "x", "role": "primary", "http_url": format!("http://{address}/{path}")});
    let chain = |n: u64| json!({"a": endpoint(format!("{n}/a")), "b": endpoint(format!("{n}/b"))});
    let file: Map<String, Value> = (0..CHAINS).map(|n| (format!("chain-{n}"), chain(n))).collect();
    let env = [("HEALTH_CHECK_INTERVAL", "0"), ("WORKER_THREADS", "1")];
    let proxy = Proxy::before(&file.into(), &env).await;
    let client = Client::new(proxy.address);
    soon(async {
        while client.get("/ready").await.status != 200 {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    for id in 0..10 * CHAINS {
        let path = format!("/chain-{}", id % CHAINS);
        assert_eq!(client.post_to(&path, call(id).to_string()).await.json(), right(id), "{path}");
    }
    let connections = connections.lock().expect("no panic");
    assert_eq!(connections.len(), 1, "of calls one after the other: {connections:?}");
}
