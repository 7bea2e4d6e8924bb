//! What of a record the hot path reads: the span, and this process's part of the ceiling and its pace. Decides nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use aimd::steady::Pace;

use super::SpanUse;

/// A ceiling that is not known.
const NONE: f64 = f64::INFINITY;

/// What of the record the hot path reads. Fields are read one by one: a moment's mixture of two levels is as good as
/// either.
#[derive(Debug)]
pub(super) struct Force {
    span: AtomicU64,
    ceiling: AtomicU64,
    gap_us: AtomicU64,
    depth: AtomicU64,
}

impl Default for Force {
    fn default() -> Self {
        let force = Self {
            span: AtomicU64::new(0),
            ceiling: AtomicU64::new(0),
            gap_us: AtomicU64::new(0),
            depth: AtomicU64::new(0),
        };
        force.lift();
        force
    }
}

impl Force {
    /// No level is known.
    pub(super) fn lift(&self) {
        self.set(0, NONE, Pace { gap_us: 0.0, depth: 1.0 });
    }

    pub(super) fn set(&self, span: usize, ceiling: f64, pace: Pace) {
        self.span.store(span as u64, Relaxed);
        self.ceiling.store(ceiling.to_bits(), Relaxed);
        self.gap_us.store(pace.gap_us.to_bits(), Relaxed);
        self.depth.store(pace.depth.to_bits(), Relaxed);
    }

    /// `None` while no level is known.
    pub(super) fn read<'a>(&self, spans: &'a [SpanUse]) -> Option<(&'a SpanUse, f64, Pace)> {
        let number = |word: &AtomicU64| f64::from_bits(word.load(Relaxed));
        let ceiling = number(&self.ceiling);
        let span = spans.get(self.span.load(Relaxed) as usize).filter(|_| ceiling.is_finite())?;
        Some((span, ceiling, Pace { gap_us: number(&self.gap_us), depth: number(&self.depth) }))
    }
}
