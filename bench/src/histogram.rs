//! Latencies in buckets that are never wider than 1/128 of their value. Counts; never keeps samples.

use std::time::Duration;

/// Buckets per doubling.
const STEPS: u64 = 128;

/// How often each latency was seen, from 1 ns to centuries, within 0.8 %.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket_of(nanos);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// How many latencies were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The latency that `per_mille` of a thousand do not exceed, rounded up to its bucket's end. Zero when nothing was counted.
    #[must_use]
    pub fn quantile(&self, per_mille: u64) -> Duration {
        let wanted = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(end_of(bucket));
            }
        }
        Duration::ZERO
    }
}

/// Below two times `STEPS` one bucket per nanosecond, above `STEPS` buckets per doubling.
fn bucket_of(nanos: u64) -> usize {
    let shift = u64::from((nanos / STEPS).max(1).ilog2());
    usize::try_from(shift * STEPS + (nanos >> shift)).expect("at most 57 doublings of 128 buckets")
}

/// The largest value that falls into `bucket`.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    let first = (bucket - shift * STEPS) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_within_one_in_128_of_every_value_in_it() {
        let mut nanos = 0_u64;
        while nanos < u64::MAX / 4 {
            let end = end_of(bucket_of(nanos));
            // Kills: `>> shift` in `end_of`, and any `shift` that is one off.
            assert!(
                end >= nanos && end - nanos <= nanos / 128,
                "{nanos} went to a bucket that ends at {end}"
            );
            nanos += 1 + nanos / 97;
        }
    }

    #[test]
    fn buckets_follow_each_other_without_gap() {
        for bucket in 0..5000 {
            assert_eq!(bucket_of(end_of(bucket)), bucket);
            assert_eq!(bucket_of(end_of(bucket) + 1), bucket + 1);
        }
    }

    #[test]
    fn quantiles_count_from_the_smallest() {
        let check = |per_mille, expected| {
            let mut all = Histogram::default();
            (1..=100).for_each(|n| all.record(Duration::from_nanos(n)));
            assert_eq!(all.quantile(per_mille), Duration::from_nanos(expected), "{per_mille} per mille");
        };
        check(0, 1);
        check(500, 50);
        check(990, 99);
        check(1000, 100);
        assert_eq!(Histogram::default().quantile(500), Duration::ZERO);
    }
}
