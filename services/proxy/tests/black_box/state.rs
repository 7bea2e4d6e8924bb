//! What a chain's readers may rely on although their nodes differ: heads, and filters that live in one node.

use serde_json::{Value, json};
use simulator::{Behaviour, Script};

use crate::harness::World;

async fn ask(world: &World, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    world.client.post(body.to_string()).await.json()
}

/// Kills: "header not found" taken for "pruned", or passed on, when the node was merely a block behind.
#[tokio::test]
async fn readers_find_the_head_they_were_told_of() {
    let world = World::build()
        .node("a", |script| script, json!({}))
        .node("b", |script: Script| script.lagging(1), json!({}))
        .start()
        .await;
    for _ in 0..40 {
        let head = ask(&world, "eth_blockNumber", json!([])).await["result"].clone();
        let balance = ask(&world, "eth_getBalance", json!(["0xabc", head])).await;
        assert_eq!(
            balance["result"],
            simulator::expected("eth_getBalance", &json!(["0xabc", head])),
            "{balance}"
        );
        world.chain.advance();
    }
    assert!(world.asked("a") > 0 && world.asked("b") > 0, "only one node was asked");
}

/// Kills: an old block asked of nodes that have pruned it while an archive node is there.
#[tokio::test]
async fn old_blocks_are_found_in_the_archive() {
    let world = World::build()
        .node("a", |script| script, json!({}))
        .node("b", Script::archive, json!({"role": "public", "type": "archive"}))
        .start()
        .await;
    let old = json!(["0xabc", "0x10"]);
    for _ in 0..5 {
        assert_eq!(
            ask(&world, "eth_getBalance", old.clone()).await["result"],
            simulator::expected("eth_getBalance", &old)
        );
    }
}

/// Kills: a filter asked for at a node that never had it; equal ids of two nodes mixed up.
#[tokio::test]
async fn filters_stay_with_their_node() {
    let world =
        World::build().primary("a", Behaviour::Healthy).primary("b", Behaviour::Healthy).start().await;
    let mut filters = Vec::new();
    for _ in 0..6 {
        filters.push(ask(&world, "eth_newBlockFilter", json!([])).await["result"].clone());
    }
    assert!(world["a"].count("eth_newBlockFilter") > 0 && world["b"].count("eth_newBlockFilter") > 0);
    filters.sort_by_key(Value::to_string);
    filters.dedup();
    assert_eq!(filters.len(), 6, "two filters have one id: {filters:?}");
    world.chain.advance();
    for filter in &filters {
        let changes = ask(&world, "eth_getFilterChanges", json!([filter])).await;
        assert_eq!(changes["result"].as_array().map(Vec::len), Some(1), "{changes}");
        assert_eq!(ask(&world, "eth_uninstallFilter", json!([filter])).await["result"], json!(true));
        let gone = ask(&world, "eth_getFilterChanges", json!([filter])).await;
        assert_eq!(gone["error"]["message"], "filter not found", "{gone}");
    }
    let foreign = ask(&world, "eth_getFilterChanges", json!(["0x1"])).await;
    assert_eq!(foreign["error"]["message"], "filter not found", "{foreign}");
}
