//! Subscriptions of clients: shared upstream, and kept while their providers come and go.

mod batches;
mod endings;
mod keeping;
mod sharing;
mod slow;

use serde_json::{Value, json};
use simulator::Chain;

use crate::harness::{Builder, GLANCE, Socket, World, soon};

/// An endpoint with a WebSocket of its own.
fn with_sockets(world: Builder, names: &[&str]) -> Builder {
    names.iter().fold(world, |world, name| world.node(name, |script| script, json!({"ws_url": "own"})))
}

/// Subscribes; the id.
async fn subscribe(socket: &mut Socket, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": "s", "method": "eth_subscribe", "params": params});
    let answer = socket.ask(call).await;
    assert_eq!(answer["id"], "s", "{answer}");
    assert!(answer["result"].is_string(), "{answer}");
    answer["result"].clone()
}

/// A client that follows the heads.
async fn follower(world: &World) -> (Socket, Value) {
    let mut socket = Socket::open(world.proxy.address).await;
    let id = subscribe(&mut socket, json!(["newHeads"])).await;
    (socket, id)
}

/// The next thing told under this id.
async fn told(socket: &mut Socket, id: &Value) -> Value {
    let told = socket.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["subscription"]),
        (&json!("eth_subscription"), id),
        "{told}"
    );
    told["params"]["result"].clone()
}

/// Waits for the logs of the block at `number`, each once and in order.
async fn logs_of(world: &World, number: u64, socket: &mut Socket, id: &Value) {
    // What the simulated chain has: none, one and two by turns.
    for index in 0..(number - Chain::GENESIS_HEAD) % 3 {
        let log = told(socket, id).await;
        let expected = (json!(world.chain.hash(number)), json!(format!("{index:#x}")), json!(false));
        assert_eq!(
            (&log["blockHash"], &log["logIndex"], &log["removed"]),
            (&expected.0, &expected.1, &expected.2)
        );
    }
}

fn number(head: &Value) -> u64 {
    let digits = head["number"].as_str().and_then(|number| number.strip_prefix("0x")).expect("a number");
    u64::from_str_radix(digits, 16).expect("a number")
}

/// The provider that serves the only upstream subscription.
async fn serving(world: &World, names: &[&'static str]) -> &'static str {
    let found = async {
        loop {
            if let Some(name) = names.iter().find(|name| world[name].subscriptions() > 0) {
                return *name;
            }
            tokio::time::sleep(GLANCE).await;
        }
    };
    soon(found).await
}

async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(GLANCE).await;
        }
    };
    soon(waiting).await;
}
