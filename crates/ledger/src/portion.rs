//! Which part of a learned ceiling is this process's, where several share it: as much as it is asked for, of what all of
//! them are asked for. What is seen here is a sample of what all see, in the same proportion. Decides nothing about
//! ceilings.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts are counted in these.
const WHOLE: u32 = 1 << 16;
/// What nobody asks for now may be asked for at once: so much of an account is always there, a fiftieth.
const LEAST: u32 = WHOLE / 50;
/// How fast the mean of what is asked for forgets: chance must not move parts.
const MEMORY_MS: f64 = 5_000.0;

#[derive(Debug)]
pub(crate) struct Portion {
    part: AtomicU32,
    asked: AtomicU64,
    mean: Mutex<Mean>,
}

#[derive(Debug, Default)]
struct Mean {
    since: u64,
    /// Requests in a thousand seconds.
    rate: f64,
}

impl Default for Portion {
    fn default() -> Self {
        Self { part: AtomicU32::new(WHOLE), asked: AtomicU64::new(0), mean: Mutex::default() }
    }
}

impl Portion {
    /// `n` requests wanted the account, whether or not there was room.
    pub(crate) fn asked(&self, n: u32) {
        self.asked.fetch_add(u64::from(n), Relaxed);
    }

    /// Requests in a thousand seconds that want the account here, as a mean up to `now`: what others are told.
    pub(crate) fn wanted(&self, now: u64) -> u64 {
        let mut mean = self.mean();
        let passed = now.saturating_sub(mean.since);
        if passed > 0 {
            let asked = self.asked.swap(0, Relaxed) as f64;
            let kept = if mean.since == 0 { 0.0 } else { (-(passed as f64) / MEMORY_MS).exp() };
            let seen = if mean.since == 0 { asked * 1000.0 } else { asked * 1_000_000.0 / passed as f64 };
            *mean = Mean { since: now, rate: mean.rate * kept + seen * (1.0 - kept) };
        }
        mean.rate as u64
    }

    /// All others together want so much, in the same unit. True if that changes our part.
    pub(crate) fn beside(&self, others: u64) -> bool {
        let own = self.mean().rate;
        let part = match others {
            0 => WHOLE,
            others => ((own / (own + others as f64) * f64::from(WHOLE)) as u32).clamp(LEAST, WHOLE),
        };
        self.part.swap(part, Relaxed) != part
    }

    /// Our part of `all`: at least one of something.
    pub(crate) fn of(&self, all: u64) -> u64 {
        match self.part.load(Relaxed) {
            WHOLE => all,
            part => (all.saturating_mul(u64::from(part)) / u64::from(WHOLE)).max(u64::from(all > 0)),
        }
    }

    /// Our part of something that can be divided at will: above 0, at most 1.
    pub(crate) fn share(&self) -> f64 {
        f64::from(self.part.load(Relaxed)) / f64::from(WHOLE)
    }

    /// What all see, if we see so much.
    pub(crate) fn all(&self, ours: u64) -> u64 {
        match self.part.load(Relaxed) {
            WHOLE => ours,
            part => ours.saturating_mul(u64::from(WHOLE)) / u64::from(part.max(1)),
        }
    }

    fn mean(&self) -> MutexGuard<'_, Mean> {
        self.mean.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(per_second: u32) -> Portion {
        let portion = Portion::default();
        for half in 1..=40u64 {
            portion.asked(per_second / 2);
            portion.wanted(500 * half);
        }
        portion
    }

    #[test]
    fn parts_follow_what_is_asked_for() {
        let (many, few) = (asked(30), asked(10));
        let (all_of_many, all_of_few) = (many.wanted(20_000), few.wanted(20_000));
        assert!((29_000..=31_000).contains(&all_of_many), "{all_of_many}");
        assert!(many.beside(all_of_few) && few.beside(all_of_many));
        assert!((74..=76).contains(&many.of(100)) && (24..=26).contains(&few.of(100)));
        assert!((98..=102).contains(&many.all(75)), "what one sees is a part of it: {}", many.all(75));
    }

    #[test]
    fn alone_it_is_all_and_idle_it_is_not_nothing() {
        let alone = asked(10);
        assert!(!alone.beside(0));
        assert_eq!((alone.of(7), alone.all(7)), (7, 7));
        // Kills: a process that gets its first request and has no room for it.
        let idle = Portion::default();
        idle.beside(1_000_000);
        assert_eq!((idle.of(10), idle.of(1000), idle.of(0)), (1, 19, 0));
    }
}
