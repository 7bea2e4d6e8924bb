//! Sockets of clients from the upgrade to the end: the key, the slot, the charge, the withdrawal.

use serde_json::json;
use simulator::Behaviour;

use crate::file::{ClientsFile, client};
use crate::harness::{GLANCE, Socket, World, call, right, soon};

/// Kills: a socket that opens to anybody, one whose calls are not charged, a refusal without when.
#[tokio::test]
async fn a_socket_is_opened_by_a_key_and_charged_by_the_call() {
    let file = ClientsFile::new(&json!({"clients": [
        client("a", "k", json!({"limits": {"rpd": 2}, "methods": {"deny": ["debug_*"]}})),
    ]}));
    let world =
        World::build().primary("a", Behaviour::Healthy).env("CLIENTS_FILE", &file.path()).start().await;
    let at = world.proxy.address;
    let refused = Socket::open_at(at, "/main", &[]).await.err().expect("refused before the upgrade");
    assert_eq!(refused.refusal(), (401, -32001, "unauthorized".to_owned()));
    let mut socket =
        Socket::open_at(at, "/main/k", &[]).await.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let forbidden = socket.ask(json!({"id": 9, "method": "debug_x"})).await;
    assert_eq!((&forbidden["id"], &forbidden["error"]["code"]), (&json!(9), &json!(-32001)));
    assert_eq!(socket.ask(call(1)).await, right(1));
    assert_eq!(socket.ask(call(2)).await, right(2));
    let limited = socket.ask(call(3)).await;
    assert_eq!((&limited["id"], &limited["error"]["code"]), (&json!(3), &json!(-32005)));
    assert!(
        limited["error"]["data"]["retry_after_ms"].as_u64().is_some_and(|millis| millis > 0),
        "{limited}"
    );
    let mut again =
        Socket::open_at(at, "/main", &[("x-api-key", "k")]).await.unwrap_or_else(|r| panic!("{r:?}"));
    assert_eq!(again.ask(call(4)).await["error"]["data"]["reason"], "client_limit", "one count for all ways");
}

/// Kills: sockets that hold no slot, a slot that is kept by a socket that is gone.
#[tokio::test]
async fn a_socket_holds_a_slot_until_it_ends() {
    let file =
        ClientsFile::new(&json!({"clients": [client("a", "k", json!({"limits": {"concurrency": 1}}))]}));
    let world =
        World::build().primary("a", Behaviour::Healthy).env("CLIENTS_FILE", &file.path()).start().await;
    let at = world.proxy.address;
    let mut first = Socket::open_at(at, "/main/k", &[]).await.unwrap_or_else(|refusal| panic!("{refusal:?}"));
    assert_eq!(first.ask(call(1)).await, right(1), "its calls need no other slot");
    let refused = Socket::open_at(at, "/main/k", &[]).await.err().expect("one socket at a time");
    assert_eq!((refused.refusal().2.as_str(), refused.header("retry-after")), ("client_limit", Some("1")));
    drop(first);
    soon(async {
        while Socket::open_at(at, "/main/k", &[]).await.is_err() {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}

/// Kills: a withdrawn key that goes on as long as its socket stays open.
#[tokio::test]
async fn a_withdrawn_key_ends_its_sockets() {
    let file = ClientsFile::new(&json!({"clients": [client("a", "k", json!({}))]}));
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("CLIENTS_FILE", &file.path())
        .env("WS_PING_INTERVAL", "1")
        .start()
        .await;
    let mut socket =
        Socket::open_at(world.proxy.address, "/main/k", &[]).await.unwrap_or_else(|r| panic!("{r:?}"));
    assert_eq!(socket.ask(call(1)).await, right(1));
    file.write(&json!({"clients": [client("a", "another", json!({}))]}).to_string());
    // It listens, and answers pings, all the while.
    let (closed, ()) = tokio::join!(socket.closed(), world.proxy.logged("endpoints reloaded", 1));
    assert_eq!(closed, Some((1008, "the key is not valid any more".to_owned())));
}
