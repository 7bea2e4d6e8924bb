//! Which block a call is about. Read only after an endpoint said that it lacks the state: never on the hot path.

use serde_json::Value;

/// The block a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockWanted {
    Number(u64),
    /// The newest, or one that is named by a hash or not at all.
    Unknown,
    Earliest,
}

/// The block in `params` of `method`.
pub(crate) fn block_wanted(method: &str, params: Option<&[u8]>) -> BlockWanted {
    let Some(Value::Array(params)) = params.and_then(|params| serde_json::from_slice(params).ok()) else {
        return BlockWanted::Unknown;
    };
    let position = match method {
        "eth_getBlockByNumber"
        | "eth_getBlockReceipts"
        | "eth_getBlockTransactionCountByNumber"
        | "eth_getTransactionByBlockNumberAndIndex"
        | "eth_getUncleByBlockNumberAndIndex"
        | "eth_getUncleCountByBlockNumber"
        | "debug_traceBlockByNumber"
        | "trace_block"
        | "trace_replayBlockTransactions" => 0,
        "eth_getStorageAt" | "eth_getProof" => 2,
        "eth_getLogs" | "eth_newFilter" => return params.first().map_or(BlockWanted::Unknown, of_filter),
        _ => 1,
    };
    params.get(position).map_or(BlockWanted::Unknown, of_parameter)
}

/// How many blocks the filter of an `eth_getLogs` spans; `head` stands for its newest. `None`: one block, or unknown.
pub(crate) fn log_range(params: Option<&[u8]>, head: u64) -> Option<u64> {
    let params: Vec<Value> = serde_json::from_slice(params?).ok()?;
    let filter = params.first()?;
    let bound = |key: &str| match filter.get(key).map(of_parameter) {
        Some(BlockWanted::Number(number)) => Some(number),
        Some(BlockWanted::Earliest) => Some(0),
        Some(BlockWanted::Unknown) | None => (head > 0).then_some(head),
    };
    let span = bound("toBlock")?.checked_sub(bound("fromBlock")?)?;
    (span > 0 && filter.get("blockHash").is_none()).then_some(span + 1)
}

/// A filter needs the state of its oldest block.
fn of_filter(filter: &Value) -> BlockWanted {
    filter.get("fromBlock").map_or(BlockWanted::Unknown, of_parameter)
}

fn of_parameter(parameter: &Value) -> BlockWanted {
    match parameter {
        Value::String(tag) if tag == "earliest" => BlockWanted::Earliest,
        Value::String(number) => number
            .strip_prefix("0x")
            .filter(|digits| digits.len() <= 16)
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .map_or(BlockWanted::Unknown, BlockWanted::Number),
        Value::Object(object) => object.get("blockNumber").map_or(BlockWanted::Unknown, of_parameter),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => BlockWanted::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::BlockWanted::{Earliest, Number, Unknown};
    use super::*;

    #[test]
    fn a_range_is_counted_with_both_its_ends() {
        for (filter, expected) in [
            (r#"{"fromBlock":"0x1","toBlock":"0xa"}"#, Some(10)),
            (r#"{"fromBlock":"0x1","toBlock":"latest"}"#, Some(100)),
            (r#"{"fromBlock":"earliest"}"#, Some(101)),
            (r#"{"fromBlock":"0x5","toBlock":"0x5"}"#, None),
            (r#"{"fromBlock":"0x9","toBlock":"0x5"}"#, None),
            (r#"{"blockHash":"0xab"}"#, None),
            ("{}", None),
            ("7", None),
        ] {
            assert_eq!(log_range(Some(format!("[{filter}]").as_bytes()), 100), expected, "{filter}");
        }
    }

    #[test]
    fn the_block_stands_where_the_method_has_it() {
        for (method, params, expected) in [
            ("eth_getBalance", r#"["0xab","0x10"]"#, Number(16)),
            ("eth_getBalance", r#"["0xab","latest"]"#, Unknown),
            ("eth_getBalance", r#"["0xab","earliest"]"#, Earliest),
            ("eth_call", r#"[{"to":"0x1"},{"blockNumber":"0x5"}]"#, Number(5)),
            ("eth_call", r#"[{"to":"0x1"},{"blockHash":"0x5"}]"#, Unknown),
            ("eth_getBlockByNumber", r#"["0xff",false]"#, Number(255)),
            ("eth_getStorageAt", r#"["0xab","0x0","0x7"]"#, Number(7)),
            ("eth_getLogs", r#"[{"fromBlock":"0x3","toBlock":"0x9"}]"#, Number(3)),
            ("eth_getLogs", r#"[{}]"#, Unknown),
            ("eth_call", r#"{"not":"an array"}"#, Unknown),
            ("eth_getBalance", r#"["0xab","0xfffffffffffffffffff"]"#, Unknown),
        ] {
            assert_eq!(block_wanted(method, Some(params.as_bytes())), expected, "{method} {params}");
        }
        assert_eq!(block_wanted("eth_call", None), Unknown);
    }
}
