//! Every provider is restarted, one after the other, while clients call and listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use serde_json::json;
use simulator::Behaviour;

use super::{all_hear, followers, until, world};
use crate::harness::{GLANCE, Socket, World, call, right, soon};

const NAMES: [&str; 3] = ["a", "b", "c"];
const CALLERS: usize = 20;
/// What failed is looked at soon, and is back when it answers.
const CHECKS: [(&str, &str); 2] =
    [("EPHEMERAL_CHECKS_INTERVAL", "100ms"), ("EPHEMERAL_CHECKS_HEALTHY_THRESHOLD", "1")];

/// Waits until health says so of its HTTP and its WebSocket.
async fn is_back(world: &World, name: &str) {
    loop {
        let status = world.operator("/status").await.json();
        if status["chains"]["main"]["endpoints"][name]["healthy"] == json!({"http": true, "ws": true}) {
            return;
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// Asks one call after the other until it is told to stop; each must be answered rightly.
async fn caller(mut socket: Socket, first: u64, stop: &AtomicBool, answered: &AtomicUsize) {
    for id in (first..).step_by(CALLERS) {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        assert_eq!(socket.ask(call(id)).await, right(id));
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

/// Kills: a call that is lost with its provider, a client that is closed with it, a head that is missed on the way.
#[tokio::test]
async fn a_rolling_restart_of_all_providers_is_not_noticed() {
    let world = world(&NAMES, &CHECKS).await;
    let mut listeners = followers(&world, 30).await;
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut sockets = Vec::new();
    for _ in 0..CALLERS {
        sockets.push(Socket::open(world.proxy.address).await);
    }
    let callers = join_all((0..).zip(sockets).map(|(first, socket)| caller(socket, first, &stop, &answered)));
    let restarts = async {
        for name in NAMES.iter().chain(&NAMES) {
            let served = answered.load(Ordering::SeqCst);
            world[name].set(Behaviour::RefuseConnections).await.expect("stops");
            let from = world.chain.advance();
            let to = world.chain.advance();
            all_hear(&mut listeners, &world.chain, from..=to).await;
            until(|| answered.load(Ordering::SeqCst) > served + 100).await;
            world[name].set(Behaviour::Healthy).await.expect("starts");
            // Who restarts one after the other waits for each to be back.
            soon(is_back(&world, name)).await;
        }
        stop.store(true, Ordering::SeqCst);
    };
    tokio::join!(callers, restarts);
    println!("{} calls were answered while six providers were restarted", answered.load(Ordering::SeqCst));
}
