//! Batches: ids of any kind come back in the client's order, and items fail or move alone.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use simulator::{Answer, Behaviour, ItemFault, RpcError};

use crate::harness::{World, call, calls, right, soon};

async fn broken_first(behaviour: Behaviour) -> World {
    World::build_unwatched().primary("a", behaviour).fallback("b", Behaviour::Healthy).start().await
}

fn refused_items(one_in: usize) -> Behaviour {
    Behaviour::Items { one_in, fault: ItemFault::Error(RpcError::new(-32005, "rate limit exceeded")) }
}

/// Kills: ids that pass through a number type, are normalised, deduplicated or sorted.
#[tokio::test]
async fn ids_come_back_as_they_were_written() {
    let ids = [
        "1",
        "\"a\"",
        "null",
        "1.50",
        "-0",
        "1e3",
        "123456789012345678901234567890",
        "\"\\u0041\"",
        "7",
        "7",
        "\"7\"",
        "\"\"",
    ];
    let items: Vec<String> =
        ids.iter().map(|id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId"}}"#)).collect();
    let batch = format!("[{}]", items.join(","));
    for behaviour in [Behaviour::Healthy, Behaviour::Reversed, refused_items(2)] {
        let text = format!("{behaviour:?}");
        let reply = broken_first(behaviour).await.client.post(batch.clone()).await;
        let answers: Vec<std::collections::HashMap<String, Box<RawValue>>> =
            serde_json::from_slice(&reply.body).unwrap_or_else(|err| panic!("{text}: {err}: {reply:?}"));
        let got: Vec<&str> = answers.iter().map(|answer| answer["id"].get()).collect();
        assert_eq!(got, ids, "{text}");
        assert!(answers.iter().all(|answer| answer["result"].get() == "\"0x539\""), "{text}: {reply:?}");
    }
}

/// Kills: a single id that is changed on its way.
#[tokio::test]
async fn a_single_id_comes_back_as_it_was_written() {
    let world = broken_first(Behaviour::Healthy).await;
    for id in ["1.50", "null", "123456789012345678901234567890", "\"\\u0041\"", "-7", "\"\""] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId","params":[]}}"#);
        let reply = world.client.post(body).await;
        let answer: std::collections::HashMap<String, Box<RawValue>> =
            serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(answer["id"].get(), id, "{reply:?}");
    }
}

/// Kills: a whole batch sent elsewhere for the sake of one item, and one that is not merged in order.
#[tokio::test]
async fn only_refused_items_go_elsewhere() {
    let world = broken_first(refused_items(3)).await;
    let reply = world.client.post(calls(0..10)).await;
    assert_eq!(reply.json(), Value::from_iter((0..10).map(right)));
    assert_eq!((world.asked("a"), world.asked("b")), (10, 3));
    // Split batches carry small ids of their own, so that equal ids of the client cannot be mixed up.
    let seen = world["b"].seen();
    let ids: Vec<Value> =
        seen.iter().filter(|seen| seen.method == "eth_call").map(|seen| seen.id.clone()).collect();
    assert_eq!(ids, [json!(0), json!(1), json!(2)]);
}

/// Kills: answers that a provider left out and that the client never gets.
#[tokio::test]
async fn missing_answers_are_asked_for_elsewhere() {
    let world = broken_first(Behaviour::Items { one_in: 2, fault: ItemFault::Missing }).await;
    assert_eq!(world.client.post(calls(0..10)).await.json(), Value::from_iter((0..10).map(right)));
    assert_eq!((world.asked("a"), world.asked("b")), (10, 5));
}

/// Kills: answers given by position instead of by id.
#[tokio::test]
async fn answers_in_another_order_find_their_calls() {
    let world = broken_first(Behaviour::Reversed).await;
    assert_eq!(world.client.post(calls(0..10)).await.json(), Value::from_iter((0..10).map(right)));
    assert_eq!(world.asked("b"), 0);
}

/// Kills: one object for a batch passed on as the batch's answer.
#[tokio::test]
async fn one_refusal_for_the_whole_batch_moves_it() {
    let limited = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32016,"message":"over rate limit"}}"#;
    let world = broken_first(Behaviour::Answer(Answer::json(200, limited))).await;
    assert_eq!(world.client.post(calls(0..4)).await.json(), Value::from_iter((0..4).map(right)));
    assert_eq!(world.asked("b"), 4);
}

/// Kills: notifications that are answered, or that are not sent.
#[tokio::test]
async fn notifications_are_sent_and_not_answered() {
    let world = broken_first(Behaviour::Healthy).await;
    let note = json!({"jsonrpc": "2.0", "method": "eth_chainId", "params": []});
    let mixed = world.client.post(json!([call(1), note, call(2)]).to_string()).await;
    assert_eq!(mixed.json(), json!([right(1), right(2)]));
    for body in [note.to_string(), json!([note, note]).to_string()] {
        let reply = world.client.post(body.clone()).await;
        assert!((200..300).contains(&reply.status) && reply.body.is_empty(), "{body}: {reply:?}");
    }
    soon(world["a"].in_flight(0)).await;
    let notes = world["a"].seen().iter().filter(|seen| seen.notification).count();
    assert_eq!((notes, world.asked("b")), (4, 0));
}

/// Kills: a client's own error in one item that is retried, or that spoils the others.
#[tokio::test]
async fn an_items_own_error_is_its_answer() {
    let world = broken_first(Behaviour::Healthy).await;
    let revert = json!({"jsonrpc": "2.0", "id": "r", "method": "eth_call", "params": [{"to": simulator::REVERTING}, "latest"]});
    let items = world.client.post(json!([call(1), revert, call(2)]).to_string()).await.json();
    assert_eq!((&items[0], &items[2]), (&right(1), &right(2)));
    assert_eq!((&items[1]["error"], &items[1]["id"]), (&simulator::revert().to_json(), &json!("r")));
    assert_eq!(world.asked("b"), 0);
}

/// Kills: a batch that fails without one error per id.
#[tokio::test]
async fn a_batch_that_nobody_answers_has_an_error_for_each_id() {
    let world = World::build_unwatched().primary("a", Behaviour::status(500)).start().await;
    let note = json!({"jsonrpc": "2.0", "method": "eth_chainId"});
    let reply = world.client.post(json!([call(1), note, call(2)]).to_string()).await;
    let ids: Vec<Value> =
        reply.json().as_array().expect("an array").iter().map(|item| item["id"].clone()).collect();
    assert_eq!((reply.status, ids), (502, vec![json!(1), json!(2)]));
    assert_eq!(reply.json()[0]["error"]["data"]["reason"], "all_attempts_failed");
}

/// Kills: a refusal of a method inside a batch that is forgotten; one that is told later with the id or the brackets of
/// the batch; one that stops other methods; a batch that asks for the method all the same.
#[tokio::test]
async fn refusals_of_methods_inside_a_batch_are_remembered() {
    let unknown = Behaviour::Error(RpcError::new(-32601, "the method eth_getProof does not exist"));
    let world = World::build().primary("a", Behaviour::on_method("eth_getProof", unknown)).start().await;
    let proof = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "eth_getProof", "params": []});
    let batch = world.client.post(json!([call(1), proof(2)]).to_string()).await.json();
    assert_eq!((&batch[0], &batch[1]["error"]["code"]), (&right(1), &json!(-32601)));
    let again = world.client.post(proof(3).to_string()).await.json();
    assert_eq!((&again["id"], &again["error"]), (&json!(3), &batch[1]["error"]));
    let batch = world.client.post(json!([proof(5), call(6)]).to_string()).await.json();
    assert_eq!((&batch[0]["id"], &batch[0]["error"]), (&json!(5), &again["error"]));
    assert_eq!(batch[1], right(6));
    assert_eq!(world["a"].count("eth_getProof"), 1);
    assert_eq!(world.client.post(call(4).to_string()).await.json(), right(4));
}
