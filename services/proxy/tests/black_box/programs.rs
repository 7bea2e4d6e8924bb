//! The program: how it starts, what it tells, how it ends.

use std::fs;
use std::time::Duration;

use serde_json::json;
use simulator::Behaviour;

use crate::harness::{Client, Proxy, World, call, right, run, soon};

/// Kills: a request cut off at shutdown, a proxy that is still ready, an exit that looks like a failure.
#[tokio::test]
async fn sigterm_finishes_what_is_in_flight() {
    // Connections are accepted for long enough that a busy machine gets to see it unready, and the answer comes after that.
    let world = World::build().primary("a", Behaviour::Healthy).env("SHUTDOWN_DELAY", "3");
    let world = world.env("PROXY_TIMEOUT_PER_TRY", "15").start().await;
    // An answer first, so that the connection exists when it is to be told to close.
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    world["a"].set(Behaviour::delayed(Duration::from_secs(4), Behaviour::Healthy)).await.expect("behaves");
    let body = call(2).to_string();
    let asking = world.client.post(body);
    let signalling = async {
        soon(world["a"].in_flight(1)).await;
        world.proxy.signal("TERM");
        let fresh = Client::new(world.proxy.address);
        while fresh.get("/ready").await.status != 503 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (reply, ()) = soon(async { tokio::join!(asking, signalling) }).await;
    assert_eq!((reply.status, reply.json()), (200, right(2)));
    assert_eq!(world.proxy.ended().await, Some(0));
}

/// Kills: an idle connection that holds the end up.
#[tokio::test]
async fn sigterm_does_not_wait_for_idle_connections() {
    let world = World::build().primary("a", Behaviour::Healthy).env("SHUTDOWN_TIMEOUT", "600").start().await;
    world.client.volley(1..10).await;
    world.proxy.signal("TERM");
    assert_eq!(world.proxy.ended().await, Some(0));
}

/// Kills: an endless wait for a provider that never answers.
#[tokio::test]
async fn sigterm_gives_up_after_its_timeout() {
    let world = World::build()
        .primary("a", Behaviour::Hang)
        .env("SHUTDOWN_TIMEOUT", "1")
        .env("PROXY_TIMEOUT", "600")
        .env("PROXY_TIMEOUT_PER_TRY", "600")
        .start()
        .await;
    let client = world.client.clone();
    let asking = tokio::spawn(async move {
        let request = http::Request::post("/main").body(call(1).to_string().into()).expect("a request");
        client.send(request).await.is_ok_and(|reply| reply.status == 200)
    });
    soon(world["a"].in_flight(1)).await;
    world.proxy.signal("TERM");
    assert_eq!(world.proxy.ended().await, Some(0));
    assert!(!asking.await.expect("no panic"));
}

/// Kills: a demo that needs a file or the network, or that loses requests.
#[tokio::test]
async fn the_demo_answers() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("demo-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let demo = Proxy::start(dir, &["--demo"], &[]).await;
    let client = Client::new(demo.address);
    for id in 0..60 {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "eth_chainId", "params": []}).to_string();
        let reply = client.post_to("/demo", body).await;
        assert_eq!((reply.status, reply.json()["result"].clone()), (200, json!("0x539")), "request {id}");
    }
    demo.signal("TERM");
    assert_eq!(demo.ended().await, Some(0));
}

/// Kills: a check that stops at the first finding, finds nothing, or does not name the path.
#[tokio::test]
async fn check_tells_all_findings() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("check-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let check = async |file: serde_json::Value, code: i32, told: &[&str]| {
        fs::write(dir.join("endpoints.json"), file.to_string()).expect("a file");
        let ran = run(&dir, &["--check"], &[("CONFIG_FILE", "endpoints.json")]).await;
        assert_eq!(ran.code, Some(code), "{file}: {ran:?}");
        for part in told {
            assert!((ran.stdout.clone() + &ran.stderr).contains(part), "{file}: {part} is not in {ran:?}");
        }
    };
    let good = json!({"provider": "x", "role": "primary", "type": "full", "http_url": "http://127.0.0.1:1"});
    let mut bad = good.clone();
    (bad["role"], bad["capacity"]) = (json!("primry"), json!({"max_requests": 0, "window_seconds": 1}));
    check(json!({"main": {"a": good}}), 0, &[]).await;
    check(json!({"main": {"a": good, "b": bad}}), 64, &["main.b.role", "primary", "main.b.capacity"]).await;
    check(json!({}), 64, &[]).await;
    fs::write(dir.join("endpoints.json"), json!({"main": {"a": good}}).to_string()).expect("a file");
    fs::write(dir.join("rules.json"), "{").expect("a file");
    fs::write(dir.join("flags.json"), "[1]").expect("a file");
    let flags = [("HEADGATE_FLAGS_PROVIDER", "file"), ("HEADGATE_FLAGS_FILE", "flags.json")];
    let wrong = [("CONFIG_FILE", "endpoints.json"), ("RULES_FILE", "rules.json"), ("SELECTION", "none")];
    for args in [&["--check"][..], &[]] {
        let ran = run(&dir, args, &[&wrong[..], &flags].concat()).await;
        for part in ["SELECTION", "RULES_FILE: rules.json:1", "HEADGATE_FLAGS_FILE"] {
            assert_eq!(ran.stderr.matches(part).count(), 1, "{part}: {ran:?}");
        }
    }
    let nowhere = [("CONFIG_FILE", "endpoints.json"), ("VALKEY_URL", "redis://127.0.0.1/main")];
    for args in [&["--check"][..], &[]] {
        let ran = run(&dir, args, &nowhere).await;
        assert!(ran.code == Some(64) && ran.stderr.contains("VALKEY_URL"), "{args:?}: {}", ran.stderr);
    }
    let missing = run(&dir, &["--check"], &[("CONFIG_FILE", "nowhere.json")]).await;
    assert_eq!(missing.code, Some(64), "{missing:?}");
    fs::remove_dir_all(&dir).expect("removes");
}

/// Kills: a record that does not tell who was asked and what came of it; an address that is not taken as it is written.
#[tokio::test]
async fn why_tells_what_happened_to_a_request() {
    let world = World::build_unwatched()
        .primary("broken-one", Behaviour::status(500))
        .fallback("good-one", Behaviour::Healthy)
        .start()
        .await;
    let reply = world.client.post(call(1).to_string()).await;
    let id = reply.header("x-request-id").expect("an id").to_owned();
    let address = world.proxy.metrics.to_string();
    let url = format!("http://{address}");
    for url in [&url, &address] {
        let why = run(&world.proxy.dir, &["why", &id, "--url", url], &[]).await;
        assert_eq!(why.code, Some(0), "{why:?}");
        for part in ["broken-one", "good-one", "upstream_fault"] {
            assert!(why.stdout.contains(part), "{part} is not in {why:?}");
        }
    }
    let unknown = run(&world.proxy.dir, &["why", "nonsense", "--url", &url], &[]).await;
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
}

/// Kills: a status page or metrics that miss what the page of the interface promises.
#[tokio::test]
async fn operators_see_endpoints_and_counts() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    world.client.volley(1..10).await;
    let status = world.operator("/status").await.json();
    let endpoint = &status["chains"]["main"]["endpoints"]["a"];
    for field in [
        "role",
        "healthy",
        "block",
        "lag",
        "parked_until",
        "parked_reason",
        "ceilings",
        "used_24h",
        "in_flight",
        "last_verdict",
    ] {
        assert!(endpoint.get(field).is_some(), "{field} is missing: {status}");
    }
    assert_eq!((&endpoint["role"], &endpoint["last_verdict"]), (&json!("primary"), &json!("ok")), "{status}");
    assert_eq!(status["degraded"], json!([]));
    let counted = "headgate_http_requests_total{chain=\"main\",code=\"200\"} 9";
    // Counters of the request path are folded once a second.
    soon(async {
        while !world.operator("/metrics").await.text().contains(counted) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}
