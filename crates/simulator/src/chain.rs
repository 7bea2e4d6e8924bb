//! What all providers of one chain agree on: the head, and the transactions the network has heard of.
//!
//! Decides heights, hashes and whether a transaction is known. It never decides what a single node shows
//! of it: a node may lag.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tiny_keccak::{Hasher, Keccak};

/// A network that its providers share. Its head advances by hand, or with time.
#[derive(Debug)]
pub struct Chain {
    id: u64,
    head: AtomicU64,
    clock: Option<(Instant, Duration)>,
    transactions: Mutex<HashMap<String, Transaction>>,
}

/// A transaction that some provider was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transaction {
    /// The block it is in, once the head is there.
    pub(crate) block: u64,
    received: u64,
}

impl Chain {
    /// Height that a new chain starts at; enough history for states that are pruned.
    pub const GENESIS_HEAD: u64 = 1_000;

    /// A chain whose head moves only by [`Chain::advance`].
    #[must_use]
    pub fn new(id: u64) -> Arc<Self> {
        Arc::new(Self::with_clock(id, None))
    }

    /// A chain that gains a block every `block_time` (more than zero).
    #[must_use]
    pub fn ticking(id: u64, block_time: Duration) -> Arc<Self> {
        let block_time = block_time.max(Duration::from_millis(1));
        Arc::new(Self::with_clock(id, Some((Instant::now(), block_time))))
    }

    fn with_clock(id: u64, clock: Option<(Instant, Duration)>) -> Self {
        Self { id, head: AtomicU64::new(Self::GENESIS_HEAD), clock, transactions: Mutex::new(HashMap::new()) }
    }

    /// The chain id of `eth_chainId`.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The highest block anybody has.
    #[must_use]
    pub fn head(&self) -> u64 {
        let ticked = self.clock.map_or(0, |(start, block_time)| {
            u64::try_from(start.elapsed().as_millis() / block_time.as_millis()).unwrap_or(0)
        });
        self.head.load(Ordering::SeqCst) + ticked
    }

    /// Adds one block and returns the new head.
    pub fn advance(&self) -> u64 {
        self.head.fetch_add(1, Ordering::SeqCst);
        self.head()
    }

    /// How often any provider of this chain executed the transaction with this hash.
    #[must_use]
    pub fn received(&self, hash: &str) -> u64 {
        self.find(hash).map_or(0, |transaction| transaction.received)
    }

    /// Takes a raw transaction; the hash, and whether the network had it before.
    pub(crate) fn submit(&self, raw: &[u8]) -> (String, bool) {
        let hash = keccak_hex(raw);
        let block = self.head() + 1;
        let mut transactions = self.transactions.lock().unwrap_or_else(PoisonError::into_inner);
        let known = transactions.entry(hash.clone()).or_insert(Transaction { block, received: 0 });
        known.received += 1;
        (hash, known.received > 1)
    }

    pub(crate) fn find(&self, hash: &str) -> Option<Transaction> {
        self.transactions.lock().unwrap_or_else(PoisonError::into_inner).get(hash).copied()
    }
}

/// The Keccak-256 of `bytes` as `0x` and 64 hex digits: the hash of a raw transaction.
#[must_use]
pub fn keccak_hex(bytes: &[u8]) -> String {
    let mut hasher = Keccak::v256();
    let mut digest = [0u8; 32];
    hasher.update(bytes);
    hasher.finalize(&mut digest);
    let mut hex = String::with_capacity(66);
    hex.push_str("0x");
    for byte in digest {
        hex.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
        hex.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keccak_of_nothing_is_the_known_constant() {
        let known = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
        assert_eq!(keccak_hex(b""), known);
    }

    #[test]
    fn a_transaction_is_known_the_second_time() {
        let chain = Chain::new(1);
        let (hash, known) = chain.submit(b"tx");
        assert!(!known);
        assert_eq!(chain.submit(b"tx"), (hash.clone(), true));
        assert_eq!(chain.received(&hash), 2);
    }

    #[test]
    fn the_head_moves_by_hand() {
        let chain = Chain::new(1);
        assert_eq!(chain.advance(), Chain::GENESIS_HEAD + 1);
        assert_eq!(chain.head(), Chain::GENESIS_HEAD + 1);
    }
}
