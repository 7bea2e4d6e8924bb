//! Clients on WebSockets: known before the upgrade, and each call and subscription within their permissions and limits.

use serde_json::{Value, json};
use simulator::Behaviour;

use crate::file::{ClientsFile, client};
use crate::harness::{Socket, World, call, right};

async fn world(clients: &Value) -> (World, ClientsFile) {
    let file = ClientsFile::new(&json!({ "clients": clients }));
    let world = World::build().endpoint("a", Behaviour::Healthy, json!({"ws_url": "own"}));
    (world.env("CLIENTS_FILE", &file.path()).start().await, file)
}

fn subscribe(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "eth_subscribe", "params": ["newHeads"]})
}

/// The JSON-RPC code and the reason of an error that names this call.
fn refusal(answer: &Value, id: u64) -> (i64, String) {
    assert_eq!(answer["id"], id, "{answer}");
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or(0), error["data"]["reason"].as_str().unwrap_or_default().to_owned())
}

/// Kills: a socket for whoever asks, and a key that is looked at for the upgrade alone.
#[tokio::test]
async fn a_socket_knows_whose_it_is() {
    let quiet = client("quiet", "k-quiet", json!({"methods": {"deny": ["eth_subscribe"]}}));
    let (world, _file) = world(&json!([client("acme", "k-acme", json!({})), quiet])).await;
    let refused = Socket::open_at(world.proxy.address, "/main/nobody", &[]).await.err().expect("a refusal");
    assert_eq!(refused.refusal(), (401, -32001, "unauthorized".into()));
    let key = [("x-api-key", "k-acme")];
    let mut acme = Socket::open_at(world.proxy.address, "/main", &key).await.expect("opens");
    assert_eq!(acme.ask(call(1)).await, right(1));
    assert!(acme.ask(subscribe(2)).await["result"].is_string());
    let mut quiet = Socket::open_at(world.proxy.address, "/main/k-quiet", &[]).await.expect("opens");
    assert_eq!(refusal(&quiet.ask(subscribe(3)).await, 3), (-32001, "forbidden".into()));
    assert_eq!(quiet.ask(call(4)).await, right(4), "a refusal ends no socket");
}

/// Kills: subscriptions that cost a client nothing.
#[tokio::test]
async fn subscriptions_count_as_calls_do() {
    let limited = client("a", "k", json!({"limits": {"rpd": 3}}));
    let (world, _file) = world(&json!([limited])).await;
    let mut socket = Socket::open_at(world.proxy.address, "/main/k", &[]).await.expect("opens");
    for id in 0..3 {
        assert!(socket.ask(subscribe(id)).await["result"].is_string());
    }
    assert_eq!(refusal(&socket.ask(subscribe(3)).await, 3), (-32005, "client_limit".into()));
}
