//! Counters that one thread owns: the hot path touches no shared cache line, and what was counted is folded into the registry
//! once a second. What a series is called is asked once, when it is first folded with something in it.

use crate::histograms::{BUCKETS, Histogram, sample};
use metrics::Counter;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::Duration;

/// A count since the last fold.
#[derive(Default)]
pub struct Count {
    counted: Cell<u64>,
    /// Boxed: most counts of most endpoints are never used.
    shared: OnceCell<Box<Counter>>,
}

impl Count {
    pub fn add(&self, n: u64) {
        self.counted.set(self.counted.get() + n);
    }

    /// Adds what was counted to its series and starts anew.
    pub fn fold(&self, register: impl FnOnce() -> Counter) {
        let counted = self.counted.take();
        if counted > 0 {
            self.shared.get_or_init(|| Box::new(register())).increment(counted);
        }
    }
}

/// Durations since the last fold. What is usual, short durations, stands together.
#[derive(Default)]
#[repr(C)]
pub struct Durations {
    nanos: Cell<u64>,
    counts: [Cell<u32>; BUCKETS],
    shared: OnceCell<Arc<Histogram>>,
}

impl Durations {
    pub fn record(&self, elapsed: Duration) {
        let (bucket, nanos) = sample(elapsed);
        let count = &self.counts[bucket];
        count.set(count.get() + 1);
        self.nanos.set(self.nanos.get().saturating_add(nanos));
    }

    /// Adds what was recorded to its series and starts anew.
    pub fn fold(&self, register: impl FnOnce() -> Arc<Histogram>) {
        if self.counts.iter().all(|count| count.get() == 0) {
            return;
        }
        let shared = self.shared.get_or_init(register);
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| count.get() > 0) {
            shared.add(bucket, u64::from(count.take()));
        }
        shared.add_nanos(self.nanos.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histograms::Histograms;

    fn shown(histograms: &Histograms) -> Vec<String> {
        let mut text = String::new();
        histograms.render(&mut text);
        text.lines().map(str::to_owned).collect()
    }

    /// Kills: a sample on its bound in the bucket above, one above all bounds lost, samples folded twice, a series registered
    /// before its first sample or at every fold.
    #[test]
    fn durations_are_folded_once_into_their_buckets() {
        let (histograms, durations) = (Histograms::default(), Durations::default());
        durations.fold(|| panic!("nothing was recorded"));
        for micros in [500, 501, 31_000_000] {
            durations.record(Duration::from_micros(micros));
        }
        durations.fold(|| histograms.series("x_seconds", &[]));
        durations.fold(|| panic!("nothing is left"));
        let lines = shown(&histograms);
        for line in [
            r#"x_seconds_bucket{le="0.0005"} 1"#,
            r#"x_seconds_bucket{le="0.001"} 2"#,
            r#"x_seconds_bucket{le="30"} 2"#,
            r#"x_seconds_bucket{le="+Inf"} 3"#,
            "x_seconds_sum{} 31.001001",
        ] {
            assert!(lines.iter().any(|shown| shown == line), "{line} is not in {lines:?}");
        }
        durations.record(Duration::MAX);
        durations.fold(|| panic!("it is known already"));
        assert!(shown(&histograms).contains(&"x_seconds_count{} 4".to_owned()));
    }

    /// Kills: a count folded twice, and a series registered before it counts or at every fold.
    #[test]
    fn a_fold_starts_anew() {
        let (count, registered) = (Count::default(), Cell::new(0));
        let register = || {
            registered.set(registered.get() + 1);
            Counter::noop()
        };
        count.fold(register);
        assert_eq!(registered.get(), 0);
        for n in [2, 3] {
            count.add(n);
            assert_eq!(count.counted.get(), n);
            count.fold(register);
        }
        assert_eq!((count.counted.get(), registered.get()), (0, 1));
    }
}
