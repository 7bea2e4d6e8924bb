//! What a replica refuses without asking, after it was refused. Decides for how long that is believed; a flood of
//! refused requests then costs nobody a round trip.

use crate::{Refusal, Standing};
use ledger::Cost;

/// A refusal is believed no longer: others may give back.
const LONGEST_MS: u64 = 1_000;
/// A slot is free when a request ends, which may be at once.
const SLOTS_MS: u64 = 100;

/// The last refusal. Times are of the process's own clock.
#[derive(Clone, Copy, Debug)]
pub struct Dry {
    refusal: Refusal,
    cost: Cost,
    told: u64,
    until: u64,
}

impl Dry {
    /// A request of this cost was refused; the answer arrived at `now`, so no window opens later than it says.
    #[must_use]
    pub fn new(refusal: Refusal, cost: Cost, now: u64) -> Dry {
        let longest = if refusal.requests || refusal.units { LONGEST_MS } else { SLOTS_MS };
        Dry { refusal, cost, told: now, until: now + refusal.retry_in_ms.min(longest) }
    }

    /// The refusal of a request of this cost at `now`; `None`: it might pass.
    #[must_use]
    pub fn refuses(&self, cost: Cost, slot: bool, now: u64) -> Option<Refusal> {
        let refusal = &self.refusal;
        let as_much = (refusal.requests && cost.requests >= self.cost.requests)
            || (refusal.units && cost.units >= self.cost.units)
            || (refusal.concurrency && slot);
        if !as_much || now >= self.until {
            return None;
        }
        let passed = now.saturating_sub(self.told);
        let reset_ms = refusal.standing.reset_ms.saturating_sub(passed);
        Some(Refusal {
            retry_in_ms: refusal.retry_in_ms.saturating_sub(passed),
            standing: Standing { reset_ms, ..refusal.standing },
            ..*refusal
        })
    }

    /// Whether it says nothing any more at `now`.
    #[must_use]
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(retry_in_ms: u64, requests: bool, units: bool, concurrency: bool) -> Refusal {
        let standing = Standing { limit: 5, remaining: 0, reset_ms: retry_in_ms };
        Refusal { retry_in_ms, standing, requests, units, concurrency }
    }

    /// Kills: believing it beyond the reset, or for a whole day; a Retry-After that stands still.
    #[test]
    fn a_refusal_is_believed_until_the_reset_and_a_second_at_most() {
        let one = Cost::requests(1);
        let short = Dry::new(refusal(300, true, false, false), one, 1_000);
        assert_eq!(short.refuses(one, false, 1_299).map(|refusal| refusal.retry_in_ms), Some(1));
        assert_eq!(short.refuses(one, false, 1_300), None);
        let long = Dry::new(refusal(60_000, true, false, false), one, 1_000);
        assert_eq!(long.refuses(one, false, 1_999).map(|refusal| refusal.retry_in_ms), Some(59_001));
        assert!(long.refuses(one, false, 2_000).is_none() && long.is_over(2_000));
        let slots = Dry::new(refusal(1_000, false, false, true), one, 1_000);
        assert!(slots.refuses(one, true, 1_099).is_some() && slots.refuses(one, true, 1_100).is_none());
    }

    /// Kills: a refused trace that shuts out a cheap call.
    #[test]
    fn what_needs_less_may_pass() {
        let dry = Dry::new(refusal(500, false, true, false), Cost { requests: 1, units: 90 }, 0);
        assert!(dry.refuses(Cost { requests: 9, units: 89 }, false, 10).is_none());
        assert!(dry.refuses(Cost { requests: 1, units: 90 }, false, 10).is_some());
        let slots = Dry::new(refusal(1_000, false, false, true), Cost::requests(1), 0);
        assert!(slots.refuses(Cost::requests(1), false, 10).is_none(), "a call on a socket needs no slot");
    }
}
