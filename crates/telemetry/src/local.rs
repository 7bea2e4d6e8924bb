//! Counters that one thread owns: the hot path touches no shared cache line, and what was counted is folded
//! into the registry once a second.

use std::cell::{Cell, RefCell};

/// A count since the last fold.
#[derive(Debug, Default)]
pub struct Count(Cell<u64>);

impl Count {
    pub fn add(&self, n: u64) {
        self.0.set(self.0.get() + n);
    }

    /// What was counted since the last call.
    pub fn take(&self) -> u64 {
        self.0.take()
    }
}

/// Sub-buckets per power of two: a folded sample is off by at most 1/16 of its value.
const STEPS: u32 = 8;
/// Microseconds up to 2^26 (67 s); longer ones share the last bucket.
const POWERS: u32 = 27;
const BUCKETS: usize = (POWERS * STEPS) as usize;

/// Durations since the last fold, in buckets; nothing is allocated before the first sample.
#[derive(Debug, Default)]
pub struct Durations(RefCell<Option<Box<[u32; BUCKETS]>>>);

impl Durations {
    pub fn record(&self, elapsed: std::time::Duration) {
        let mut buckets = self.0.borrow_mut();
        let buckets = buckets.get_or_insert_with(|| Box::new([0; BUCKETS]));
        buckets[bucket(elapsed.as_micros().try_into().unwrap_or(u64::MAX))] += 1;
    }

    /// Hands `(seconds, samples)` of every bucket that has any to `fold`, and starts anew.
    pub fn drain(&self, mut fold: impl FnMut(f64, usize)) {
        let mut buckets = self.0.borrow_mut();
        let Some(buckets) = buckets.as_mut() else { return };
        for (index, samples) in buckets.iter_mut().enumerate().filter(|(_, samples)| **samples > 0) {
            fold(middle(index), *samples as usize);
            *samples = 0;
        }
    }
}

fn bucket(micros: u64) -> usize {
    let micros = micros.max(1);
    let power = micros.ilog2().min(POWERS - 1);
    let step = ((micros >> power.saturating_sub(3)) & 7) as u32;
    let step = if power < 3 { ((micros << (3 - power)) & 7) as u32 } else { step };
    if micros >= 1 << POWERS { BUCKETS - 1 } else { (power * STEPS + step) as usize }
}

/// The middle of a bucket, in seconds.
fn middle(index: usize) -> f64 {
    let (power, step) = (index as u32 / STEPS, index as u32 % STEPS);
    let start = f64::from(1u32 << power) * (1.0 + f64::from(step) / f64::from(STEPS));
    let width = f64::from(1u32 << power) / f64::from(STEPS);
    (start + width / 2.0) / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_folded_duration_is_close_to_the_recorded_one() {
        let durations = Durations::default();
        for micros in [8u64, 9, 100, 999, 12_345, 1_000_000, 59_000_000] {
            durations.record(Duration::from_micros(micros));
            let mut folded = Vec::new();
            durations.drain(|seconds, samples| folded.push((seconds, samples)));
            let [(seconds, 1)] = folded[..] else { panic!("{folded:?}") };
            let off = (seconds * 1e6 - micros as f64).abs() / micros as f64;
            assert!(off <= 1.0 / 15.0, "{micros} µs folded as {} µs", seconds * 1e6);
        }
    }

    #[test]
    fn a_fold_starts_anew() {
        let (count, durations) = (Count::default(), Durations::default());
        count.add(2);
        durations.record(Duration::MAX);
        durations.record(Duration::ZERO);
        let mut samples = 0;
        durations.drain(|_, n| samples += n);
        assert_eq!((count.take(), samples), (2, 2));
        durations.drain(|_, _| panic!("nothing is left"));
        assert_eq!(count.take(), 0);
    }
}
