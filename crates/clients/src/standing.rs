//! From what was used of each window to an answer: admitted or refused, until when, and what a client is told of its
//! tightest limit. Decides for every backend alike; counts nothing.

use crate::{Limits, WINDOWS};
use ledger::Cost;

/// What the `RateLimit-*` headers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub limit: u64,
    pub remaining: u64,
    pub reset_ms: u64,
}

/// Why a request is not admitted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// When the last of the dimensions that are in the way opens again, from now.
    pub retry_in_ms: u64,
    /// Of the dimension that opens last.
    pub standing: Standing,
    /// What is too much of: a request that needs none of it might pass.
    pub requests: bool,
    pub units: bool,
    /// Every slot is taken, which no clock ends.
    pub concurrency: bool,
}

/// What is known of every window: its use, in the order of [`WINDOWS`].
pub type Used = [u64; WINDOWS.len()];

/// A client with all slots taken is told to come back after this: a slot is free when a request ends.
const SLOT_RETRY_MS: u64 = 1_000;

/// Whether `limits` admit a request of this cost at `now`, when so much is `used` and `held` slots are taken. `slot`: it
/// wants a slot.
///
/// # Errors
/// The refusal.
pub fn judge(
    limits: &Limits,
    used: &Used,
    held: u64,
    cost: Cost,
    slot: bool,
    now: u64,
) -> Result<(), Refusal> {
    let mut refusal: Option<Refusal> = None;
    if let Some(limit) = limits.concurrency.filter(|limit| slot && held >= *limit) {
        let standing = Standing { limit, remaining: 0, reset_ms: SLOT_RETRY_MS };
        let (requests, units) = (false, false);
        refusal = Some(Refusal { retry_in_ms: SLOT_RETRY_MS, standing, requests, units, concurrency: true });
    }
    for (at, window, limit) in limits.limited() {
        if used[at].saturating_add(window.part(cost)) <= limit || window.part(cost) == 0 {
            continue;
        }
        let left_ms = window.left_ms(now);
        let standing = Standing { limit, remaining: limit.saturating_sub(used[at]), reset_ms: left_ms };
        let refusal = refusal.get_or_insert(Refusal {
            retry_in_ms: 0,
            standing,
            requests: false,
            units: false,
            concurrency: false,
        });
        if left_ms > refusal.retry_in_ms {
            (refusal.retry_in_ms, refusal.standing) = (left_ms, standing);
        }
        refusal.requests |= window.unit == ledger::Unit::Requests;
        refusal.units |= window.unit == ledger::Unit::ComputeUnits;
    }
    refusal.map_or(Ok(()), Err)
}

/// The tightest dimension after what was `used`: the one of which the smallest part is left.
#[must_use]
pub fn standing(limits: &Limits, used: &Used, held: u64, now: u64) -> Option<Standing> {
    let windows = limits.limited().map(|(at, window, limit)| Standing {
        limit,
        remaining: limit.saturating_sub(used[at]),
        reset_ms: window.left_ms(now),
    });
    let slots = limits.concurrency.map(|limit| Standing {
        limit,
        remaining: limit.saturating_sub(held),
        reset_ms: SLOT_RETRY_MS,
    });
    // a / b < c / d is a * d < c * b: no rounding.
    let part = |a: &Standing, b: &Standing| {
        let (ours, theirs) =
            (u128::from(a.remaining) * u128::from(b.limit), u128::from(b.remaining) * u128::from(a.limit));
        ours.cmp(&theirs).then(b.reset_ms.cmp(&a.reset_ms))
    };
    windows.chain(slots).min_by(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pairs: &[(&str, u64)]) -> Limits {
        let mut limits = Limits::default();
        pairs.iter().for_each(|(name, limit)| assert!(limits.set(name, *limit)));
        limits
    }

    const NOW: u64 = 1_800_000_000_250;

    /// Kills: the first violated dimension instead of the one that opens last; a refusal without its kind.
    #[test]
    fn a_refusal_names_the_dimension_that_opens_last() {
        let set = limits(&[("rps", 5), ("rpm", 10), ("cu_per_day", 1_000)]);
        let used = [5, 10, 0, 0, 0, 0, 0];
        let cost = Cost { requests: 1, units: 26 };
        let refusal = judge(&set, &used, 0, cost, true, NOW).expect_err("full");
        assert_eq!(refusal.retry_in_ms, 59_750);
        assert_eq!(refusal.standing, Standing { limit: 10, remaining: 0, reset_ms: 59_750 });
        assert!(refusal.requests && !refusal.units && !refusal.concurrency);
        let used = [0, 0, 0, 0, 0, 0, 980];
        let refusal = judge(&set, &used, 0, cost, true, NOW).expect_err("full");
        assert_eq!((refusal.units, refusal.standing.remaining), (true, 20));
    }

    /// Kills: one more than the limit, one less.
    #[test]
    fn the_last_one_is_admitted_and_no_more() {
        let set = limits(&[("rps", 5)]);
        let ask = |used: u64, n: u32| judge(&set, &[used, 0, 0, 0, 0, 0, 0], 9, Cost::requests(n), true, NOW);
        assert!(ask(4, 1).is_ok() && ask(0, 5).is_ok());
        assert!(ask(5, 1).is_err() && ask(4, 2).is_err());
    }

    #[test]
    fn slots_are_a_dimension() {
        let set = limits(&[("concurrency", 2)]);
        let none = [0; 7];
        assert!(judge(&set, &none, 1, Cost::requests(1), true, NOW).is_ok());
        let refusal = judge(&set, &none, 2, Cost::requests(1), true, NOW).expect_err("full");
        assert!(refusal.concurrency && refusal.retry_in_ms == 1_000);
        assert!(
            judge(&set, &none, 2, Cost::requests(1), false, NOW).is_ok(),
            "a call on a socket needs none"
        );
    }

    /// Kills: the smallest number instead of the smallest part.
    #[test]
    fn the_tightest_is_the_one_with_the_smallest_part_left() {
        let set = limits(&[("rps", 10), ("rpd", 1_000)]);
        let tightest = standing(&set, &[5, 0, 0, 800, 0, 0, 0], 0, NOW).expect("limited");
        assert_eq!((tightest.limit, tightest.remaining), (1_000, 200));
        assert_eq!(standing(&Limits::default(), &[0; 7], 0, NOW), None);
        let even = standing(&set, &[5, 0, 0, 500, 0, 0, 0], 0, NOW).expect("limited");
        assert_eq!(even.limit, 1_000, "of two alike the one that lasts longer");
    }
}
