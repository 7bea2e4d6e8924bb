//! What a subscription is about, in a form in which equal ones are equal. Decides who may share.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Map, Value};

/// What a subscription is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Topic {
    /// `newHeads`.
    Heads,
    /// `logs` that match this filter (canonical JSON).
    Logs(Box<str>),
    /// Anything else: never shared, and nothing can be filled.
    Own,
}

impl Topic {
    /// The topic of a client's call.
    pub(crate) fn of(method: &str, params: &[u8]) -> Self {
        if method != "eth_subscribe" {
            return Self::Own;
        }
        let Ok(params) = serde_json::from_slice::<Vec<Value>>(params) else { return Self::Own };
        match (params.first().and_then(Value::as_str), &params[1.min(params.len())..]) {
            (Some("newHeads"), []) => Self::Heads,
            (Some("logs"), []) => Self::Logs("{}".into()),
            (Some("logs"), [Value::Object(filter)]) => canonical(filter).map_or(Self::Own, Self::Logs),
            _ => Self::Own,
        }
    }

    /// Whether the node's heads tell something about it.
    pub(crate) fn follows_heads(&self, method: &str) -> bool {
        matches!(self, Self::Heads | Self::Logs(_)) || method == "eth_subscribe"
    }
}

/// A filter as everybody would write it who means the same: `None` where it says more than address and topics.
fn canonical(filter: &Map<String, Value>) -> Option<Box<str>> {
    let mut plain = Map::new();
    for (name, value) in filter {
        match name.as_str() {
            "address" => insert(&mut plain, name, any_of(value)?),
            "topics" => insert(&mut plain, name, topics(value)?),
            // Nodes ignore a range here: a subscription is about what comes.
            "fromBlock" | "toBlock" => {}
            _ => return None,
        }
    }
    Some(Value::Object(plain).to_string().into())
}

fn insert(plain: &mut Map<String, Value>, name: &str, value: Value) {
    if !value.is_null() {
        plain.insert(name.to_owned(), value);
    }
}

/// One value or any of several, in one spelling; null matches all.
fn any_of(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(Value::Null),
        Value::String(text) => Some(Value::String(text.to_ascii_lowercase())),
        Value::Array(items) => {
            let plain: Option<BTreeSet<String>> =
                items.iter().map(|item| item.as_str().map(str::to_ascii_lowercase)).collect();
            let mut plain: Vec<String> = plain?.into_iter().collect();
            Some(match plain.len() {
                0 => Value::Null,
                1 => Value::String(plain.remove(0)),
                _ => plain.into(),
            })
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// The positions' alternatives. A null at the end is kept: it asks that there be a topic at all.
fn topics(value: &Value) -> Option<Value> {
    match value {
        Value::Null => Some(Value::Null),
        Value::Array(positions) if positions.is_empty() => Some(Value::Null),
        Value::Array(positions) => {
            positions.iter().map(any_of).collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => None,
    }
}

/// The parameters of `eth_getLogs` for a canonical filter over a range of blocks.
pub(crate) fn logs_params(filter: &str, from: u64, to: u64) -> Bytes {
    let mut params: Map<String, Value> = serde_json::from_str(filter).unwrap_or_default();
    params.insert("fromBlock".to_owned(), format!("{from:#x}").into());
    params.insert("toBlock".to_owned(), format!("{to:#x}").into());
    Value::Array(vec![Value::Object(params)]).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Kills: sharing between different filters, and none between filters that mean the same.
    #[test]
    fn equal_filters_are_equal_and_others_are_not() {
        let of = |params: &str| Topic::of("eth_subscribe", params.as_bytes());
        for (one, other, same) in [
            (r#"["newHeads"]"#, r#" [ "newHeads" ]"#, true),
            (r#"["logs",{}]"#, r#"["logs"]"#, true),
            (r#"["logs",{"address":"0xAB"}]"#, r#"["logs",{"address":["0xab","0xAB"]}]"#, true),
            (
                r#"["logs",{"topics":[["0x1","0x2"]],"address":[]}]"#,
                r#"["logs",{"topics":[["0x2","0x1"]]}]"#,
                true,
            ),
            (r#"["logs",{"topics":[]}]"#, r#"["logs",{"fromBlock":"latest"}]"#, true),
            (r#"["logs",{"topics":["0x1","0x2"]}]"#, r#"["logs",{"topics":["0x2","0x1"]}]"#, false),
            (r#"["logs",{"topics":["0x1",null]}]"#, r#"["logs",{"topics":["0x1"]}]"#, false),
            (r#"["logs",{"topics":[null,"0x1"]}]"#, r#"["logs",{"topics":["0x1"]}]"#, false),
            (r#"["logs",{"address":"0x1"}]"#, r#"["logs",{"address":"0x2"}]"#, false),
            (r#"["newHeads"]"#, r#"["logs"]"#, false),
        ] {
            assert_eq!(of(one) == of(other), same, "{one} {other}");
        }
    }

    // Kills: sharing what nobody knows to be the same for all.
    #[test]
    fn all_else_is_its_own() {
        for (method, params) in [
            ("eth_subscribe", r#"["newPendingTransactions"]"#),
            ("eth_subscribe", r#"["newHeads",{"includeTransactions":true}]"#),
            ("eth_subscribe", r#"["logs",{"address":7}]"#),
            ("eth_subscribe", r#"["logs",{"fromTheFuture":true}]"#),
            ("eth_subscribe", "{}"),
            ("slotSubscribe", r#"["newHeads"]"#),
        ] {
            assert_eq!(Topic::of(method, params.as_bytes()), Topic::Own, "{method} {params}");
        }
    }

    // Kills: a fill that asks for another filter or range.
    #[test]
    fn a_filter_gets_its_range() {
        let params: Value =
            serde_json::from_slice(&logs_params(r#"{"address":"0xab"}"#, 16, 17)).expect("JSON");
        assert_eq!(params, serde_json::json!([{"address": "0xab", "fromBlock": "0x10", "toBlock": "0x11"}]));
    }
}
