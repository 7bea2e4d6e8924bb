//! Which block a parameter names and what it contains. All nodes of a chain give the same block the same hash.

use serde_json::{Value, json};

use super::{RpcError, bad_params, hex};
use crate::chain::View;

/// The number that a block parameter names, seen from `head`. No parameter means the head.
pub(super) fn number(parameter: &Value, head: u64) -> Result<u64, RpcError> {
    if parameter.is_null() {
        return Ok(head);
    }
    let named = parameter.get("blockNumber").unwrap_or(parameter);
    match named.as_str() {
        Some("latest" | "pending") => Ok(head),
        Some("safe" | "finalized") => Ok(head.saturating_sub(64)),
        Some("earliest") => Ok(0),
        Some(text) => parse(text).ok_or_else(|| bad_params("invalid argument: hex string without 0x prefix")),
        None => Err(bad_params("invalid argument: json: cannot unmarshal into block number")),
    }
}

/// The block object at `number`.
pub(super) fn block(view: &View, number: u64) -> Value {
    let mut block = head(view, number);
    block["transactions"] = json!([]);
    block["uncles"] = json!([]);
    block["size"] = json!("0x220");
    block
}

/// The block at `number` as subscriptions tell it: the header alone.
pub(crate) fn head(view: &View, number: u64) -> Value {
    json!({
        "number": hex(number),
        "hash": view.hash(number),
        "parentHash": view.hash(number.wrapping_sub(1)),
        "timestamp": hex(1_700_000_000 + number * 12),
        "gasLimit": "0x1c9c380",
        "gasUsed": hex(21_000 * (number % 400)),
        "baseFeePerGas": "0x3b9aca00",
        "miner": "0x00000000000000000000000000000000000000fe",
        "extraData": "0x",
    })
}

/// The number of the block with this hash, among the last 256.
pub(super) fn find(asked: &str, view: &View) -> Option<u64> {
    (view.head.saturating_sub(255)..=view.head).rev().find(|number| view.hash(*number) == asked)
}

fn parse(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_name_blocks() {
        let check = |parameter: Value, expected: Option<u64>| {
            assert_eq!(number(&parameter, 100).ok(), expected, "{parameter}");
        };
        check(Value::Null, Some(100));
        check(json!("latest"), Some(100));
        check(json!("pending"), Some(100));
        check(json!("finalized"), Some(36));
        check(json!("earliest"), Some(0));
        check(json!("0x10"), Some(16));
        check(json!({"blockNumber": "0x11"}), Some(17));
        check(json!("16"), None);
        check(json!(16), None);
    }

    #[test]
    fn blocks_are_chained() {
        let view = crate::Chain::new(1).view();
        assert_eq!(block(&view, 5)["parentHash"], block(&view, 4)["hash"]);
        assert_eq!(find(&view.hash(view.head - 5), &view), Some(view.head - 5));
        assert_eq!(find(&view.hash(view.head + 1), &view), None);
    }
}
