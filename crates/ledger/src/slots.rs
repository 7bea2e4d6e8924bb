//! Trailing use, counted without locks: a ring of slots, each one atomic word of slot number and count. Decides
//! how much was in use in the window before an instant, and when enough of it has aged.

use std::sync::atomic::{AtomicU64, Ordering};

/// More slots than a window has, so that the use at an instant some while ago can still be told.
const RING: u64 = 32;

/// Counts of the last `span` slots. Adding is one compare-and-swap; many threads may add at once.
#[derive(Debug)]
pub struct Slots {
    slot_ms: u64,
    span: u64,
    /// The low halves of slot number and count. Numbers that differ by 2³² are taken for one: 13 years at 100 ms.
    words: [AtomicU64; RING as usize],
}

impl Slots {
    /// Slots of a tenth of `window_ms` (at least 1 ms each).
    #[must_use]
    pub fn tenths_of(window_ms: u64) -> Self {
        Self::new((window_ms / 10).max(1), 10)
    }

    /// `span` slots of `slot_ms` each; at most 31 slots, at least 1 ms.
    #[must_use]
    pub fn new(slot_ms: u64, span: u64) -> Self {
        let words = std::array::from_fn(|_| AtomicU64::new(0));
        Self { slot_ms: slot_ms.max(1), span: span.clamp(1, RING - 1), words }
    }

    /// Counts `n` at `at`. A slot that holds another time's count, older or (the clock was set back) newer, is
    /// begun anew.
    pub fn add(&self, n: u32, at: u64) {
        let slot = at / self.slot_ms;
        self.change(slot, |held| if number(held) == slot as u32 { count(held).saturating_add(n) } else { n });
    }

    /// Takes back up to `n` that were counted at `at`, if their slot is still held.
    pub fn remove(&self, n: u32, at: u64) {
        let slot = at / self.slot_ms;
        if number(self.word(slot).load(Ordering::Relaxed)) == slot as u32 {
            self.change(slot, |held| count(held).saturating_sub(n));
        }
    }

    /// What was counted in the window before and at `at`. Of the slot that the window has partly left, the share
    /// still inside counts, rounded up: whole slots would let a tenth too much through, or too little.
    #[must_use]
    pub fn within(&self, at: u64) -> u64 {
        let newest = at / self.slot_ms;
        let whole: u64 =
            (0..self.span.min(newest.saturating_add(1))).map(|back| self.counted(newest - back)).sum();
        let Some(leaving) = newest.checked_sub(self.span) else { return whole };
        let inside = self.slot_ms - at % self.slot_ms;
        whole
            + (u128::from(self.counted(leaving)) * u128::from(inside)).div_ceil(u128::from(self.slot_ms))
                as u64
    }

    /// As [`Slots::within`], with the slot that the window has partly left counted whole: at least what anybody who
    /// counts by the millisecond has seen.
    #[must_use]
    pub fn touched(&self, at: u64) -> u64 {
        let newest = at / self.slot_ms;
        (0..=self.span.min(newest)).map(|back| self.counted(newest - back)).sum()
    }

    /// The earliest time from `now` on at which at least `need` less is counted than at `now`; `None` if less than
    /// `need` is counted.
    #[must_use]
    pub fn frees(&self, need: u64, now: u64) -> Option<u64> {
        if need == 0 {
            return Some(now);
        }
        let newest = now / self.slot_ms;
        let oldest = newest.saturating_sub(self.span);
        // What has already left of the oldest slot is not freed once more.
        let mut need = need.saturating_add(self.gone(oldest, now));
        for slot in oldest..=newest {
            let held = self.counted(slot);
            if held >= need {
                let part = (u128::from(need) * u128::from(self.slot_ms)).div_ceil(u128::from(held)) as u64;
                let leaves = slot.saturating_add(self.span).saturating_mul(self.slot_ms);
                return Some(leaves.saturating_add(part));
            }
            need -= held;
        }
        None
    }

    /// How much of `slot` has left the window at `now`.
    fn gone(&self, slot: u64, now: u64) -> u64 {
        let leaves = slot.saturating_add(self.span).saturating_mul(self.slot_ms);
        let since = u128::from(now.saturating_sub(leaves).min(self.slot_ms));
        (u128::from(self.counted(slot)) * since / u128::from(self.slot_ms)) as u64
    }

    /// Length of a slot in milliseconds.
    #[must_use]
    pub fn slot_ms(&self) -> u64 {
        self.slot_ms
    }

    fn change(&self, slot: u64, to: impl Fn(u64) -> u32) {
        let word = self.word(slot);
        let mut held = word.load(Ordering::Relaxed);
        loop {
            let next = pack(slot, to(held));
            match word.compare_exchange_weak(held, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => held = other,
            }
        }
    }

    /// What is held of `slot`, by its number.
    pub(crate) fn counted(&self, slot: u64) -> u64 {
        let held = self.word(slot).load(Ordering::Relaxed);
        if number(held) == slot as u32 { u64::from(count(held)) } else { 0 }
    }

    fn word(&self, slot: u64) -> &AtomicU64 {
        &self.words[(slot % RING) as usize]
    }
}

fn pack(slot: u64, count: u32) -> u64 {
    (slot << 32) | u64::from(count)
}

fn number(word: u64) -> u32 {
    (word >> 32) as u32
}

fn count(word: u64) -> u32 {
    word as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds each (n, at) to slots of 100 ms, then asks at `now`.
    fn check(adds: &[(u32, u64)], now: u64, expected: u64) {
        let slots = Slots::tenths_of(1000);
        for (n, at) in adds {
            slots.add(*n, *at);
        }
        assert_eq!(slots.within(now), expected, "{adds:?} at {now}");
    }

    #[test]
    fn use_leaves_slot_by_slot_after_a_window() {
        check(&[], 5000, 0);
        check(&[(3, 5000), (4, 5099)], 5099, 7);
        check(&[(3, 5000)], 5999, 3);
        check(&[(3, 5000)], 6000, 3);
        check(&[(3, 5000)], 6033, 3);
        check(&[(3, 5000)], 6034, 2);
        check(&[(3, 5000)], 6099, 1);
        check(&[(3, 5000)], 6100, 0);
        // Kills a ring that forgets to compare numbers: 5000 and 8200 share a word.
        check(&[(3, 5000), (1, 8200)], 8200, 1);
        check(&[(3, 5000)], 8200, 0);
        // The past can be asked for while its slots are held.
        check(&[(3, 5000), (4, 6500)], 5500, 3);
        check(&[(9, 0)], 0, 9);
        check(&[(u32::MAX, 5000), (5, 5000)], 5000, u64::from(u32::MAX));
    }

    #[test]
    fn a_clock_set_back_counts_from_there() {
        check(&[(3, 9_000_000), (4, 5000)], 5000, 4);
        // The same word: the newer number must give way. Kills "keep the larger".
        check(&[(3, 5000 + 3200), (4, 5000)], 5000, 4);
        check(&[(3, u64::MAX)], u64::MAX, 3);
    }

    #[test]
    fn says_when_enough_has_aged() {
        let slots = Slots::tenths_of(1000);
        slots.add(2, 5000);
        slots.add(3, 5450);
        let expected =
            [(0, Some(5500)), (1, Some(6050)), (2, Some(6100)), (3, Some(6434)), (5, Some(6500)), (6, None)];
        for (need, at) in expected {
            assert_eq!(slots.frees(need, 5500), at, "{need}");
        }
        for (need, at) in expected.into_iter().filter_map(|(need, at)| Some((need, at?))).skip(1) {
            assert!(slots.within(at) <= 5 - need && slots.within(at - 1) > 5 - need, "{need}");
        }
        assert_eq!(slots.frees(1, 6060), Some(6100));
    }

    #[test]
    fn removing_is_exact_and_never_below_zero() {
        let slots = Slots::tenths_of(1000);
        slots.add(5, 5000);
        slots.remove(2, 5050);
        assert_eq!(slots.within(5500), 3);
        slots.remove(9, 5000);
        assert_eq!(slots.within(5500), 0);
        slots.add(4, 5000 + 3200);
        slots.remove(4, 5000);
        assert_eq!(slots.within(8200), 4);
    }

    #[test]
    fn no_count_is_lost_between_threads() {
        let slots = Slots::tenths_of(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|i| slots.add(1, 5000 + i % 1000)));
            }
        });
        assert_eq!(slots.within(5999), 40_000);
    }
}
