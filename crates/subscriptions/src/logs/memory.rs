//! The logs a group was told, as far as they are remembered: to leave out duplicates and to tell removals.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use crate::block::{Block, Hash};
use crate::chain::Chain;
use crate::log::{Key, Log};
use crate::logs::MOST_LOGS;

/// Bytes of logs that a group remembers at most.
const MOST_BYTES: usize = 1 << 20;

/// The newest logs told.
#[derive(Debug, Default)]
pub(super) struct Memory {
    told: VecDeque<Told>,
    keys: HashSet<Key>,
    bytes: usize,
    /// The highest block of a log that is remembered no more.
    forgotten: Option<u64>,
}

#[derive(Debug)]
struct Told {
    number: u64,
    key: Key,
    result: Bytes,
}

impl Memory {
    /// Remembers a log; false if it was told before.
    pub(super) fn remember(&mut self, log: &Log) -> bool {
        if !self.keys.insert(log.key) {
            return false;
        }
        self.bytes += log.result.len();
        self.told.push_back(Told { number: log.number, key: log.key, result: log.result.clone() });
        while self.told.len() > MOST_LOGS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.told.pop_front() else { break };
            self.drop_key(&oldest);
            self.forgotten = self.forgotten.max(Some(oldest.number));
        }
        true
    }

    /// Forgets a removed log; false if it was never told.
    pub(super) fn forget(&mut self, log: &Log) -> bool {
        if !self.keys.contains(&log.key) {
            return self.forgotten.is_some_and(|number| log.number <= number);
        }
        if let Some(at) = self.told.iter().rposition(|told| told.key == log.key)
            && let Some(told) = self.told.remove(at)
        {
            self.drop_key(&told);
        }
        true
    }

    /// Takes the logs of a block out, the newest first.
    pub(super) fn take_block(&mut self, block: Hash) -> Vec<Bytes> {
        let (mut kept, mut taken) = (VecDeque::with_capacity(self.told.len()), Vec::new());
        for told in std::mem::take(&mut self.told) {
            if told.key.block == block {
                self.drop_key(&told);
                taken.push(told.result);
            } else {
                kept.push_back(told);
            }
        }
        self.told = kept;
        taken.reverse();
        taken
    }

    /// A block at this height, other than `block`, whose logs are remembered.
    pub(super) fn other_at(&self, number: u64, block: Hash) -> Option<Hash> {
        // Logs come by height but for the few around a reorganisation.
        let newest = self.told.iter().rev().take_while(|told| told.number + 128 > number);
        newest.filter(|told| told.number == number).map(|told| told.key.block).find(|other| *other != block)
    }

    /// The blocks of the remembered logs, where nothing better is known of the chain.
    pub(super) fn chain(&self) -> Chain {
        let mut chain = Chain::default();
        let mut below = Hash::default();
        for told in &self.told {
            if below != told.key.block {
                chain.push(Block { number: told.number, hash: told.key.block, parent: below });
                below = told.key.block;
            }
        }
        chain
    }

    fn drop_key(&mut self, told: &Told) {
        self.keys.remove(&told.key);
        self.bytes -= told.result.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Payload;
    use crate::block::tests::hash;
    use crate::log::tests::json;

    fn log(number: u64, index: u64) -> Log {
        let json = Bytes::from(json(number, number, index, false));
        Log::told(&json, &Payload::of_result(&json)).expect("a log")
    }

    // Kills: a memory without bound, keys that stay when their logs are gone.
    #[test]
    fn memory_is_bounded() {
        let mut memory = Memory::default();
        (0..3000).for_each(|index| assert!(memory.remember(&log(1 + index / 100, index))));
        assert_eq!(
            (memory.told.len(), memory.keys.len(), memory.forgotten),
            (MOST_LOGS, MOST_LOGS, Some(20))
        );
        assert!(!memory.remember(&log(30, 2999)), "told before");
        assert!(memory.forget(&log(3, 250)), "told once, for all that is remembered");
        assert!(!memory.forget(&log(31, 9999)), "never told");
    }

    // Kills: removals in the order of telling, bytes that are not given back.
    #[test]
    fn a_block_is_taken_newest_first() {
        let mut memory = Memory::default();
        for (number, index) in [(1, 0), (2, 0), (2, 1), (3, 0)] {
            memory.remember(&log(number, index));
        }
        let taken = memory.take_block(hash(2));
        assert_eq!(taken, [log(2, 1).result, log(2, 0).result]);
        assert_eq!((memory.told.len(), memory.bytes), (2, log(1, 0).result.len() * 2));
        assert_eq!((memory.other_at(3, hash(3)), memory.other_at(3, hash(4))), (None, Some(hash(3))));
        assert_eq!(memory.chain().tip().map(|tip| tip.number), Some(3));
    }
}
