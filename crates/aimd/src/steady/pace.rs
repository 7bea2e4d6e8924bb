//! How fast requests may follow each other: a bucket kept as one instant, the one at which it is full again. Decides
//! by the level's pace only; what is in use stands beside it. Pure: whoever keeps the instant sets it.

/// Instants are microseconds, or a few thousand requests a second would share one.
const US: f64 = 1000.0;
/// Clocks tick once a millisecond: what comes within the same tick was due within it.
const TICK_US: u64 = 1000;

/// A level as a pace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Between two requests, in microseconds.
    pub gap_us: f64,
    /// Requests that may come at once, at least 1.
    pub depth: f64,
}

/// What the pace says to a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Paced {
    /// Go, and the bucket is full again then; `deep` of its tokens are gone.
    Go {
        /// Microseconds.
        full_at: u64,
        /// Tokens gone, this one included.
        deep: f64,
    },
    /// Not before then, in milliseconds.
    Wait {
        /// The first millisecond that will do.
        until: u64,
    },
}

impl Pace {
    /// Whether `n` requests at once keep the pace at `now` (milliseconds), `full_at` being where the bucket stands.
    #[must_use]
    pub fn ask(&self, full_at: u64, n: u32, now: u64) -> Paced {
        let now_us = now.saturating_mul(US as u64);
        // More than the depth at once passes a full bucket only.
        let room = ((self.depth - f64::from(n)).max(0.0) * self.gap_us) as u64;
        if full_at > now_us.saturating_add(room).saturating_add(TICK_US) {
            return Paced::Wait { until: full_at.saturating_sub(room).div_ceil(US as u64).max(now + 1) };
        }
        // A tick's grace is not a gift: the bucket fills from where it stood.
        let from = if full_at.saturating_add(TICK_US) < now_us { now_us } else { full_at };
        let full_at = from.saturating_add((f64::from(n) * self.gap_us) as u64);
        Paced::Go {
            full_at,
            deep: full_at.saturating_sub(now_us) as f64 / self.gap_us.max(f64::MIN_POSITIVE),
        }
    }

    /// Where the bucket stands at most when no more than `tokens` are left in it at `now`.
    #[must_use]
    pub fn drained(&self, full_at: u64, tokens: f64, now: u64) -> u64 {
        let short = ((self.depth - tokens).max(0.0) * self.gap_us) as u64;
        full_at.max(now.saturating_mul(US as u64).saturating_add(short))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000;

    /// Asks at each millisecond for one; which of them go.
    fn check(pace: Pace, at: &[u64], expected: &[bool]) {
        let mut full_at = 0;
        let gone: Vec<bool> = at
            .iter()
            .map(|ms| match pace.ask(full_at, 1, NOW + ms) {
                Paced::Go { full_at: next, .. } => {
                    full_at = next;
                    true
                }
                Paced::Wait { until } => {
                    assert!(
                        matches!(pace.ask(full_at, 1, until), Paced::Go { .. }),
                        "kills: an opening too early"
                    );
                    false
                }
            })
            .collect();
        assert_eq!(gone, expected, "{pace:?} at {at:?}");
    }

    #[test]
    fn requests_keep_their_distance_and_bursts_their_depth() {
        let even = Pace { gap_us: 20_000.0, depth: 1.0 };
        check(even, &[0, 0, 10, 18, 20, 30, 40], &[true, false, false, false, true, false, true]);
        let deep = Pace { gap_us: 20_000.0, depth: 3.0 };
        check(deep, &[0, 0, 0, 0, 20, 20, 100], &[true, true, true, false, true, false, true]);
    }

    /// Kills: one request per tick of a clock of milliseconds.
    #[test]
    fn a_fast_pace_is_kept_on_a_slow_clock() {
        let pace = Pace { gap_us: 250.0, depth: 1.0 };
        let mut full_at = 0;
        let mut gone = 0;
        for ms in 0..1000 {
            while let Paced::Go { full_at: next, .. } = pace.ask(full_at, 1, NOW + ms) {
                (full_at, gone) = (next, gone + 1);
            }
        }
        assert!((3990..=4010).contains(&gone), "{gone}");
    }

    #[test]
    fn what_drains_the_bucket_is_waited_for() {
        let pace = Pace { gap_us: 10_000.0, depth: 10.0 };
        let full_at = pace.drained(0, 3.0, NOW);
        let Paced::Go { deep, .. } = pace.ask(full_at, 3, NOW) else { panic!("three are left") };
        assert!((deep - 10.0).abs() < 0.2, "{deep}");
        assert!(matches!(pace.ask(full_at, 5, NOW), Paced::Wait { .. }), "kills: draining nothing");
    }
}
