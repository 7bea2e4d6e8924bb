//! How much a provider takes, enforced for real. Pure: the clock is an argument, in milliseconds.
//!
//! A [`Meter`] decides whether so many more calls fit and when the next one will. It never decides how a
//! refusal looks.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// A provider's limit on calls. A batch counts its items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// At most `n` calls in each window, windows aligned to multiples of their length since the epoch.
    Fixed { n: u64, window: Duration },
    /// At most `n` calls in any span of `window`.
    Rolling { n: u64, window: Duration },
    /// `rate` calls per second on average, `burst` at once.
    Bucket { rate: f64, burst: f64 },
}

/// A limit and what has been used of it.
#[derive(Clone, Debug)]
pub struct Meter {
    limit: Limit,
    used: Used,
    admitted: Vec<u64>,
    refused: u64,
}

#[derive(Clone, Debug)]
enum Used {
    Window { number: u64, count: u64 },
    Recent(VecDeque<u64>),
    Level { tokens: f64, at: Option<u64> },
}

impl Meter {
    /// A meter with everything still to spend.
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        let used = match limit {
            Limit::Fixed { .. } => Used::Window { number: 0, count: 0 },
            Limit::Rolling { .. } => Used::Recent(VecDeque::new()),
            Limit::Bucket { burst, .. } => Used::Level { tokens: burst, at: None },
        };
        Self { limit, used, admitted: Vec::new(), refused: 0 }
    }

    /// Admits `calls` at `now` (milliseconds since the epoch), all of them or none.
    pub fn admit(&mut self, now: u64, calls: u64) -> bool {
        let fits = self.free(now) >= calls;
        if fits {
            self.spend(now, calls);
            self.admitted.extend((0..calls).map(|_| now));
        } else {
            self.refused += calls;
        }
        fits
    }

    /// How many calls would be admitted at `now`.
    #[must_use]
    pub fn free(&mut self, now: u64) -> u64 {
        self.roll(now);
        match (&self.limit, &self.used) {
            (Limit::Fixed { n, .. }, Used::Window { count, .. }) => n.saturating_sub(*count),
            (Limit::Rolling { n, .. }, Used::Recent(recent)) => n.saturating_sub(recent.len() as u64),
            (_, Used::Level { tokens, .. }) => tokens.max(0.0) as u64,
            (_, Used::Window { .. } | Used::Recent(_)) => 0,
        }
    }

    /// Milliseconds until `calls` more fit (as many as ever fit at once, if they are more); 0 when they fit
    /// at `now`.
    #[must_use]
    pub fn opens_in(&mut self, now: u64, calls: u64) -> u64 {
        let short = calls.min(self.most()).saturating_sub(self.free(now));
        if short == 0 {
            return 0;
        }
        match (&self.limit, &self.used) {
            (Limit::Fixed { window, .. }, _) => millis(*window) - now % millis(*window),
            (Limit::Rolling { window, .. }, Used::Recent(recent)) => {
                let leaving = recent.get(usize::try_from(short - 1).unwrap_or(usize::MAX));
                leaving.map_or(0, |at| (at + millis(*window)).saturating_sub(now))
            }
            (Limit::Bucket { rate, .. }, Used::Level { tokens, .. }) => {
                let wanted = calls.min(self.most()) as f64;
                ((wanted - tokens) / rate * 1000.0).ceil().max(0.0) as u64
            }
            (Limit::Rolling { .. } | Limit::Bucket { .. }, _) => 0,
        }
    }

    /// The largest batch that ever fits.
    fn most(&self) -> u64 {
        match self.limit {
            Limit::Fixed { n, .. } | Limit::Rolling { n, .. } => n,
            Limit::Bucket { burst, .. } => burst as u64,
        }
    }

    /// Replaces the limit from `now` on; nothing that was used is forgiven within the same kind.
    pub fn change(&mut self, limit: Limit) {
        let fresh = Self::new(limit).used;
        if std::mem::discriminant(&fresh) != std::mem::discriminant(&self.used) {
            self.used = fresh;
        }
        self.limit = limit;
    }

    /// How many calls were admitted in each aligned window that saw any, by the window's number since the epoch.
    #[must_use]
    pub fn admitted_per_window(&self, window: Duration) -> BTreeMap<u64, u64> {
        let mut windows = BTreeMap::new();
        for at in &self.admitted {
            *windows.entry(at / millis(window)).or_default() += 1;
        }
        windows
    }

    /// Calls refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn roll(&mut self, now: u64) {
        match (&self.limit, &mut self.used) {
            (Limit::Fixed { window, .. }, Used::Window { number, count }) => {
                let current = now / millis(*window);
                if current != *number {
                    (*number, *count) = (current, 0);
                }
            }
            (Limit::Rolling { window, .. }, Used::Recent(recent)) => {
                while recent.front().is_some_and(|first| first + millis(*window) <= now) {
                    recent.pop_front();
                }
            }
            (Limit::Bucket { rate, burst }, Used::Level { tokens, at }) => {
                let passed = now.saturating_sub(at.unwrap_or(now));
                *tokens = (*tokens + rate * passed as f64 / 1000.0).min(*burst);
                *at = Some(now.max(at.unwrap_or(now)));
            }
            (Limit::Fixed { .. } | Limit::Rolling { .. } | Limit::Bucket { .. }, _) => {}
        }
    }

    fn spend(&mut self, now: u64, calls: u64) {
        match &mut self.used {
            Used::Window { count, .. } => *count += calls,
            Used::Recent(recent) => recent.extend((0..calls).map(|_| now)),
            Used::Level { tokens, .. } => *tokens -= calls as f64,
        }
    }
}

fn millis(window: Duration) -> u64 {
    u64::try_from(window.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Offers one call at each instant and says which were admitted.
    fn check(limit: Limit, offers: &[u64], expected: &[bool]) {
        let mut meter = Meter::new(limit);
        let admitted: Vec<bool> = offers.iter().map(|now| meter.admit(*now, 1)).collect();
        assert_eq!(admitted, expected, "{limit:?} offered at {offers:?}");
    }

    #[test]
    fn limits_admit_what_they_say() {
        let fixed = Limit::Fixed { n: 2, window: SECOND };
        check(fixed, &[1000, 1500, 1999, 2000, 2001, 2002], &[true, true, false, true, true, false]);
        // Kills a rolling window counted like a fixed one: 2000 is a new aligned second, not a new span.
        let rolling = Limit::Rolling { n: 2, window: SECOND };
        check(rolling, &[1500, 1600, 2000, 2499, 2500, 2600], &[true, true, false, false, true, true]);
        let bucket = Limit::Bucket { rate: 2.0, burst: 3.0 };
        check(bucket, &[0, 0, 0, 0, 499, 500, 501], &[true, true, true, false, false, true, false]);
    }

    #[test]
    fn a_batch_is_admitted_whole_or_not_at_all() {
        let mut meter = Meter::new(Limit::Fixed { n: 5, window: SECOND });
        assert!(meter.admit(0, 3));
        assert!(!meter.admit(0, 3));
        assert!(meter.admit(0, 2));
        assert_eq!((meter.refused(), meter.admitted_per_window(SECOND)), (3, BTreeMap::from([(0, 5)])));
    }

    #[test]
    fn a_changed_limit_forgives_nothing() {
        let mut meter = Meter::new(Limit::Fixed { n: 30, window: SECOND });
        assert!(meter.admit(0, 15));
        meter.change(Limit::Fixed { n: 10, window: SECOND });
        assert!(!meter.admit(500, 1));
        assert!(meter.admit(1000, 10));
    }

    fn limits() -> impl Strategy<Value = Limit> {
        prop_oneof![
            (1..20u64, 10..2000u64).prop_map(|(n, ms)| Limit::Fixed { n, window: Duration::from_millis(ms) }),
            (1..20u64, 10..2000u64)
                .prop_map(|(n, ms)| Limit::Rolling { n, window: Duration::from_millis(ms) }),
            (0.5..50.0f64, 1.0..20.0f64).prop_map(|(rate, burst)| Limit::Bucket { rate, burst }),
        ]
    }

    proptest! {
        /// Kills an opening that ignores how many calls wait, and one announced one millisecond early: the call at that instant is admitted.
        #[test]
        fn the_announced_opening_is_true(limit in limits(), offers in prop::collection::vec((0..300u64, 1..5u64), 1..200)) {
            let mut meter = Meter::new(limit);
            let mut now = 1_000_000;
            for (gap, calls) in offers {
                now += gap;
                let calls = calls.min(meter.most());
                if !meter.admit(now, calls) {
                    let wait = meter.opens_in(now, calls);
                    prop_assert!(wait > 0);
                    prop_assert!(meter.clone().admit(now + wait, calls));
                }
            }
        }

        #[test]
        fn no_fixed_window_admits_more_than_n(n in 1..50u64, gaps in prop::collection::vec(0..40u64, 1..300)) {
            let mut meter = Meter::new(Limit::Fixed { n, window: SECOND });
            let mut now = 0;
            for gap in gaps {
                now += gap;
                meter.admit(now, 1 + gap % 3);
            }
            prop_assert!(meter.admitted_per_window(SECOND).into_values().all(|count| count <= n));
        }
    }
}
