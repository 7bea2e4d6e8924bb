//! How far ahead of an even pace requests are, so that a refusal can be told from what is served all the time. Counts only.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aimd::steady::Pace;

/// Over an even pace, how fast a burst is forgotten: what lies a few requests back emptied nobody's bucket.
const FORGET: f64 = 1.25;

/// How far requests of late were ahead of an even pace: by the slot of twenty milliseconds, the furthest in it.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// When the burst is forgotten, in microseconds.
    over_at: AtomicU64,
    /// When the last one was sent, in milliseconds.
    last: AtomicU64,
    /// A slot's number, and sixteenths of a request.
    words: [AtomicU64; Bursts::RING],
}

impl Bursts {
    const RING: usize = 32;
    const SLOT_MS: u64 = 20;
    const BITS: u32 = 20;

    /// `n` requests are sent. A burst is forgotten a quarter faster than the pace would make up for it.
    pub(super) fn note(&self, n: u32, pace: Option<Pace>, now: u64) {
        self.last.store(now, Relaxed);
        let Some(pace) = pace else { return };
        let gap_us = pace.gap_us / FORGET;
        let now_us = now.saturating_mul(1000);
        let over_at = self.over_at.load(Relaxed).max(now_us).saturating_add((f64::from(n) * gap_us) as u64);
        self.over_at.store(over_at, Relaxed);
        let ahead = ((over_at - now_us) as f64 / gap_us * 16.0) as u64;
        let slot = now / Self::SLOT_MS;
        let word = &self.words[slot as usize % Self::RING];
        let old = word.load(Relaxed);
        let old = if old >> Self::BITS == slot { old & ((1 << Self::BITS) - 1) } else { 0 };
        word.store((slot << Self::BITS) | ahead.max(old).min((1 << Self::BITS) - 1), Relaxed);
    }

    /// Whether something was sent within the last `ms`.
    pub(super) fn is_busy(&self, ms: u64, now: u64) -> bool {
        now.saturating_sub(self.last.load(Relaxed)) < ms
    }

    /// How far the one sent at `at` was ahead; nothing if it is forgotten.
    pub(super) fn at(&self, at: u64) -> f64 {
        let slot = at / Self::SLOT_MS;
        let word = self.words[slot as usize % Self::RING].load(Relaxed);
        if word >> Self::BITS == slot { (word & ((1 << Self::BITS) - 1)) as f64 / 16.0 } else { 0.0 }
    }
}
