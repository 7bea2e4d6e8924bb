//! What one process saw since the law was last told, and how close its requests of late followed each other. Counts only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What happened since the law was last told.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) told_at: AtomicU64,
    pub(super) answers: AtomicU64,
    pub(super) clipped: AtomicBool,
    pub(super) round_trip_ms: AtomicU64,
    pub(super) back_at: AtomicU64,
    /// When the last refused probe was sent.
    pub(super) still_refused_at: AtomicU64,
}

/// How close requests of late followed each other: by the slot of ten milliseconds, the gap before the last one in it.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    last: AtomicU64,
    /// A slot's number, and milliseconds.
    words: [AtomicU64; Gaps::RING],
}

impl Gaps {
    const RING: usize = 32;
    const SLOT_MS: u64 = 20;
    const BITS: u32 = 20;

    pub(super) fn note(&self, now: u64) {
        let slot = now / Self::SLOT_MS;
        let gap = now.saturating_sub(self.last.swap(now, Relaxed)).min((1 << Self::BITS) - 1);
        self.words[slot as usize % Self::RING].store((slot << Self::BITS) | gap, Relaxed);
    }

    /// Whether something was sent within the last `ms`.
    pub(super) fn is_busy(&self, ms: u64, now: u64) -> bool {
        now.saturating_sub(self.last.load(Relaxed)) < ms
    }

    /// Before the request sent at `at`; long if it is forgotten.
    pub(super) fn before(&self, at: u64) -> u64 {
        let slot = at / Self::SLOT_MS;
        let word = self.words[slot as usize % Self::RING].load(Relaxed);
        if word >> Self::BITS == slot { word & ((1 << Self::BITS) - 1) } else { u64::from(u32::MAX) }
    }
}

impl Tally {
    /// A mean that moves an eighth of the way each time.
    pub(super) fn took(&self, ms: u64) {
        let mean = self.round_trip_ms.load(Relaxed);
        let next = if mean == 0 { ms } else { (7 * mean + ms).div_ceil(8) };
        self.round_trip_ms.store(next, Relaxed);
    }
}
