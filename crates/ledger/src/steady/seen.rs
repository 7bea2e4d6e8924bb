//! What one process saw since the law was last told. Counts only.

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

impl Tally {
    /// A mean that moves an eighth of the way each time.
    pub(super) fn took(&self, ms: u64) {
        let mean = self.round_trip_ms.load(Relaxed);
        let next = if mean == 0 { ms } else { (7 * mean + ms).div_ceil(8) };
        self.round_trip_ms.store(next, Relaxed);
    }
}
