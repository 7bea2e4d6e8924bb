//! Logs of a branch that is left while the provider is changed.

use serde_json::{Value, json};
use simulator::{Behaviour, Chain};

use super::{serving, subscribe, world};
use crate::harness::Socket;

const NAMES: [&str; 2] = ["a", "b"];

/// What a log says of its place, and whether it is gone.
async fn log(socket: &mut Socket) -> (Value, Value, bool) {
    let told = socket.hear().await["params"]["result"].take();
    (told["blockHash"].clone(), told["logIndex"].clone(), told["removed"] == true)
}

/// The logs of a block of the simulated chain: none, one or two.
fn logs_of(chain: &Chain, number: u64, removed: bool) -> Vec<(Value, Value, bool)> {
    let indices = 0..(number - Chain::GENESIS_HEAD) % 3;
    indices.map(|index| (json!(chain.hash(number)), json!(format!("{index:#x}")), removed)).collect()
}

/// Kills: logs of the old branch that stay, a removal that is told twice or of what stays, logs of the new branch that
/// are missing.
#[tokio::test]
async fn logs_of_a_branch_that_was_left_are_removed() {
    let world = world(&NAMES, &[]).await;
    let mut socket = Socket::open(world.proxy.address).await;
    subscribe(&mut socket, &json!(["logs", {}])).await;
    let (chain, mut old) = (&world.chain, Vec::new());
    for _ in 0..5 {
        let number = chain.advance();
        for expected in logs_of(chain, number, false) {
            assert_eq!(log(&mut socket).await, expected);
        }
        old.push(logs_of(chain, number, true));
    }
    let [name] = serving(&world, &NAMES)[..] else { panic!("one provider serves") };
    world[name].set(Behaviour::RefuseConnections).await.expect("dies");
    chain.reorganise(2);
    for expected in old[3..].iter().flatten().rev() {
        assert_eq!(&log(&mut socket).await, expected, "removed, the newest first");
    }
    let head = chain.head();
    for expected in (head - 2..=head).flat_map(|number| logs_of(chain, number, false)) {
        assert_eq!(log(&mut socket).await, expected);
    }
    for _ in 0..3 {
        let number = chain.advance();
        for expected in logs_of(chain, number, false) {
            assert_eq!(log(&mut socket).await, expected, "nothing is told twice");
        }
    }
}
