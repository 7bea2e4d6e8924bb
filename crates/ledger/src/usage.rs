//! What an account was used for in the last 24 hours, in hourly slots that really age, the oldest by the second. Selection
//! weighs by it. Of what is counted it knows how much is this process's own: that is what it tells others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Slots;

const HOUR_MS: u64 = 3_600_000;
const HOURS: u64 = 24;

/// Use of the last 24 hours. A request reads it of each candidate, without the box, and counts in it once.
#[derive(Debug)]
#[repr(C)]
pub struct Usage24h {
    /// The number of the running hour, and what was counted in it.
    running: AtomicU64,
    /// What else there is, added up at most once a second.
    older: AtomicU64,
    /// The second that it was added up in, and one more; 0 when it has to be anew.
    second: AtomicU64,
    day: Box<Day>,
}

/// The hours that are over, and what others dispatched in any.
#[derive(Debug)]
struct Day {
    slots: Slots,
    /// What of each hour, by its number, was not dispatched here.
    foreign: Mutex<BTreeMap<u64, Foreign>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Foreign {
    /// Never dispatched by anybody.
    lifted: u32,
    /// Dispatched by other processes.
    others: u32,
}

impl Default for Usage24h {
    fn default() -> Self {
        let day = Box::new(Day { slots: Slots::new(HOUR_MS, HOURS), foreign: Mutex::default() });
        Self { running: AtomicU64::new(0), older: AtomicU64::new(0), second: AtomicU64::new(0), day }
    }
}

impl Usage24h {
    /// Counts `n` requests at `now`.
    pub fn add(&self, n: u32, now: u64) {
        let hour = now / HOUR_MS;
        let mut known = self.running.load(Relaxed);
        loop {
            let (of, count) = unpacked(known);
            let counted = if of == hour { count.saturating_add(n) } else { n };
            match self.running.compare_exchange_weak(known, packed(hour, counted), Relaxed, Relaxed) {
                Ok(_) if of == hour => return,
                Ok(_) => return self.put(count, of),
                Err(other) => known = other,
            }
        }
    }

    /// Requests of the last 24 hours.
    #[must_use]
    pub fn total(&self, now: u64) -> u64 {
        let second = now / 1000 + 1;
        if self.second.load(Relaxed) != second {
            // The running hour may be over by now.
            self.add(0, now);
            self.older.store(self.day.slots.within(now), Relaxed);
            self.second.store(second, Relaxed);
        }
        self.running_in(now / HOUR_MS) + self.older.load(Relaxed)
    }

    /// Counts `n` that nobody dispatched.
    pub fn lift(&self, n: u32, now: u64) {
        let mut foreign = self.foreign();
        let lifted = &mut foreign.entry(now / HOUR_MS).or_default().lifted;
        *lifted = lifted.saturating_add(n);
        self.add(n, now);
    }

    /// What was dispatched here: hours by their numbers, newest first, without empty ones.
    #[must_use]
    pub fn own(&self, now: u64) -> Vec<(u64, u32)> {
        let foreign = self.foreign();
        let own = |hour: u64| {
            let known = foreign.get(&hour).copied().unwrap_or_default();
            let not_ours = u64::from(known.lifted) + u64::from(known.others);
            let n = self.counted(hour).saturating_sub(not_ours);
            (hour, u32::try_from(n).unwrap_or(u32::MAX))
        };
        hours(now).map(own).filter(|(_, n)| *n > 0).collect()
    }

    /// Other processes dispatched this much, by hour: all that is known of them, not only what is new.
    pub fn adopt(&self, others: &BTreeMap<u64, u32>, now: u64) {
        let mut foreign = self.foreign();
        let oldest = hours(now).last().unwrap_or_default();
        foreign.retain(|hour, _| *hour >= oldest);
        for hour in hours(now) {
            let theirs = others.get(&hour).copied().unwrap_or(0);
            let known = foreign.entry(hour).or_default();
            if theirs > known.others {
                self.put(theirs - known.others, hour);
            } else {
                self.day.slots.remove(known.others - theirs, hour.saturating_mul(HOUR_MS));
            }
            known.others = theirs;
        }
        self.second.store(0, Relaxed);
    }

    /// Counts all that `before` has counted, whoever dispatched it.
    pub(crate) fn carry(&self, before: &Self, now: u64) {
        let theirs = before.foreign();
        self.foreign().clone_from(&theirs);
        for hour in hours(now) {
            self.put(u32::try_from(before.counted(hour)).unwrap_or(u32::MAX), hour);
        }
    }

    /// Counts `n` beside the running hour, whichever hour it was.
    fn put(&self, n: u32, hour: u64) {
        self.day.slots.add(n, hour.saturating_mul(HOUR_MS));
        self.second.store(0, Relaxed);
    }

    /// All that was counted in an hour.
    fn counted(&self, hour: u64) -> u64 {
        self.day.slots.counted(hour) + self.running_in(hour)
    }

    fn running_in(&self, hour: u64) -> u64 {
        let (running, count) = unpacked(self.running.load(Relaxed));
        if running == hour { u64::from(count) } else { 0 }
    }

    fn foreign(&self) -> MutexGuard<'_, BTreeMap<u64, Foreign>> {
        self.day.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn packed(hour: u64, count: u32) -> u64 {
    (hour << u32::BITS) | u64::from(count)
}

fn unpacked(word: u64) -> (u64, u32) {
    (word >> u32::BITS, word as u32)
}

/// The hours that count at `now`, newest first.
fn hours(now: u64) -> impl Iterator<Item = u64> {
    let newest = now / HOUR_MS;
    (0..=HOURS.min(newest)).map(move |back| newest - back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_leaves_after_a_day() {
        let usage = Usage24h::default();
        for hour in 0..30u64 {
            usage.add(10, hour * HOUR_MS);
            assert_eq!(usage.total(hour * HOUR_MS), 10 * (hour + 1).min(25), "hour {hour}");
        }
        assert_eq!(usage.total(29 * HOUR_MS + HOUR_MS / 2), 245);
        assert_eq!(usage.total(53 * HOUR_MS + HOUR_MS / 2), 5);
        assert_eq!(usage.total(54 * HOUR_MS), 0);
    }

    #[test]
    fn only_what_was_dispatched_here_is_told_to_others() {
        let usage = Usage24h::default();
        let now = 100 * HOUR_MS;
        usage.add(5, now);
        usage.add(2, now - HOUR_MS);
        usage.lift(7, now);
        usage.adopt(&BTreeMap::from([(100, 30), (99, 4)]), now);
        assert_eq!(usage.total(now), 5 + 2 + 7 + 30 + 4);
        // Kills telling others what came from them, and counting it again.
        assert_eq!(usage.own(now), [(100, 5), (99, 2)]);
        usage.adopt(&BTreeMap::from([(100, 31)]), now);
        assert_eq!((usage.total(now), usage.own(now)), (5 + 2 + 7 + 31, vec![(100, 5), (99, 2)]));
        let next = Usage24h::default();
        next.carry(&usage, now);
        assert_eq!((next.total(now), next.own(now)), (usage.total(now), usage.own(now)));
    }
}
