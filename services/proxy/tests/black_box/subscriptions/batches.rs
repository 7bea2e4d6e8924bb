//! Subscriptions as members of batches.

use serde_json::{Value, json};

use super::{number, told, with_sockets};
use crate::harness::{Socket, World, call, right};

fn subscribes(id: u64, to: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "eth_subscribe", "params": [to]})
}

/// Kills: a subscription in a batch that is sent over HTTP, answers out of order, an id that leads nowhere.
#[tokio::test]
async fn a_batch_may_subscribe_and_unsubscribe() {
    let world = with_sockets(World::build(), &["a"]).start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    let wrong = json!({"jsonrpc": "2.0", "id": 3, "method": "eth_unsubscribe", "params": ["0x1"]});
    let batch = json!([call(1), subscribes(2, "newHeads"), wrong, subscribes(4, "nothing"), call(5)]);
    let answer = socket.ask(batch).await;
    let ids: Vec<&Value> = answer.as_array().expect("an array").iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5]);
    assert_eq!((&answer[0], &answer[4], &answer[2]["result"]), (&right(1), &right(5), &json!(false)));
    assert!(answer[3]["error"]["code"].is_i64(), "{answer}");
    let id = answer[1]["result"].clone();
    let head = world.chain.advance();
    assert_eq!(number(&told(&mut socket, &id).await), head);
    let end = json!([{"jsonrpc": "2.0", "id": 6, "method": "eth_unsubscribe", "params": [id]}]);
    assert_eq!(socket.ask(end).await, json!([{"jsonrpc": "2.0", "id": 6, "result": true}]));
}

/// Kills: a head that overtakes the answer which names its subscription.
#[tokio::test]
async fn what_is_told_follows_the_answer() {
    let slow = simulator::Behaviour::on_method(
        "eth_getBalance",
        simulator::Behaviour::delayed(std::time::Duration::from_millis(300), simulator::Behaviour::Healthy),
    );
    let world = with_sockets(World::build(), &["a"]).start().await;
    world["a"].set(slow).await.expect("a listening provider");
    let mut socket = Socket::open(world.proxy.address).await;
    let balance = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance",
        "params": ["0x0000000000000000000000000000000000000001", "latest"]});
    socket.send(json!([subscribes(2, "newHeads"), balance])).await;
    super::until(|| world["a"].subscriptions() > 0).await;
    let head = world.chain.advance();
    let answer = socket.hear().await;
    assert!(answer.is_array(), "first the answer: {answer}");
    let id = answer[0]["result"].clone();
    // Told while the batch was under way, or known already when the subscription was made.
    let next = world.chain.advance();
    let first = number(&told(&mut socket, &id).await);
    assert!(first == head || first == next, "{first}");
}
