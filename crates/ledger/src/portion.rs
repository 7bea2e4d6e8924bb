//! Which part of a learned ceiling is this process's, where several share it: as much as it is asked for, of what all of
//! them are asked for. What is seen here is a sample of what all see, in the same proportion. Decides nothing about
//! ceilings.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Parts are counted in these.
const WHOLE: u32 = 1 << 16;
/// What nobody asks for now may be asked for at once: so much of an account is always there, a fiftieth.
const LEAST: u32 = WHOLE / 50;
/// How fast the mean of what is asked for forgets. A part that shrinks by chance waits for its window to empty, and one that
/// grows fills it no faster than the pace: each wave of parts is lost to all, so chance must not make any.
const MEMORY_MS: f64 = 60_000.0;
/// What was asked lately is the mean if it is off by more than chance makes it, three times its usual error.
const LATELY_MS: f64 = 5_000.0;
const NO_CHANCE: f64 = 3.0;
/// Rates are requests in so many milliseconds.
const PER_MS: f64 = 1_000_000.0;

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Portion {
    asked: AtomicU64,
    part: AtomicU32,
    mean: Mutex<Mean>,
}

#[derive(Debug, Default)]
struct Mean {
    /// From when on it is a mean.
    from: u64,
    since: u64,
    /// Requests in a thousand seconds, over a minute and over some seconds.
    rate: f64,
    lately: f64,
}

impl Mean {
    /// `asked` more until `now`.
    fn note(&mut self, asked: f64, now: u64) {
        if self.since == 0 {
            let first = asked * 1000.0;
            *self = Self { from: now, since: now, rate: first, lately: first };
            return;
        }
        let (age, passed) = (now.saturating_sub(self.from) as f64, now.saturating_sub(self.since) as f64);
        let into = |mean: f64, memory: f64| {
            let kept = (-passed / memory.min(age)).exp();
            mean * kept + asked * PER_MS / passed * (1.0 - kept)
        };
        (self.rate, self.lately) = (into(self.rate, MEMORY_MS), into(self.lately, LATELY_MS));
        self.since = now;
        let usual = (self.rate.max(self.lately) * PER_MS / (2.0 * LATELY_MS)).sqrt();
        if (self.lately - self.rate).abs() > NO_CHANCE * usual {
            self.rate = self.lately;
            self.from = now.saturating_sub(LATELY_MS as u64);
        }
    }
}

impl Default for Portion {
    fn default() -> Self {
        Self { asked: AtomicU64::new(0), part: AtomicU32::new(WHOLE), mean: Mutex::default() }
    }
}

impl Portion {
    /// `n` requests wanted the account, whether or not there was room.
    pub(crate) fn asked(&self, n: u32) {
        self.asked.fetch_add(u64::from(n), Relaxed);
    }

    /// How many wanted it since [`Portion::wanted`] was last asked.
    pub(crate) fn asked_so_far(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    /// Requests in a thousand seconds that want the account here, as a mean up to `now`: what others are told.
    pub(crate) fn wanted(&self, now: u64) -> u64 {
        let mut mean = self.mean();
        if now > mean.since {
            mean.note(self.asked.swap(0, Relaxed) as f64, now);
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

    /// Kills: parts that follow chance, and parts that follow nothing else either.
    #[test]
    fn chance_moves_no_part_and_demand_does() {
        let portion = asked(10);
        let half = |k: u64, n: u32| {
            portion.asked(n);
            portion.wanted(20_000 + 500 * k);
            portion.beside(10_000);
            portion.share()
        };
        // Five seconds a little more, five a little less.
        for k in 1..=120 {
            let share = half(k, if k / 10 % 2 == 0 { 6 } else { 4 });
            assert!((0.48..=0.52).contains(&share), "{share} after {k} halves of a second");
        }
        for k in 121..=139 {
            half(k, 15);
        }
        let soon = half(140, 15);
        assert!(soon > 0.7, "{soon} ten seconds after three times as much is asked");
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
