//! Many clients' subscriptions while their providers die, stand still, change branches and are restarted one after
//! the other. The real binary over real sockets.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

mod branches;
mod crowd;
mod restarts;

use serde_json::{Value, json};
use simulator::Chain;

use harness::{GLANCE, Socket, World, soon};

/// A world whose endpoints have WebSockets.
async fn world(names: &[&str], env: &[(&str, &str)]) -> World {
    let builder = env.iter().fold(World::build(), |builder, (name, value)| builder.env(name, value));
    let own = || json!({"ws_url": "own"});
    names.iter().fold(builder, |builder, name| builder.node(name, |script| script, own())).start().await
}

async fn subscribe(socket: &mut Socket, params: &Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": "s", "method": "eth_subscribe", "params": params});
    let answer = socket.ask(call).await;
    assert!(answer["result"].is_string(), "{answer}");
    answer["result"].clone()
}

/// Clients that follow the heads.
async fn followers(world: &World, clients: usize) -> Vec<Socket> {
    let mut sockets = Vec::new();
    for _ in 0..clients {
        let mut socket = Socket::open(world.proxy.address).await;
        subscribe(&mut socket, &json!(["newHeads"])).await;
        sockets.push(socket);
    }
    sockets
}

/// The next head must be this block, as the chain has it.
async fn hears(socket: &mut Socket, chain: &Chain, number: u64) {
    let told = socket.hear().await["params"]["result"].take();
    let expected = (json!(format!("{number:#x}")), json!(chain.hash(number)));
    assert_eq!((&told["number"], &told["hash"]), (&expected.0, &expected.1), "{told}");
}

async fn all_hear(sockets: &mut [Socket], chain: &Chain, numbers: std::ops::RangeInclusive<u64>) {
    for socket in sockets {
        for number in numbers.clone() {
            hears(socket, chain, number).await;
        }
    }
}

/// The providers that have subscriptions.
fn serving<'a>(world: &World, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| world[name].subscriptions() > 0).collect()
}

async fn until(mut holds: impl FnMut() -> bool) {
    soon(async {
        while !holds() {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}
