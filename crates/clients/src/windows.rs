//! The use of one subject, counted in this process: all dimensions are checked first, then charged. Decides nothing
//! about other processes.

use crate::standing::{Used, judge, standing};
use crate::{Limits, Refusal, Standing, WINDOWS};
use ledger::Cost;

/// What was used of each window, and how many slots are held.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    /// The number of the window that was charged last, and its use.
    used: [(u64, u64); WINDOWS.len()],
}

impl Windows {
    /// Charges a request of this cost at `now`, or nothing. `held` slots are taken; `slot`: it wants one.
    ///
    /// # Errors
    /// The refusal.
    pub fn charge(
        &mut self,
        limits: &Limits,
        held: u64,
        cost: Cost,
        slot: bool,
        now: u64,
    ) -> Result<Option<Standing>, Refusal> {
        let mut used = self.at(now);
        judge(limits, &used, held, cost, slot, now)?;
        // Also what is not limited here: another client of the plan may be, or a reload may say so.
        for (at, window) in WINDOWS.iter().enumerate() {
            used[at] = used[at].saturating_add(window.part(cost));
            self.used[at] = (window.number(now), used[at]);
        }
        Ok(standing(limits, &used, held + u64::from(slot), now))
    }

    /// Takes back what was charged at `charged`, where the window still runs at `now`.
    pub fn give_back(&mut self, cost: Cost, charged: u64, now: u64) {
        for (window, (number, used)) in WINDOWS.iter().zip(&mut self.used) {
            if window.number(charged) == *number && window.number(now) == *number {
                *used = used.saturating_sub(window.part(cost));
            }
        }
    }

    /// Whether nothing counts any more at `now`.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        self.at(now).iter().all(|used| *used == 0)
    }

    fn at(&self, now: u64) -> Used {
        std::array::from_fn(|at| {
            let (number, used) = self.used[at];
            // A clock that was set back must not open a window again.
            if WINDOWS[at].number(now) <= number { used } else { 0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(pairs: &[(&str, u64)]) -> Limits {
        let mut limits = Limits::default();
        pairs.iter().for_each(|(name, limit)| assert!(limits.set(name, *limit)));
        limits
    }

    /// Kills: charging the dimensions that had room when another had none.
    #[test]
    fn a_refusal_in_one_dimension_changes_no_other() {
        let set = limits(&[("rps", 2), ("cu_per_second", 50)]);
        let mut windows = Windows::default();
        let cost = Cost { requests: 1, units: 40 };
        assert!(windows.charge(&set, 0, cost, false, 5_000).is_ok());
        assert!(windows.charge(&set, 0, cost, false, 5_001).is_err(), "80 units");
        let cheap = Cost { requests: 1, units: 10 };
        assert!(windows.charge(&set, 0, cheap, false, 5_002).is_ok(), "the refused request took nothing");
        assert!(windows.charge(&set, 0, Cost::requests(1), false, 5_003).is_err());
        assert!(windows.charge(&set, 0, cost, false, 6_000).is_ok(), "the next second");
    }

    /// Kills: giving back into a later window, and more than was taken.
    #[test]
    fn what_is_given_back_belongs_to_its_window() {
        let set = limits(&[("rps", 1), ("rpm", 2)]);
        let one = Cost::requests(1);
        let mut windows = Windows::default();
        assert!(windows.charge(&set, 0, one, false, 1_500).is_ok());
        windows.give_back(one, 1_500, 1_600);
        assert!(windows.charge(&set, 0, one, false, 1_700).is_ok());
        assert!(windows.charge(&set, 0, one, false, 2_000).is_ok());
        windows.give_back(one, 1_700, 2_100);
        assert!(windows.charge(&set, 0, one, false, 2_200).is_err(), "the second of 2_000 is still full");
        assert!(windows.charge(&set, 0, one, false, 3_000).is_ok(), "the minute has room for one again");
    }

    #[test]
    fn a_clock_set_back_opens_nothing() {
        let set = limits(&[("rps", 1)]);
        let mut windows = Windows::default();
        assert!(windows.charge(&set, 0, Cost::requests(1), false, 9_000).is_ok());
        assert!(windows.charge(&set, 0, Cost::requests(1), false, 8_000).is_err());
        assert!(!windows.is_over(9_500) && windows.is_over(86_400_000 * 2));
    }

    proptest! {
        /// At most the limit in every window, and a retry at the announced time is admitted.
        #[test]
        fn never_above_a_limit_and_retry_is_true(
            rps in 1u64..6, rpm in 1u64..30, steps in proptest::collection::vec(0u64..700, 1..200),
        ) {
            let set = limits(&[("rps", rps), ("rpm", rpm)]);
            let (mut windows, mut now) = (Windows::default(), 1_800_000_000_000u64);
            let mut admitted: Vec<u64> = Vec::new();
            for step in steps {
                now += step;
                match windows.charge(&set, 0, Cost::requests(1), false, now) {
                    Ok(_) => admitted.push(now),
                    Err(refusal) => {
                        let mut then = windows.clone();
                        let at = now + refusal.retry_in_ms.div_ceil(1000) * 1000;
                        prop_assert!(then.charge(&set, 0, Cost::requests(1), false, at).is_ok());
                    }
                }
            }
            for at in &admitted {
                let within = |period: u64| admitted.iter().filter(|t| **t / period == at / period).count() as u64;
                prop_assert!(within(1_000) <= rps && within(60_000) <= rpm);
            }
        }
    }
}
