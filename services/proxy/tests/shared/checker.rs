//! One health checker for several proxies: they go by what it finds, and go on without it.

use std::path::PathBuf;

use serde_json::json;
use simulator::Behaviour;

use crate::harness::{Client, Proxy, World, call, run_binary};
use crate::server::Server;
use crate::twins::{Twin, beside_checker, metric, on, parked, until};

const PROBES: [&str; 2] = ["eth_blockNumber", "eth_syncing"];

async fn world(server: &Server, b: Behaviour) -> World {
    let build =
        beside_checker(server).iter().fold(World::build(), |world, (name, value)| world.env(name, value));
    build.checker().primary("a", Behaviour::Healthy).primary("b", b).start().await
}

/// Another checker with the endpoints of `world`.
async fn second_checker(world: &World, server: &Server) -> Proxy {
    let mut env = beside_checker(server);
    env.push(("CONFIG_FILE".to_owned(), world.proxy.file().display().to_string()));
    Proxy::checker(folder(world, "second"), &env).await
}

/// A folder of its own below the world's.
fn folder(world: &World, name: &str) -> PathBuf {
    let dir = world.proxy.dir.join(name);
    std::fs::create_dir_all(&dir).expect("a directory");
    dir
}

async fn healthy(proxy: &Proxy, endpoint: &str) -> Option<f64> {
    let line =
        format!("headgate_endpoint_healthy{{chain=\"main\",endpoint=\"{endpoint}\",protocol=\"http\"}}");
    metric(proxy, &line).await
}

async fn probes_sent(proxy: &Proxy) -> f64 {
    let text = Client::new(proxy.metrics).get("/metrics").await;
    let counts = text.text().lines().filter(|line| line.starts_with("headgate_health_checks_total{"));
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Kills: proxies that probe beside the checker, findings that are not told, and a view that only one proxy has.
#[tokio::test]
async fn proxies_go_by_what_the_checker_finds_and_send_no_probes() {
    let server = Server::start(&[]);
    let world = world(&server, Behaviour::Healthy).await;
    let twin = Twin::of(&world, beside_checker(&server)).await;
    world["b"].set(Behaviour::status(500)).await.expect("behaves");
    until(async || healthy(&world.proxy, "b").await == Some(0.0)).await;
    until(async || healthy(&twin.proxy, "b").await == Some(0.0)).await;
    let asked = world.asked("b");
    world.client.volley(0..50).await;
    twin.client.volley(100..150).await;
    assert_eq!(world.asked("b"), asked, "no client's call was needed to find out, and none was lost");
    world["b"].set(Behaviour::Healthy).await.expect("behaves");
    until(async || healthy(&world.proxy, "b").await == Some(1.0)).await;
    until(async || healthy(&twin.proxy, "b").await == Some(1.0)).await;
    assert_eq!((probes_sent(&world.proxy).await, probes_sent(&twin.proxy).await), (0.0, 0.0));
    let checker = world.checker.as_ref().expect("a checker");
    assert_eq!(metric(checker, "headgate_health_checking").await, Some(1.0));
    assert_eq!(world.client.get("/ready").await.json(), json!({"status": "ready"}));
}

/// Kills: two checkers that both probe, and a deployment that nobody checks after the first one was killed.
#[tokio::test]
async fn a_second_checker_stands_by_and_takes_over() {
    let server = Server::start(&[]);
    let mut world = world(&server, Behaviour::Healthy).await;
    let second = second_checker(&world, &server).await;
    let standby = Client::new(second.address);
    until(async || standby.get("/ready").await.status == 200).await;
    assert_eq!(metric(&second, "headgate_health_checking").await, Some(0.0));
    assert_eq!(probes_sent(&second).await, 0.0);
    let first = world.checker.take().expect("a checker");
    first.signal("KILL");
    first.ended().await;
    until(async || metric(&second, "headgate_health_checking").await == Some(1.0)).await;
    world["b"].set(Behaviour::status(500)).await.expect("behaves");
    until(async || healthy(&world.proxy, "b").await == Some(0.0)).await;
}

/// Kills: a lease that is not given up at the end, so that nobody checks for a while.
#[tokio::test]
async fn a_checker_that_is_told_to_stop_hands_over_at_once() {
    let server = Server::start(&[]);
    let mut world = world(&server, Behaviour::Healthy).await;
    let second = second_checker(&world, &server).await;
    let first = world.checker.take().expect("a checker");
    first.signal("TERM");
    assert_eq!(first.ended().await, Some(0));
    until(async || metric(&second, "headgate_health_checking").await == Some(1.0)).await;
}

/// Kills: proxies that stop serving, or stop being ready, with their checker; and a loss that nobody is told of.
#[tokio::test]
async fn proxies_serve_on_without_a_checker() {
    let server = Server::start(&[]);
    let mut world = world(&server, Behaviour::Healthy).await;
    let first = world.checker.take().expect("a checker");
    first.signal("KILL");
    first.ended().await;
    let degraded = async || world.client.get("/ready").await.json()["degraded"] == json!(["health_checker"]);
    until(degraded).await;
    assert_eq!(world.client.get("/ready").await.status, 200);
    world["b"].set(Behaviour::status(500)).await.expect("behaves");
    world.client.volley(0..50).await;
    world["b"].set(Behaviour::Healthy).await.expect("behaves");
    world.client.volley(100..150).await;
}

/// Kills: a limit that only the checker knows that met it, and an account that its restart strands.
#[tokio::test]
async fn a_limit_that_the_checker_meets_parks_for_all_and_outlives_it() {
    let server = Server::start(&[]);
    let mut world = world(&server, Behaviour::rate_limited(None)).await;
    until(async || parked(&world.proxy, "b").await).await;
    let first = world.checker.take().expect("a checker");
    first.signal("KILL");
    first.ended().await;
    world["b"].set(Behaviour::Healthy).await.expect("behaves");
    until(async || !parked(&world.proxy, "b").await).await;
    world.client.volley(0..50).await;
    assert!(world.asked("b") > 0, "back in service");
}

/// Kills: an ejection that every proxy has to find out by itself.
#[tokio::test]
async fn whom_one_proxy_ejects_the_others_eject_on_one_failure() {
    let server = Server::start(&[]);
    let mut env = on(&server);
    env.extend([("STANDALONE_HEALTH_CHECKS", "true"), ("HEALTH_CHECK_INTERVAL", "0")].map(owned));
    env.push(owned(("ENDPOINT_FAILURE_THRESHOLD", "3")));
    let build = env.iter().fold(World::build(), |world, (name, value)| world.env(name, value));
    let world =
        build.checker().primary("a", Behaviour::Healthy).fallback("b", Behaviour::Healthy).start().await;
    let twin = Twin::of(&world, env.clone()).await;
    // Probes find it well: what calls meet is all there is to know.
    let probes = PROBES.map(|method| (method.to_owned(), Behaviour::Healthy)).to_vec();
    let broken = Behaviour::PerMethod { methods: probes, otherwise: Box::new(Behaviour::status(500)) };
    world["a"].set(broken).await.expect("behaves");
    world.client.volley(0..30).await;
    world.proxy.logged("Ejected", 1).await;
    let asked = world.asked("a");
    let ejected = async || {
        assert_eq!(twin.client.post(call(1_000).to_string()).await.status, 200);
        twin.proxy.log().contains("Ejected")
    };
    until(ejected).await;
    assert!(world.asked("a") <= asked + 3, "{} calls", world.asked("a") - asked);
}

/// Kills: the predecessor's rule of readiness without `READY_STRICT`'s word for it.
#[tokio::test]
async fn strict_readiness_asks_the_checker() {
    let server = Server::start(&[]);
    let world = world(&server, Behaviour::Healthy).await;
    let checker = world.checker.as_ref().expect("a checker");
    let url = format!("http://{}", checker.address);
    let strict = |url: &str| {
        let mut env = beside_checker(&server);
        env.extend([("READY_STRICT", "true"), ("HEALTH_CHECKER_SERVICE_URL", url)].map(owned));
        env.push(owned(("CONFIG_FILE", &world.proxy.file().display().to_string())));
        env
    };
    let lost = Proxy::start(folder(&world, "lost"), &[], &strict("http://127.0.0.1:1")).await;
    let found = Proxy::start(folder(&world, "found"), &[], &strict(&url)).await;
    let ready = Client::new(found.address);
    until(async || ready.get("/ready").await.status == 200).await;
    let refusing = Client::new(lost.address);
    until(async || {
        let refused = refusing.get("/ready").await;
        assert_eq!(refused.status, 503);
        refused.json()["reason"] == "health_checker_service_not_ready"
    })
    .await;
}

/// Kills: a checker that checks for nobody, one that ignores that the proxies check by themselves, and one that finds out
/// at its second port that it has taken it already.
#[tokio::test]
async fn a_checker_says_what_it_cannot_use() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let file = world.proxy.file().display().to_string();
    let refused = checker(&world, &[("CONFIG_FILE", &file)]).await;
    assert_eq!(refused.0, Some(64));
    assert!(refused.1.contains("STORE_BACKEND") && refused.1.contains("VALKEY_URL"), "{}", refused.1);
    let ports =
        [("HEALTH_CHECKER_SERVER_PORT", "9191"), ("METRICS_PORT", "9191"), ("VALKEY_HOST", "127.0.0.1")];
    let twice = checker(&world, &[&ports[..], &[("CONFIG_FILE", &file)]].concat()).await;
    assert_eq!(twice.0, Some(64));
    assert!(
        twice.1.contains("METRICS_PORT") && twice.1.contains("HEALTH_CHECKER_SERVER_PORT"),
        "{}",
        twice.1
    );
    let idle = [("CONFIG_FILE", file.as_str()), ("STANDALONE_HEALTH_CHECKS", "false")];
    assert_eq!(checker(&world, &idle).await.0, Some(0));
}

/// Runs a checker that ends by itself: its exit code and what it said.
async fn checker(world: &World, env: &[(&str, &str)]) -> (Option<i32>, String) {
    let binary = tokio::task::spawn_blocking(crate::harness::checker_binary).await.expect("no panic");
    let ran = run_binary(binary, &world.proxy.dir, &[], env).await;
    (ran.code, ran.stderr)
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}
