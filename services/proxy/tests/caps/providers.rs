//! Where flags come from, in real processes.

use crate::harness::{World, call, right, run, soon};
use crate::seen::{Asking, in_flight, limit, until};
use simulator::Behaviour;
use std::fs;
use std::path::PathBuf;

const FLAG: &str = "headgate.concurrency.upstream";

/// A flags file of a test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("flags-{}-{name}", std::process::id()));
    fs::write(&path, text).expect("a file");
    path
}

/// Kills: a variable that is not read, or under another name; a bad one that closes its gate.
#[tokio::test]
async fn variables_tighten_from_the_start() {
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("MAX_UPSTREAM_IN_FLIGHT", "9")
        .env("HEADGATE_FLAGS_PROVIDER", "environment")
        .env("HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM", "4")
        .env("HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM_MAIN", "3")
        .env("HEADGATE_FLAG_HEADGATE_CONCURRENCY_WEBSOCKET", "none")
        .env("HEADGATE_FLAG_HEADGATE_CONCURRENCY_WEBSOCKETS", "7")
        .start()
        .await;
    for (gate, expected) in
        [("upstream", 4.0), ("upstream.main", 3.0), ("websocket", 0.0), ("websocket.handshake", 0.0)]
    {
        assert_eq!(limit(&world.proxy, gate).await, Some(expected), "{gate}");
    }
    world.proxy.logged("not a whole number of at least 1", 1).await;
    world.proxy.logged("HEADGATE_FLAG_HEADGATE_CONCURRENCY_WEBSOCKETS", 1).await;
    world.client.volley(0..100).await;
}

/// Kills: a file that is read once, a cap that cancels what is under way, a file that is gone and loosens what it said, a
/// change that is not told or told again and again.
#[tokio::test]
async fn a_file_tightens_while_it_runs() {
    let path = file("running.json", "{}");
    let world = World::build_unwatched()
        .primary("a", Behaviour::Hang)
        .env("MAX_UPSTREAM_IN_FLIGHT", "5")
        .env("HEADGATE_FLAGS_PROVIDER", "file")
        .env("HEADGATE_FLAGS_FILE", &path.display().to_string())
        .env("PROXY_TIMEOUT_PER_TRY", "60")
        .env("PROXY_TIMEOUT", "60")
        .start()
        .await;
    let inside = [1, 2, 3].map(|id| Asking::of(&world, id));
    soon(world["a"].in_flight(3)).await;
    fs::write(&path, format!(r#"{{"{FLAG}": 2, "{FLAG}.main": 9, "other.flag": true}}"#)).expect("a file");
    until(async || limit(&world.proxy, "upstream").await == Some(2.0)).await;
    assert_eq!(limit(&world.proxy, "upstream.main").await, Some(9.0));
    assert_eq!(in_flight(&world.proxy, "upstream").await, Some(3.0), "a cap cancels nothing");
    assert_eq!(
        world.client.post(call(4).to_string()).await.status,
        503,
        "nobody is admitted until enough have left"
    );
    fs::remove_file(&path).expect("a file");
    world.proxy.logged("what was read before stays in force", 1).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(2.0));
    fs::write(&path, format!(r#"{{"{FLAG}": 2}}"#)).expect("a file");
    world.proxy.logged("flags are read again", 1).await;
    world.proxy.logged("the cap changed", 3).await;
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    drop(inside);
    until(async || in_flight(&world.proxy, "upstream").await == Some(0.0)).await;
    assert_eq!(world.client.post(call(5).to_string()).await.json(), right(5));
    assert_eq!(world.proxy.log().matches("the cap changed").count(), 3, "one line per change");
    fs::remove_file(&path).expect("a file");
}

/// Kills: a local mistake that is found out only when a cap is needed, and a message that does not name the setting.
#[tokio::test]
async fn local_mistakes_stop_the_start() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("flags-start-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let endpoint =
        r#"{"provider": "x", "role": "primary", "type": "full", "http_url": "http://127.0.0.1:1"}"#;
    fs::write(dir.join("endpoints.json"), format!(r#"{{"main": {{"a": {endpoint}}}}}"#)).expect("a file");
    fs::write(dir.join("broken.json"), r#"{"headgate.concurrency.upstream": }"#).expect("a file");
    for (settings, named) in [
        (&[("HEADGATE_FLAGS_PROVIDER", "flagd")][..], "HEADGATE_FLAGS_PROVIDER"),
        (&[("HEADGATE_FLAGS_PROVIDER", "file")], "HEADGATE_FLAGS_FILE"),
        (&[("HEADGATE_FLAGS_PROVIDER", "file"), ("HEADGATE_FLAGS_FILE", "nowhere.json")], "nowhere.json"),
        (&[("HEADGATE_FLAGS_PROVIDER", "file"), ("HEADGATE_FLAGS_FILE", "broken.json")], "broken.json"),
        (&[("HEADGATE_FLAGS_PROVIDER", "valkey")], "STORE_BACKEND"),
        (&[("HEADGATE_FLAGS_PROVIDER", "launchdarkly")], "HEADGATE_LAUNCHDARKLY_SDK_KEY"),
        (&[("HEADGATE_FLAGS_PROVIDER", "ofrep")], "HEADGATE_OFREP_URL"),
        (&[("HEADGATE_FLAGS_PROVIDER", "ofrep"), ("HEADGATE_OFREP_URL", "flagd:8016")], "HEADGATE_OFREP_URL"),
    ] {
        for args in [&["--check"][..], &[]] {
            let env: Vec<_> = [("CONFIG_FILE", "endpoints.json")].iter().chain(settings).copied().collect();
            let ran = run(&dir, args, &env).await;
            assert_eq!(ran.code, Some(64), "{settings:?} {args:?}: {ran:?}");
            assert!(
                (ran.stdout.clone() + &ran.stderr).contains(named),
                "{settings:?}: {named} is not in {ran:?}"
            );
        }
    }
    fs::remove_dir_all(&dir).expect("removes");
}
