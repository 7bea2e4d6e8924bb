//! Who may open a socket, answered before the upgrade.

use simulator::Behaviour;

use crate::harness::{GLANCE, Socket, World, call, right};

/// Kills: dialling a provider for a handshake that is wrong, and an upgrade that is answered with anything but what is
/// wrong with it.
#[tokio::test]
async fn a_wrong_handshake_is_refused_by_us() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    for (name, value, status) in [("sec-websocket-version", "12", 426), ("sec-websocket-key", "short", 400)] {
        let refusal = Socket::open_at(world.proxy.address, "/main", &[(name, value)]).await.err();
        let refusal = refusal.expect("a refusal");
        assert_eq!(refusal.refusal(), (status, -32600, "bad_upgrade".into()));
        assert_eq!(refusal.header("sec-websocket-version").is_some(), status == 426);
    }
    let refusal = Socket::open_at(world.proxy.address, "/nowhere", &[]).await.err().expect("a refusal");
    assert_eq!(refusal.refusal(), (404, -32601, "unknown_chain".into()));
    assert_eq!(world.asked("a"), 0);
}

/// Kills: an upgrade that hides the pages, as if a chain could be called so.
#[tokio::test]
async fn pages_are_there_for_who_would_rather_have_a_socket() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    for (path, said) in [("/health", "healthy"), ("/ready", "ready")] {
        let page = Socket::open_at(world.proxy.address, path, &[]).await.err().expect("no socket");
        assert_eq!((page.status, &page.json()["status"]), (200, &said.into()), "{path}");
    }
}

/// Kills: an agreement to what nobody implements.
#[tokio::test]
async fn nothing_is_agreed_to_that_is_not_there() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let offers = [("sec-websocket-extensions", "permessage-deflate; client_max_window_bits")];
    for path in ["/main", "/main/", "/main/some-key"] {
        let mut socket = Socket::open_at(world.proxy.address, path, &offers).await.expect("opens");
        let agreed = |name: &str| socket.headers.contains_key(name);
        assert!(
            !agreed("sec-websocket-extensions") && !agreed("sec-websocket-protocol"),
            "{:?}",
            socket.headers
        );
        assert_eq!(socket.ask(call(1)).await, right(1), "{path}");
    }
}

/// Kills: any page that may read everything through a visitor's browser.
#[tokio::test]
async fn origins_follow_the_cors_setting() {
    let world = World::build().primary("a", Behaviour::Healthy).env("CORS_ORIGIN", "https://app.example");
    let world = world.start().await;
    let open = |origin: &'static str| async move {
        Socket::open_at(world.proxy.address, "/main", &[("origin", origin)]).await.err().map(|r| r.refusal())
    };
    assert_eq!(open("https://app.example").await, None);
    assert_eq!(open("https://evil.example").await, Some((403, -32600, "origin_not_allowed".into())));
}

/// Kills: a socket that opens although every call on it would be refused, or one that is refused without a word of
/// when to come back.
#[tokio::test]
async fn a_saturated_chain_is_told_as_http() {
    let world = World::build().primary("a", Behaviour::rate_limited(Some(60))).start().await;
    assert_eq!(world.client.post(call(1).to_string()).await.status, 429);
    let refusal = Socket::open_at(world.proxy.address, "/main", &[]).await.err().expect("a refusal");
    assert_eq!(refusal.refusal(), (429, -32005, "saturated".into()));
    let wait: u64 = refusal.header("retry-after").and_then(|wait| wait.parse().ok()).expect("a wait");
    assert!((1..=61).contains(&wait), "{wait}");
}

/// Kills: an empty answer, or a socket, when nobody lives.
#[tokio::test]
async fn a_dead_chain_is_told_as_http_and_a_live_fallback_serves() {
    let world =
        World::build().primary("a", Behaviour::CloseConnection).env("ENDPOINT_FAILURE_THRESHOLD", "1");
    let world = world.fallback("b", Behaviour::Healthy).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    assert_eq!(socket.ask(call(1)).await, right(1), "kills: giving up at the first provider");
    let world =
        World::build().primary("a", Behaviour::RefuseConnections).env("ENDPOINT_FAILURE_THRESHOLD", "1");
    let world = world.start().await;
    assert_eq!(world.client.post(call(1).to_string()).await.status, 502);
    let refusal = Socket::open_at(world.proxy.address, "/main", &[]).await.err().expect("a refusal");
    assert_eq!(refusal.refusal(), (502, -32603, "all_attempts_failed".into()));
}

/// Kills: sockets without a bound, and places that are not given back.
#[tokio::test]
async fn sockets_are_bounded() {
    let world = World::build().primary("a", Behaviour::Healthy).env("MAX_WEBSOCKETS", "2").start().await;
    let first = Socket::open(world.proxy.address).await;
    let mut second = Socket::open(world.proxy.address).await;
    let refusal = Socket::open_at(world.proxy.address, "/main", &[]).await.err().expect("a refusal");
    assert_eq!(refusal.refusal(), (503, -32603, "overloaded".into()));
    assert!(refusal.header("retry-after").is_some());
    drop(first);
    while Socket::open_at(world.proxy.address, "/main", &[]).await.is_err() {
        tokio::time::sleep(GLANCE).await;
    }
    assert_eq!(second.ask(call(1)).await, right(1));
}
