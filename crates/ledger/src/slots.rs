//! Trailing use, counted without locks: a ring of slots, each one atomic word of slot number, count and how late in
//! the slot the last one came. Decides how much was in use in the window before an instant, and when enough of it has
//! aged.

use std::sync::atomic::{AtomicU64, Ordering};

/// More slots than a window has, so that the use at an instant some while ago can still be told.
const RING: u64 = 32;

/// A slot's length in the parts by which its word tells how late the last one came.
const PARTS: u64 = 256;
const PART_BITS: u32 = PARTS.trailing_zeros();
const COUNT_BITS: u32 = 28;
const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

/// Counts of the last `span` slots. Adding is one compare-and-swap; many threads may add at once.
#[derive(Debug)]
#[repr(C)]
pub struct Slots {
    slot_ms: u64,
    span: u64,
    /// Slot number, count, and the part in which the last one came. Numbers that differ by 2²⁸ are taken for one: ten
    /// months at 100 ms.
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

    /// Counts `n` at some time in the slot of `at`, as late as its end; at most 2²⁸ − 1 in one slot. A slot that holds
    /// another time's count, older or (the clock was set back) newer, is begun anew.
    pub fn add(&self, n: u32, at: u64) {
        self.put(n, at / self.slot_ms, PARTS);
    }

    /// As [`Slots::add`], of what was sent at `at` itself: it leaves when the window has passed it, not when the window
    /// has passed the end of its slot.
    pub fn add_sent(&self, n: u32, at: u64) {
        let until = u128::from(at % self.slot_ms + 1) * u128::from(PARTS);
        self.put(n, at / self.slot_ms, until.div_ceil(u128::from(self.slot_ms)) as u64);
    }

    /// Takes back up to `n` that were counted at `at`, if their slot is still held.
    pub fn remove(&self, n: u32, at: u64) {
        let slot = at / self.slot_ms;
        if self.counted(slot) > 0 {
            self.change(slot, |held| Held { count: held.count.saturating_sub(n), ..held });
        }
    }

    /// What was counted in the window before and at `at`. Of the slot that the window has partly left, the share
    /// still inside counts, rounded up: whole slots would let a tenth too much through, or too little. Its requests
    /// are taken to lie evenly between its start and the last of them, so that a lone one leaves when it is due.
    #[must_use]
    pub fn within(&self, at: u64) -> u64 {
        self.within_and(0, at)
    }

    /// As [`Slots::within`], of a window that began `more_ms` earlier.
    #[must_use]
    pub fn within_and(&self, more_ms: u64, at: u64) -> u64 {
        let newest = at / self.slot_ms;
        let Some(from) = self.begins(more_ms, at) else {
            return (0..=newest).map(|slot| self.counted(slot)).sum();
        };
        let leaving = from / self.slot_ms;
        let whole: u64 = (leaving + 1..=newest).map(|slot| self.counted(slot)).sum();
        whole + self.held(leaving).inside(from % self.slot_ms, self.slot_ms)
    }

    /// What was in use at `at`, a past instant seen from `now`: as [`Slots::within`], but the slots at both ends of the
    /// window count by the share of them that lies inside, to the fraction.
    #[must_use]
    pub fn in_use(&self, at: u64, now: u64) -> f64 {
        let share = |ms: u64| ms as f64 / self.slot_ms as f64;
        let newest = at / self.slot_ms;
        // The running slot holds nothing that is later than now.
        let newest_share = if now / self.slot_ms == newest { 1.0 } else { share(at % self.slot_ms + 1) };
        let mut used = self.counted(newest) as f64 * newest_share;
        if let Some(from) = self.begins(0, at) {
            let leaving = from / self.slot_ms;
            used += (leaving + 1..newest).map(|slot| self.counted(slot)).sum::<u64>() as f64;
            used += self.counted(leaving) as f64 * (1.0 - share(from % self.slot_ms));
        }
        used
    }

    /// When the window at `at` began, if time is that old.
    fn begins(&self, more_ms: u64, at: u64) -> Option<u64> {
        at.checked_sub(self.span.saturating_mul(self.slot_ms).saturating_add(more_ms))
    }

    /// As [`Slots::within`], with the slot that the window has partly left counted whole: at least what anybody who
    /// counts by the millisecond has seen.
    #[must_use]
    pub fn touched(&self, at: u64) -> u64 {
        let newest = at / self.slot_ms;
        (0..=self.span.min(newest)).map(|back| self.counted(newest - back)).sum()
    }

    /// The earliest time from `now` on at which [`Slots::within_and`] is at least `need` less than at `now`; `None` if
    /// it is less than `need`.
    #[must_use]
    pub fn frees(&self, need: u64, more_ms: u64, now: u64) -> Option<u64> {
        if need == 0 {
            return Some(now);
        }
        let from = self.begins(more_ms, now).unwrap_or(0);
        let oldest = from / self.slot_ms;
        // What has already left of the oldest slot is not freed once more.
        let left = self.counted(oldest) - self.held(oldest).inside(from % self.slot_ms, self.slot_ms);
        let mut need = need.saturating_add(left);
        for slot in oldest..=now / self.slot_ms {
            let held = self.held(slot);
            if u64::from(held.count) >= need {
                let leaves = slot.saturating_add(self.span).saturating_mul(self.slot_ms);
                return Some(leaves.saturating_add(held.rid_of(need, self.slot_ms)).saturating_add(more_ms));
            }
            need -= u64::from(held.count);
        }
        None
    }

    /// Length of a slot in milliseconds.
    #[must_use]
    pub fn slot_ms(&self) -> u64 {
        self.slot_ms
    }

    fn put(&self, n: u32, slot: u64, until: u64) {
        self.change(slot, |held| Held {
            count: held.count.saturating_add(n).min(COUNT_MAX),
            until: held.until.max(until),
        });
    }

    fn change(&self, slot: u64, to: impl Fn(Held) -> Held) {
        let word = self.word(slot);
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let next = to(Held::of(slot, old)).packed(slot);
            match word.compare_exchange_weak(old, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => old = other,
            }
        }
    }

    /// What is held of `slot`, by its number.
    pub(crate) fn counted(&self, slot: u64) -> u64 {
        u64::from(self.held(slot).count)
    }

    fn held(&self, slot: u64) -> Held {
        Held::of(slot, self.word(slot).load(Ordering::Relaxed))
    }

    fn word(&self, slot: u64) -> &AtomicU64 {
        &self.words[(slot % RING) as usize]
    }
}

/// What a word holds of one slot.
#[derive(Debug, Clone, Copy)]
struct Held {
    count: u32,
    /// None came later than this, in parts of the slot from its start: 1 to 256.
    until: u64,
}

impl Held {
    /// Nothing, if the word holds another slot.
    fn of(slot: u64, word: u64) -> Self {
        let empty = Self { count: 0, until: 1 };
        let other = (word ^ empty.packed(slot)) >> (COUNT_BITS + PART_BITS) != 0;
        if other {
            empty
        } else {
            Self { count: (word >> PART_BITS) as u32 & COUNT_MAX, until: word % PARTS + 1 }
        }
    }

    fn packed(self, slot: u64) -> u64 {
        (slot << (COUNT_BITS + PART_BITS)) | (u64::from(self.count) << PART_BITS) | (self.until - 1)
    }

    /// How many are inside when the window has left the first `left_ms` of the slot.
    fn inside(self, left_ms: u64, slot_ms: u64) -> u64 {
        let stretch = u128::from(self.until) * u128::from(slot_ms);
        let inside = stretch.saturating_sub(u128::from(left_ms) * u128::from(PARTS));
        (u128::from(self.count) * inside).div_ceil(stretch.max(1)) as u64
    }

    /// How much of the slot, in milliseconds, the window must leave to be rid of `need` of it; there are as many.
    fn rid_of(self, need: u64, slot_ms: u64) -> u64 {
        let stretch = u128::from(self.until) * u128::from(slot_ms);
        (u128::from(need) * stretch).div_ceil(u128::from(self.count).max(1) * u128::from(PARTS)) as u64
    }
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
        check(&[(u32::MAX, 5000), (5, 5000)], 5000, u64::from(COUNT_MAX));
    }

    /// Sends each (n, at), then asks at `now` of a window longer by `more_ms`.
    fn check_sent(sent: &[(u32, u64)], more_ms: u64, now: u64, expected: u64) {
        let slots = Slots::tenths_of(1000);
        for (n, at) in sent {
            slots.add_sent(*n, *at);
        }
        assert_eq!(slots.within_and(more_ms, now), expected, "{sent:?} and {more_ms} ms at {now}");
    }

    /// Kills counting what was sent until its whole slot has left.
    #[test]
    fn what_was_sent_leaves_a_window_later() {
        check_sent(&[(1, 5000)], 0, 6000, 1);
        check_sent(&[(1, 5000)], 0, 6002, 0);
        check_sent(&[(1, 5060)], 0, 6060, 1);
        check_sent(&[(1, 5060)], 0, 6062, 0);
        check_sent(&[(1, 5099)], 0, 6099, 1);
        check_sent(&[(1, 5099)], 0, 6100, 0);
        // The last one sent is inside to its end, whatever the order. Kills the latest call for the latest time.
        check_sent(&[(1, 5080), (1, 5010)], 0, 6080, 1);
        check_sent(&[(1, 5010), (1, 5080)], 0, 6080, 1);
        check_sent(&[(1, 5080), (1, 5010)], 0, 6082, 0);
        // A longer window, across the end of a slot.
        check_sent(&[(1, 5080)], 50, 6130, 1);
        check_sent(&[(1, 5080)], 50, 6132, 0);
        check_sent(&[(2, 40)], 50, 60, 2);
    }

    /// Kills: whole slots at either end, and a past instant that sees what was sent after it.
    #[test]
    fn use_at_a_past_instant_is_told_to_the_fraction() {
        let slots = Slots::tenths_of(1000);
        for at in (5000..8000).step_by(10) {
            slots.add_sent(1, at);
        }
        for (at, expected) in [(6000, 100.1), (6555, 100.1), (7399, 100.0), (7999, 100.0)] {
            let used = slots.in_use(at, 7999);
            assert!((used - expected).abs() < 0.2, "{used} at {at}");
        }
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
            assert_eq!(slots.frees(need, 0, 5500), at, "{need}");
            assert_eq!(
                slots.frees(need, 50, 5500),
                at.map(|at| if need == 0 { at } else { at + 50 }),
                "{need}"
            );
        }
        for (need, at) in expected.into_iter().filter_map(|(need, at)| Some((need, at?))).skip(1) {
            assert!(slots.within(at) <= 5 - need && slots.within(at - 1) > 5 - need, "{need}");
        }
        assert_eq!(slots.frees(1, 0, 6060), Some(6100));
        let slots = Slots::tenths_of(1000);
        slots.add_sent(1, 5060);
        let at = slots.frees(1, 50, 5500).expect("one is counted");
        assert!(slots.within_and(50, at) == 0 && slots.within_and(50, at - 1) == 1, "{at}");
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
