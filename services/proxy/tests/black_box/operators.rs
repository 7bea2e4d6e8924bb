//! What people at the metrics port and containers ask: the page, what did not go straight, readiness as an exit code.

use std::time::Duration;

use serde_json::json;
use simulator::{Behaviour, Chain, Provider, Script};

use crate::harness::{GLANCE, Proxy, World, call, entry, run, soon};

/// Kills: a page with files that are not there, or that may load and run what is not its own.
#[tokio::test]
async fn the_page_comes_with_its_files_and_its_policy() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    for (path, kind, part) in [
        ("/", "text/html", "page.js"),
        ("/page.css", "text/css", "prefers-color-scheme"),
        ("/page.js", "text/javascript", "fetch(\"status\""),
    ] {
        let reply = world.operator(path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.header("content-type").is_some_and(|found| found.starts_with(kind)), "{path}");
        let policy = reply.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert!(reply.text().contains(part), "{path}");
    }
}

/// Kills: showing requests that went straight, hiding the retried one, totals that count something else.
#[tokio::test]
async fn status_tells_what_did_not_go_straight_and_how_much_there_is() {
    let world = World::build_unwatched()
        .primary("good", Behaviour::Healthy)
        .fallback("spare", Behaviour::Healthy)
        .start()
        .await;
    world.client.post(call(1).to_string()).await;
    assert_eq!(world.operator("/status").await.json()["recent"], json!([]));
    world["good"].set(Behaviour::status(500)).await.expect("a listening provider");
    let reply = world.client.post(call(2).to_string()).await;
    let id = reply.header("x-request-id").expect("an id").to_owned();
    let status = world.operator("/status").await.json();
    let recent = status["recent"].as_array().expect("a list");
    assert_eq!(recent.len(), 1, "{status}");
    assert_eq!(
        (&recent[0]["request_id"], &recent[0]["attempts"], &recent[0]["status"]),
        (&json!(id), &json!(2), &json!(200))
    );
    let totals = &status["totals"];
    assert_eq!(
        (&totals["chains"], &totals["endpoints"], &totals["parked"]),
        (&json!(1), &json!(2), &json!(0))
    );
}

/// Kills: a series that begins with the first thing it counts, whose first `increase` nobody sees, and a gauge that is
/// missing where nothing is open, or nothing is shared.
#[tokio::test]
async fn what_happens_rarely_is_there_from_the_start() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let metrics = world.operator("/metrics").await;
    for series in [
        r#"headgate_websocket_connections{chain="main"} 0"#,
        r#"headgate_saturated_total{chain="main"} 0"#,
        r#"headgate_capacity_skipped_total{chain="main",endpoint="a"} 0"#,
        r#"headgate_capacity_decreases_total{chain="main",endpoint="a"} 0"#,
        r#"headgate_recoveries_total{chain="main",endpoint="a"} 0"#,
        "headgate_store_degraded 0",
        "headgate_flags_refresh_panics_total 0",
    ] {
        assert!(metrics.text().lines().any(|line| line == series), "{series}");
    }
}

/// Kills: a container that is called healthy while nothing listens, or unhealthy while it serves.
#[tokio::test]
async fn healthcheck_is_readiness_as_an_exit_code() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let check = async |url: String| run(&world.proxy.dir, &["healthcheck", "--url", &url], &[]).await.code;
    assert_eq!(check(format!("http://{}/ready", world.proxy.address)).await, Some(0));
    assert_eq!(check(format!("http://{}/nowhere", world.proxy.address)).await, Some(1), "404");
    let port = world.proxy.address.port().to_string();
    let by_settings = run(&world.proxy.dir, &["healthcheck"], &[("SERVER_PORT", &port)]).await;
    assert_eq!(by_settings.code, Some(0), "{by_settings:?}");
    let address = world.proxy.address;
    let dir = world.proxy.dir.with_extension("after");
    std::fs::create_dir_all(&dir).expect("a directory");
    drop(world);
    let gone = run(&dir, &["healthcheck", "--url", &format!("http://{address}/ready")], &[]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    std::fs::remove_dir_all(&dir).expect("removes");
}

/// Kills: a start that does not say which endpoint is bad, or says it with every round.
#[tokio::test]
async fn the_start_says_once_how_the_first_checks_went() {
    let chain = Chain::ticking(1, Duration::from_secs(1));
    let start =
        async |behaviour| Provider::start(Script::new(&chain).behaving(behaviour)).await.expect("a port");
    let (fine, wrong) = (start(Behaviour::Healthy).await, start(Behaviour::status(404)).await);
    let file = json!({"main": {"fine": entry(&fine, &json!({})), "wrong": entry(&wrong, &json!({}))}});
    let proxy = Proxy::before(&file, &[("HEALTH_CHECK_INTERVAL", "1")]).await;
    let asked_thrice = async {
        while fine.count("eth_blockNumber") < 3 {
            tokio::time::sleep(GLANCE).await;
        }
    };
    soon(asked_thrice).await;
    let log = proxy.log();
    let said: Vec<&str> = log.lines().filter(|line| line.contains("first checks")).collect();
    assert_eq!(said.len(), 1, "{said:?}");
    let said: serde_json::Value = serde_json::from_str(said[0]).expect("JSON");
    assert_eq!((&said["good"], &said["bad"]), (&json!("fine"), &json!("wrong")), "{said}");
}
