//! Which logs a block has, and which of them a filter takes. All nodes of a chain have the same.

use serde_json::{Value, json};

use super::hex;
use crate::chain::{Chain, View, keccak_hex};

/// The logs of the block at `number` that `filter` takes: one, two or none, none up to where a new chain starts.
pub(crate) fn of_block(view: &View, number: u64, filter: &Value) -> Vec<Value> {
    let logs = number.saturating_sub(Chain::GENESIS_HEAD) % 3;
    (0..logs).map(|index| log(view, number, index)).filter(|log| takes(filter, log)).collect()
}

fn log(view: &View, number: u64, index: u64) -> Value {
    json!({
        "address": format!("0x{:040x}", 0xa0 + index),
        "topics": [keccak_hex(format!("event {index}").as_bytes()), format!("0x{number:064x}")],
        "data": "0x",
        "blockNumber": hex(number),
        "blockHash": view.hash(number),
        "transactionHash": keccak_hex(format!("{} {index}", view.hash(number)).as_bytes()),
        "transactionIndex": "0x0",
        "logIndex": hex(index),
        "removed": false,
    })
}

fn takes(filter: &Value, log: &Value) -> bool {
    let topics = filter["topics"].as_array().map(Vec::as_slice).unwrap_or_default();
    is_any_of(&filter["address"], &log["address"])
        && topics.iter().enumerate().all(|(at, wanted)| is_any_of(wanted, &log["topics"][at]))
}

fn is_any_of(wanted: &Value, is: &Value) -> bool {
    let same =
        |one: &Value| one.as_str().zip(is.as_str()).is_some_and(|(one, is)| one.eq_ignore_ascii_case(is));
    wanted.is_null()
        || same(wanted)
        || wanted.as_array().is_some_and(|any| any.is_empty() || any.iter().any(same))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Kills: a filter that takes all or nothing.
    #[test]
    fn filters_take_addresses_and_topics() {
        let view = Chain::new(1).view();
        let number = Chain::GENESIS_HEAD + 2;
        let topic = of_block(&view, number, &json!({}))[0]["topics"][0].clone();
        for (filter, taken) in [
            (json!({}), 2),
            (json!({"address": "0x00000000000000000000000000000000000000A1"}), 1),
            (json!({"address": ["0x00000000000000000000000000000000000000a0", "0x1"]}), 1),
            (json!({"address": "0x1"}), 0),
            (json!({"topics": [[topic]]}), 1),
            (json!({"topics": [null, format!("0x{number:064x}")]}), 2),
        ] {
            assert_eq!(of_block(&view, number, &filter).len(), taken, "{filter}");
        }
    }
}
