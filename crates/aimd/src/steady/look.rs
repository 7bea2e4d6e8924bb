//! What one process saw since it last decided: the highest clean use.
//! Never stored; decides nothing.

use super::Seen;

/// Begun anew with every decision.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Look {
    /// Milliseconds.
    pub(crate) since: u64,
    pub(crate) peak: f64,
}

impl Look {
    pub(crate) fn from(since: u64) -> Self {
        Self { since, ..Self::default() }
    }

    pub(crate) fn note(&mut self, seen: &Seen) {
        self.peak = self.peak.max(seen.used);
    }
}
