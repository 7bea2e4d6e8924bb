//! Use of an account within one of the windows that its level may stand for: what was sent here, what of it is no
//! evidence, what the pace turned away, and what others use.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Slots;

/// What others use is told in thousandths of a request.
pub(super) const MILLI: f64 = 1000.0;

#[derive(Debug)]
pub(super) struct SpanUse {
    pub(super) window_ms: u64,
    pub(super) sent: Slots,
    /// Refused ones: in use, but no evidence.
    pub(super) left_out: Slots,
    /// Turned away by the pace alone.
    pub(super) held: Slots,
    /// What all other processes use, as evidence: thousandths of a request.
    pub(super) others: AtomicU64,
    /// What was in use when a probe was last refused: thousandths of a request.
    outlasted: AtomicU64,
}

impl SpanUse {
    pub(super) fn new(window_ms: u64) -> Self {
        Self {
            window_ms,
            sent: Slots::tenths_of(window_ms),
            left_out: Slots::tenths_of(window_ms),
            held: Slots::tenths_of(window_ms),
            others: AtomicU64::new(0),
            outlasted: AtomicU64::new(0),
        }
    }

    /// What was in use here at `at`, seen from `now`, without refused requests.
    pub(super) fn evidence(&self, at: u64, now: u64) -> f64 {
        (self.sent.in_use(at, now) - self.left_out.in_use(at, now)).max(0.0)
    }

    /// What others use, as they told last.
    pub(super) fn others(&self) -> f64 {
        self.others.load(Relaxed) as f64 / MILLI
    }

    /// A probe that was sent at `at` is refused.
    pub(super) fn outlast(&self, at: u64, now: u64) {
        self.outlasted.store(((self.evidence(at, now) + self.others()) * MILLI) as u64, Relaxed);
    }

    /// What was in use when a probe was last refused.
    pub(super) fn outlasted(&self) -> f64 {
        self.outlasted.load(Relaxed) as f64 / MILLI
    }

    /// When `short` has aged.
    pub(super) fn frees(&self, short: f64, now: u64) -> u64 {
        let whole_window = now.saturating_add(self.window_ms).saturating_add(self.sent.slot_ms());
        self.sent.frees(short.ceil() as u64, 0, now).unwrap_or(whole_window).max(now + 1)
    }
}
