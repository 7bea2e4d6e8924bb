//! The logs a group was told, as far as they are remembered: to leave out duplicates and to tell removals.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use crate::block::Hash;
use crate::chain::REMEMBERED;
use crate::log::{Key, Log};
use crate::logs::MOST_LOGS;

/// Bytes of logs that a group remembers at most.
const MOST_BYTES: usize = 1 << 20;
/// What a remembered log takes beside its JSON.
const ENTRY: usize = size_of::<Told>() + 2 * size_of::<Key>();
/// How far below the newest log one may stand that is displaced.
const NEAR: u64 = REMEMBERED as u64;

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
pub(super) struct Told {
    pub(super) number: u64,
    pub(super) key: Key,
    pub(super) result: Bytes,
}

impl Told {
    fn bytes(&self) -> usize {
        self.result.len() + ENTRY
    }
}

impl Memory {
    /// Remembers a log; false if it was told before.
    pub(super) fn remember(&mut self, log: &Log) -> bool {
        if !self.keys.insert(log.key) {
            return false;
        }
        // A copy: a slice would keep all of an answer with many logs.
        let told = Told { number: log.number, key: log.key, result: Bytes::copy_from_slice(&log.result) };
        self.bytes += told.bytes();
        self.told.push_back(told);
        while self.told.len() > MOST_LOGS || self.bytes > MOST_BYTES {
            self.forget_oldest();
        }
        true
    }

    /// Bytes that are remembered.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets the oldest, until half is left.
    pub(super) fn halve(&mut self) {
        let half = self.bytes / 2;
        while self.bytes > half {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.told.pop_front() {
            self.drop_key(&oldest);
            self.forgotten = self.forgotten.max(Some(oldest.number));
        }
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

    /// Whether a log of this height or above was told and is remembered no more.
    pub(super) fn has_forgotten(&self, from: u64) -> bool {
        self.forgotten.is_some_and(|number| number >= from)
    }

    /// Takes logs out, the newest first.
    pub(super) fn take(&mut self, gone: impl Fn(&Told) -> bool) -> Vec<Told> {
        let (mut kept, mut taken) = (VecDeque::with_capacity(self.told.len()), Vec::new());
        for told in std::mem::take(&mut self.told) {
            if gone(&told) {
                self.drop_key(&told);
                taken.push(told);
            } else {
                kept.push_back(told);
            }
        }
        self.told = kept;
        taken.reverse();
        taken
    }

    /// The lowest height, of these and above, of a remembered log.
    pub(super) fn lowest(&self, from: u64) -> Option<u64> {
        self.told.iter().map(|told| told.number).filter(|number| *number >= from).min()
    }

    /// Whether logs of another block than `block` at this height are remembered.
    pub(super) fn has_other_at(&self, number: u64, block: Hash) -> bool {
        // Logs come by height but for the few around a reorganisation.
        let newest = self.told.iter().rev().take_while(|told| told.number + NEAR > number);
        newest.filter(|told| told.number == number).any(|told| told.key.block != block)
    }

    fn drop_key(&mut self, told: &Told) {
        self.keys.remove(&told.key);
        self.bytes -= told.bytes();
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
        assert!(memory.has_forgotten(20) && !memory.has_forgotten(21));
        memory.halve();
        assert_eq!((memory.told.len(), memory.keys.len()), (MOST_LOGS / 2, MOST_LOGS / 2));
        assert!(memory.told.front().is_some_and(|told| told.number == 25) && memory.has_forgotten(25));
    }

    // Kills: a few remembered logs that keep the whole answer in which they came.
    #[test]
    fn an_answer_is_not_kept_for_a_log_of_it() {
        let answer = Bytes::from(format!("[{}]", json(1, 1, 0, false)));
        let logs = Log::list(&answer).expect("readable");
        let mut memory = Memory::default();
        assert!(memory.remember(&logs[0]));
        drop(logs);
        assert!(answer.is_unique());
    }

    // Kills: removals in the order of telling, bytes that are not given back.
    #[test]
    fn a_block_is_taken_newest_first() {
        let mut memory = Memory::default();
        for (number, index) in [(1, 0), (2, 0), (2, 1), (3, 0)] {
            memory.remember(&log(number, index));
        }
        let taken: Vec<_> =
            memory.take(|told| told.number == 2).into_iter().map(|told| told.result).collect();
        assert_eq!(taken, [log(2, 1).result, log(2, 0).result]);
        assert_eq!((memory.told.len(), memory.bytes()), (2, (log(1, 0).result.len() + ENTRY) * 2));
        assert!(!memory.has_other_at(3, hash(3)) && memory.has_other_at(3, hash(4)));
    }
}
