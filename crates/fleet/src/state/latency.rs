//! The average latency of an endpoint, weighted by its peaks. Decides nothing about who is chosen by it.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// How fast it forgets: a new sample weighs an eighth, a slower one counts at once.
const FORGET: f32 = 0.125;

/// In microseconds, as the bits of an `f32`; 0 before the first sample.
#[derive(Debug, Default)]
pub(super) struct Latency(AtomicU32);

impl Latency {
    pub(super) fn sample(&self, took: Duration) {
        let sample = took.as_micros() as f32;
        let before = self.micros();
        let after = if sample > before { sample } else { before + (sample - before) * FORGET };
        self.0.store(after.to_bits(), Relaxed);
    }

    pub(super) fn micros(&self) -> f32 {
        f32::from_bits(self.0.load(Relaxed))
    }
}
