//! What is read of a head (number, hash, parent), and how a block that was fetched is told as a head.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::action::Payload;

/// The hash of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Hash([u8; 32]);

/// A block as far as its place in the chain goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) number: u64,
    pub(crate) hash: Hash,
    pub(crate) parent: Hash,
}

/// A block and how it is told.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) block: Block,
    pub(crate) payload: Payload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Read<'a> {
    #[serde(borrow)]
    number: Cow<'a, str>,
    #[serde(borrow)]
    hash: Cow<'a, str>,
    #[serde(borrow)]
    parent_hash: Cow<'a, str>,
}

impl Hash {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 64)?.as_bytes();
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16)?;
            let low = char::from(pair[1]).to_digit(16)?;
            *byte = u8::try_from(high * 16 + low).ok()?;
        }
        Some(Self(bytes))
    }
}

impl Block {
    /// Reads a head or a block; `None` where it is none.
    pub(crate) fn read(json: &[u8]) -> Option<Self> {
        let read: Read<'_> = serde_json::from_slice(json).ok()?;
        Some(Self {
            number: quantity(&read.number)?,
            hash: Hash::parse(&read.hash)?,
            parent: Hash::parse(&read.parent_hash)?,
        })
    }
}

impl Head {
    /// A block that was fetched, as a node would tell it. `Ok(None)`: there is no such block.
    pub(crate) fn of_block(json: &[u8]) -> Result<Option<Self>, Unreadable> {
        if json.trim_ascii() == b"null" {
            return Ok(None);
        }
        let block = Block::read(json).ok_or(Unreadable)?;
        let mut members: BTreeMap<&str, &RawValue> = serde_json::from_slice(json).map_err(|_| Unreadable)?;
        // A head has the header's members only.
        for body in ["transactions", "uncles", "withdrawals", "size", "totalDifficulty"] {
            members.remove(body);
        }
        let header = serde_json::to_vec(&members).map_err(|_| Unreadable)?;
        Ok(Some(Self { block, payload: Payload::of_result(&header) }))
    }
}

/// What was fetched is not what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// A number as nodes write it.
pub(crate) fn quantity(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ids::SubscriptionId;

    /// A hash from a number.
    pub(crate) fn hash(of: u64) -> Hash {
        Hash::parse(&hash_text(of)).expect("a hash")
    }

    pub(crate) fn hash_text(of: u64) -> String {
        format!("0x{of:064x}")
    }

    // Kills: wrong nibbles, a head without its parent taken as one.
    #[test]
    fn heads_are_read() {
        let json = |hash: &str| {
            format!(r#"{{"number":"0x10","hash":"{hash}","parentHash":"{}","x":[1]}}"#, hash_text(5))
        };
        let block = Block::read(json(&hash_text(6)).as_bytes());
        assert_eq!(block, Some(Block { number: 16, hash: hash(6), parent: hash(5) }));
        assert_eq!(Block::read(json("0x12").as_bytes()), None);
        assert_eq!(Block::read(json(&hash_text(6)).replace("parentHash", "parent").as_bytes()), None);
        assert_eq!(Block::read(json(&hash_text(6)).replace("0x10", "16").as_bytes()), None);
    }

    // Kills: a filled head that carries the block's body, or has lost a member of the header.
    #[test]
    fn a_block_is_told_without_its_body() {
        let json = format!(
            r#"{{"number":"0x1","hash":"{}","parentHash":"{}","gasUsed":"0x9","transactions":["0x1"],"uncles":[],"size":"0x2","withdrawals":[]}}"#,
            hash_text(1),
            hash_text(0)
        );
        let head = Head::of_block(json.as_bytes()).expect("readable").expect("a block");
        let mut out = Vec::new();
        head.payload.write(SubscriptionId(1), &mut out);
        let told: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let result = told["params"]["result"].as_object().expect("an object");
        assert_eq!(result.keys().collect::<Vec<_>>(), ["gasUsed", "hash", "number", "parentHash"]);
        assert!(matches!(Head::of_block(b" null "), Ok(None)));
        assert!(Head::of_block(b"{}").is_err());
    }
}
