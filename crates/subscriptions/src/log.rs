//! What is read of a log (block, index, whether it was removed), and how a removed one is told.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::action::Payload;
use crate::block::{Hash, Unreadable, quantity};

/// A log and how it is told.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) number: u64,
    pub(crate) key: Key,
    pub(crate) removed: bool,
    /// The raw JSON.
    pub(crate) result: Bytes,
    pub(crate) payload: Payload,
}

/// What makes a log the same log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) block: Hash,
    pub(crate) index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    #[serde(borrow)]
    block_hash: Cow<'a, str>,
    #[serde(borrow)]
    block_number: Cow<'a, str>,
    #[serde(borrow)]
    log_index: Cow<'a, str>,
    #[serde(default)]
    removed: bool,
}

impl Log {
    /// A log that a subscription told as `payload`.
    pub(crate) fn told(result: &Bytes, payload: &Payload) -> Option<Self> {
        let read: Read<'_> = serde_json::from_slice(result).ok()?;
        Some(Self {
            number: quantity(&read.block_number)?,
            key: Key { block: Hash::parse(&read.block_hash)?, index: quantity(&read.log_index)? },
            removed: read.removed,
            result: result.clone(),
            payload: payload.clone(),
        })
    }

    /// The logs in an answer to `eth_getLogs`.
    pub(crate) fn list(answer: &Bytes) -> Result<Vec<Self>, Unreadable> {
        let items: Vec<&RawValue> = serde_json::from_slice(answer).map_err(|_| Unreadable)?;
        let log = |item: &RawValue| {
            let result = answer.slice_ref(item.get().as_bytes());
            Self::told(&result, &Payload::of_result(&result)).ok_or(Unreadable)
        };
        items.into_iter().map(log).collect()
    }
}

/// How a log that was told is told to have left the chain.
pub(crate) fn removal(result: &[u8]) -> Option<Payload> {
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_slice(result).ok()?;
    let yes: &RawValue = serde_json::from_str("true").ok()?;
    members.insert("removed", yes);
    serde_json::to_vec(&members).ok().map(|json| Payload::of_result(&json))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::block::tests::{hash, hash_text};
    use crate::ids::SubscriptionId;

    pub(crate) fn json(number: u64, block: u64, index: u64, removed: bool) -> String {
        format!(
            r#"{{"blockNumber":"{number:#x}","blockHash":"{}","logIndex":"{index:#x}","removed":{removed},"data":"0x"}}"#,
            hash_text(block)
        )
    }

    // Kills: a key of something else, a list that skips what it cannot read.
    #[test]
    fn logs_are_read() {
        let list = format!("[{},{}]", json(3, 30, 1, false), json(4, 40, 0, true));
        let logs = Log::list(&list.into_bytes().into()).expect("readable");
        let read: Vec<_> = logs.iter().map(|log| (log.number, log.key, log.removed)).collect();
        let key = |block, index| Key { block: hash(block), index };
        assert_eq!(read, [(3, key(30, 1), false), (4, key(40, 0), true)]);
        assert!(
            Log::list(&Bytes::from_static(b"[{}]")).is_err()
                && Log::list(&Bytes::from_static(b"{}")).is_err()
        );
    }

    // Kills: a removal that says false, or loses the log's other members.
    #[test]
    fn a_removal_is_the_log_with_removed_true() {
        let mut out = Vec::new();
        removal(json(3, 30, 1, false).as_bytes()).expect("a log").write(SubscriptionId(1), &mut out);
        let told: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let mut expected: serde_json::Value = serde_json::from_str(&json(3, 30, 1, true)).expect("JSON");
        assert_eq!(told["params"]["result"], expected.take());
    }
}
