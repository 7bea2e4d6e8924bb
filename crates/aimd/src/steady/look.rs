//! What one process saw since it last decided: the highest clean use, and the furthest burst.
//! Never stored; decides nothing.

use super::{Level, Seen};

/// Begun anew with every decision.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Look {
    /// Milliseconds.
    pub(crate) since: u64,
    pub(crate) peak: f64,
    /// How far ahead of an even pace the furthest was, since then and before.
    burst: [f64; 2],
}

impl Look {
    /// Begins anew; of bursts the last look is remembered, too.
    pub(crate) fn again(&mut self, since: u64) {
        *self = Self { since, peak: 0.0, burst: [0.0, self.burst[0]] };
    }

    pub(crate) fn note(&mut self, seen: &Seen, level: &Level) {
        self.peak = self.peak.max(level.pressed(seen.used, seen.held));
        self.burst[0] = self.burst[0].max(seen.burst);
    }

    /// How far ahead of an even pace the furthest was that was served of late.
    #[must_use]
    pub fn proven(&self) -> f64 {
        self.burst[0].max(self.burst[1])
    }
}
