//! What all providers of one chain agree on: the head, its branches, and the transactions the network has heard of.
//!
//! Decides heights, hashes and whether a transaction is known. It never decides what a single node shows
//! of it: a node may lag, or stand still.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::provider::lock;
use tiny_keccak::{Hasher, Keccak};
use tokio::sync::watch;

/// A network that its providers share. Its head advances by hand, or with time.
#[derive(Debug)]
pub struct Chain {
    id: u64,
    head: AtomicU64,
    clock: Option<(Instant, Duration)>,
    transactions: Mutex<HashMap<String, Transaction>>,
    /// Where each reorganisation began, in their order.
    forks: Mutex<Arc<[u64]>>,
    /// Hashes of transactions in the order in which the network heard of them.
    pending: Mutex<Vec<String>>,
    /// Counts whatever changed.
    pulse: watch::Sender<u64>,
}

/// The chain as somebody has it at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) head: u64,
    forks: Arc<[u64]>,
}

impl View {
    /// The hash of the block at `number`.
    pub(crate) fn hash(&self, number: u64) -> String {
        let branch = self.forks.iter().rposition(|first| *first <= number);
        let text =
            branch.map_or(format!("block {number}"), |branch| format!("block {number} of branch {branch}"));
        keccak_hex(text.as_bytes())
    }

    /// The highest block that both have.
    pub(crate) fn common(&self, other: &Self) -> u64 {
        let low = self.head.min(other.head);
        let apart = |number: &u64| self.hash(*number) != other.hash(*number);
        low - (0..=low).rev().take_while(apart).count() as u64
    }
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
        Self {
            id,
            head: AtomicU64::new(Self::GENESIS_HEAD),
            clock,
            transactions: Mutex::default(),
            forks: Mutex::new(Arc::from([])),
            pending: Mutex::default(),
            pulse: watch::Sender::new(0),
        }
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
        self.beat();
        self.head()
    }

    /// Replaces the newest `deep` blocks by another branch of `deep + 1`.
    pub fn reorganise(&self, deep: u64) {
        {
            let mut forks = lock(&self.forks);
            let first = self.head().saturating_sub(deep) + 1;
            *forks = forks.iter().copied().chain([first]).collect();
            self.head.fetch_add(1, Ordering::SeqCst);
        }
        self.beat();
    }

    /// Lets the network hear of so many transactions that nobody sent us.
    pub fn gossip(&self, transactions: usize) {
        {
            let mut pending = lock(&self.pending);
            let known = pending.len();
            pending
                .extend((known..known + transactions).map(|n| keccak_hex(format!("gossip {n}").as_bytes())));
        }
        self.beat();
    }

    pub(crate) fn view(&self) -> View {
        let forks = lock(&self.forks);
        View { head: self.head(), forks: Arc::clone(&forks) }
    }

    /// The hash of the block at `number`, as the network has it now.
    #[must_use]
    pub fn hash(&self, number: u64) -> String {
        self.view().hash(number)
    }

    /// Transactions heard of since the first `known`.
    pub(crate) fn pending_since(&self, known: usize) -> Vec<String> {
        lock(&self.pending)[known..].to_vec()
    }

    pub(crate) fn heard(&self) -> usize {
        lock(&self.pending).len()
    }

    /// Tells whoever waits that something changed.
    pub(crate) fn beat(&self) {
        self.pulse.send_modify(|count| *count += 1);
    }

    pub(crate) fn pulse(&self) -> watch::Receiver<u64> {
        self.pulse.subscribe()
    }

    /// How long until the clock makes the next block.
    pub(crate) fn next_tick(&self) -> Option<Duration> {
        let (start, block_time) = self.clock?;
        let into = start.elapsed().as_nanos() % block_time.as_nanos();
        Some(block_time.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(0))))
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
        let known = {
            let mut transactions = lock(&self.transactions);
            let known = transactions.entry(hash.clone()).or_insert(Transaction { block, received: 0 });
            known.received += 1;
            known.received > 1
        };
        if !known {
            lock(&self.pending).push(hash.clone());
            self.beat();
        }
        (hash, known)
    }

    pub(crate) fn find(&self, hash: &str) -> Option<Transaction> {
        lock(&self.transactions).get(hash).copied()
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

    // Kills: a reorganisation that changes blocks below it, or leaves those above.
    #[test]
    fn a_reorganisation_replaces_the_newest() {
        let chain = Chain::new(1);
        let before = chain.view();
        chain.reorganise(2);
        let after = chain.view();
        assert_eq!((after.head, before.common(&after)), (before.head + 1, before.head - 2));
        chain.reorganise(5);
        assert_eq!(before.common(&chain.view()), before.head - 4);
        assert_ne!(after.hash(before.head), chain.hash(before.head));
        assert_eq!(before.common(&before), before.head);
    }

    #[test]
    fn the_head_moves_by_hand() {
        let chain = Chain::new(1);
        assert_eq!(chain.advance(), Chain::GENESIS_HEAD + 1);
        assert_eq!(chain.head(), Chain::GENESIS_HEAD + 1);
    }
}
