//! The endpoints file changes while the proxy serves: no request notices, and what is known of endpoints stays.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, future, stream};
use serde_json::{Map, Value, json};
use simulator::{Behaviour, Chain, Provider, Script};

use crate::harness::{Client, GLANCE, Proxy, call, entry, right, soon};

const DONE: &str = "endpoints reloaded";
const REFUSED: &str = "endpoints not reloaded";

/// Providers of one chain, and a proxy in front whose file names some of them.
struct Scene {
    proxy: Proxy,
    client: Client,
    providers: Vec<(&'static str, Provider, Value)>,
}

impl Scene {
    /// All these providers run; the file names the first `named` of them.
    async fn start(providers: &[(&'static str, Value)], named: usize) -> Self {
        let chain = Chain::new(1337);
        let mut running = Vec::new();
        for (name, fields) in providers {
            let provider = Provider::start(Script::new(&chain)).await.expect("a provider starts");
            running.push((*name, provider, fields.clone()));
        }
        let names: Vec<&str> = providers[..named].iter().map(|(name, _)| *name).collect();
        let env = [("HEALTH_CHECK_INTERVAL", "0"), ("WORKER_THREADS", "2")];
        let proxy = Proxy::before(&file(&running, &names), &env).await;
        let client = Client::new(proxy.address);
        let scene = Self { proxy, client, providers: running };
        soon(async {
            while scene.client.get("/ready").await.status != 200 {
                tokio::time::sleep(GLANCE).await;
            }
        })
        .await;
        scene
    }

    fn provider(&self, name: &str) -> &Provider {
        &self.providers.iter().find(|(own, ..)| *own == name).expect("a provider of this name").1
    }

    fn naming(&self, names: &[&str]) -> String {
        file(&self.providers, names).to_string()
    }

    /// What the status page says of an endpoint.
    async fn told(&self, name: &str) -> Value {
        let status = Client::new(self.proxy.metrics).get("/status").await.json();
        status["chains"]["main"]["endpoints"][name].clone()
    }

    /// Waits until the metrics have this line.
    async fn counted(&self, line: &str) {
        let operator = Client::new(self.proxy.metrics);
        soon(async {
            while !operator.get("/metrics").await.text().lines().any(|own| own == line) {
                tokio::time::sleep(GLANCE).await;
            }
        })
        .await;
    }
}

fn file(providers: &[(&'static str, Provider, Value)], names: &[&str]) -> Value {
    let entries = providers.iter().filter(|(name, ..)| names.contains(name));
    let entries: Map<String, Value> =
        entries.map(|(name, provider, fields)| ((*name).to_owned(), entry(provider, fields))).collect();
    json!({ "main": entries })
}

/// Puts another file in the place of this one, as deployments do.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("a file");
    fs::rename(&new, path).expect("renames");
}

/// Asks away until told to stop; every answer must be right.
async fn load(client: &Client, stop: &AtomicBool) {
    let mut first = 10_000;
    while !stop.load(Ordering::SeqCst) {
        client.volley(first..first + 100).await;
        first += 100;
    }
}

/// Kills: a request lost in the swap, a removed endpoint that is still asked or whose requests are cut, a file
/// that is noticed only when it is replaced, or only when it is written in place.
#[tokio::test]
async fn endpoints_come_and_go_under_load() {
    let none = json!({});
    let scene = Scene::start(&[("a", none.clone()), ("b", none.clone()), ("c", none)], 2).await;
    let stop = AtomicBool::new(false);
    let changes = async {
        replace(&scene.proxy.file(), &scene.naming(&["a", "b", "c"]));
        scene.proxy.logged(DONE, 1).await;
        soon(async {
            while scene.provider("c").count("eth_call") == 0 {
                tokio::time::sleep(GLANCE).await;
            }
        })
        .await;
        leave_with_requests_in_flight(&scene).await;
        scene.provider("a").forget();
        scene.client.volley(0..200).await;
        assert_eq!(scene.provider("a").total(), 0, "a removed endpoint was asked");
        scene.proxy.signal("HUP");
        scene.proxy.logged(DONE, 3).await;
        scene.client.volley(200..300).await;
        stop.store(true, Ordering::SeqCst);
    };
    tokio::join!(load(&scene.client, &stop), changes);
    scene.counted("headgate_config_last_reload_successful 1").await;
    scene.counted("headgate_config_reloads_total{result=\"ok\"} 3").await;
}

/// Kills: a newcomer that draws every request until it has caught up with its tier.
#[tokio::test]
async fn a_newcomer_draws_no_flood() {
    let none = json!({});
    let scene = Scene::start(&[("a", none.clone()), ("b", none.clone()), ("c", none)], 2).await;
    scene.client.volley(0..600).await;
    replace(&scene.proxy.file(), &scene.naming(&["a", "b", "c"]));
    scene.proxy.logged("\"endpoint\":\"c\"", 1).await;
    scene.client.volley(600..900).await;
    let drawn = scene.provider("c").count("eth_call");
    // Its share is a third; every tenth request is a batch of three.
    assert!((60..180).contains(&drawn), "the newcomer was asked {drawn} of 360 calls");
}

/// Takes `a` out while it holds requests.
async fn leave_with_requests_in_flight(scene: &Scene) {
    let held = Behaviour::on_method("eth_getBalance", Behaviour::delayed(GLANCE * 300, Behaviour::Healthy));
    for (_, provider, _) in &scene.providers {
        provider.set(held.clone()).await.expect("behaves");
    }
    // Asked until `a` has left: whose turn it is depends on what the load has counted so far.
    let left = AtomicBool::new(false);
    let balances = stream::iter(0..)
        .take_while(|_| future::ready(!left.load(Ordering::SeqCst)))
        .for_each_concurrent(30, |id| balance(&scene.client, id));
    let leaving = async {
        soon(async {
            while scene.provider("a").count("eth_getBalance") == 0 {
                tokio::time::sleep(GLANCE).await;
            }
        })
        .await;
        fs::write(scene.proxy.file(), scene.naming(&["b", "c"])).expect("a file");
        scene.proxy.logged(DONE, 2).await;
        left.store(true, Ordering::SeqCst);
    };
    tokio::join!(balances, leaving);
    soon(scene.provider("a").in_flight(0)).await;
}

async fn balance(client: &Client, id: u64) {
    let params = json!([format!("{id:#042x}"), "latest"]);
    let body = json!({"jsonrpc": "2.0", "id": id, "method": "eth_getBalance", "params": params});
    let reply = client.post(body.to_string()).await;
    assert_eq!(reply.json()["result"], simulator::expected("eth_getBalance", &params), "{reply:?}");
}

/// Kills: a reload that forgets what was used, or who is parked.
#[tokio::test]
async fn what_is_known_of_endpoints_is_carried_over() {
    let capacity = json!({"capacity": {"max_requests": 12, "window_seconds": 86_400}});
    let endpoints = [
        ("a", capacity),
        ("p", json!({})),
        ("b", json!({"role": "fallback"})),
        ("c", json!({"role": "public"})),
    ];
    let scene = Scene::start(&endpoints, 3).await;
    scene.provider("p").set(Behaviour::rate_limited(Some(600))).await.expect("behaves");
    // The ceiling is a day's: of 40 calls `a` gets what the probes left of 12, `p` its one, `b` the rest.
    scene.client.volley(1..7).await;
    soon(async {
        let mut id = 100;
        while scene.told("p").await["parked_until"].is_null() {
            assert_eq!(scene.client.post(call(id).to_string()).await.json(), right(id));
            id += 1;
        }
    })
    .await;
    let (before, asked) = (scene.told("p").await, scene.provider("p").count("eth_call"));
    replace(&scene.proxy.file(), &scene.naming(&["a", "p", "b", "c"]));
    scene.proxy.logged(DONE, 1).await;
    assert_eq!(scene.told("p").await["parked_until"], before["parked_until"]);
    scene.client.volley(201..250).await;
    assert_eq!(scene.provider("p").count("eth_call"), asked, "asked while parked");
    assert_eq!(scene.provider("a").total(), 12, "its use was forgotten");
    assert_eq!(scene.told("a").await["used_24h"], 12);
    assert!(scene.provider("b").count("eth_call") > 0);
}

/// Kills: a bad file that takes the old endpoints away, that is not told about, or that is final.
#[tokio::test]
async fn a_bad_file_changes_nothing() {
    let scene = Scene::start(&[("a", json!({})), ("b", json!({}))], 2).await;
    let good = scene.naming(&["a", "b"]);
    scene.counted("headgate_config_last_reload_successful 1").await;
    let mut contradiction: Value = serde_json::from_str(&good).expect("JSON");
    for (name, most) in [("a", 5), ("b", 6)] {
        let entry = &mut contradiction["main"][name];
        entry["account"] = json!("acme");
        entry["capacity"] = json!({"max_requests": most, "window_seconds": 60});
    }
    let bad = [("{\"main\": ", "endpoints.json"), ("{}", "endpoint"), (&contradiction.to_string(), "acme")];
    for (times, (text, told)) in (1..).zip(bad) {
        replace(&scene.proxy.file(), text);
        scene.counted(&format!("headgate_config_reloads_total{{result=\"refused\"}} {times}")).await;
        scene.counted("headgate_config_last_reload_successful 0").await;
        let log = scene.proxy.log();
        let line = log.lines().rfind(|line| line.contains(REFUSED)).unwrap_or_default();
        assert!(line.contains(told), "{told} is not in {line}");
        scene.provider("a").forget();
        scene.client.volley(0..50).await;
        assert!(scene.provider("a").total() > 0, "{text} took an endpoint out");
    }
    replace(&scene.proxy.file(), &good);
    scene.proxy.logged(DONE, 1).await;
    scene.counted("headgate_config_last_reload_successful 1").await;
    scene.client.volley(50..100).await;
}
