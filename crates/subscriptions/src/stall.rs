//! Whether the head of a socket stands still while the chain goes on. A chain that halts makes nobody stand still.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::ids::EndpointId;

/// Another endpoint must have come this much further.
const FURTHER: u64 = 2;
/// The rhythm assumed before one is seen.
const RHYTHM: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

/// The rhythm of a socket's head, and what others did since it moved.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    head: Option<u64>,
    moved: Option<Instant>,
    rhythm: Option<Duration>,
    /// What each other endpoint had when it was first heard of after the head moved.
    others: BTreeMap<EndpointId, u64>,
    /// When it is certain that the head stands still.
    certain: Option<Instant>,
}

impl Pace {
    /// The socket told a head.
    pub(crate) fn moved(&mut self, number: u64, now: Instant) {
        if let Some(before) = self.moved {
            let took = now.saturating_duration_since(before);
            self.rhythm = Some(self.rhythm.map_or(took, |rhythm| (rhythm * 3 + took) / 4));
        }
        self.moved = Some(now);
        self.others.clear();
        self.certain = None;
        self.head = Some(number);
    }

    /// Another endpoint has this block. The time at which, without a head, this one stands still.
    ///
    /// A node may lag and a reading of another be old, so being behind is not enough: the head must not move within
    /// twice its rhythm, or within a second if the other comes on by two while we watch.
    pub(crate) fn other(&mut self, endpoint: EndpointId, number: u64, now: Instant) -> Option<Instant> {
        let first = *self.others.entry(endpoint).or_insert(number);
        let behind = self.head.is_none_or(|head| number >= head + FURTHER);
        if !behind {
            return None;
        }
        let patience = if number >= first + FURTHER {
            SHORTEST
        } else if self.head.is_some() {
            (self.rhythm.unwrap_or(RHYTHM) * 2).clamp(SHORTEST, LONGEST)
        } else {
            return None;
        };
        let certain = self.certain.map_or(now + patience, |certain| certain.min(now + patience));
        self.certain = Some(certain);
        self.certain
    }

    pub(crate) fn stands_still(&self, now: Instant) -> bool {
        self.certain.is_some_and(|certain| certain <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: EndpointId = EndpointId(2);

    /// Steps at seconds after the start: `Ok` our head, `Err` another's. Whether it stands still at `end`.
    fn check(steps: &[(u64, Result<u64, u64>)], end: u64, expected: bool) {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut pace = Pace::default();
        for (seconds, step) in steps {
            match step {
                Ok(head) => pace.moved(*head, at(*seconds)),
                Err(other) => drop(pace.other(OTHER, *other, at(*seconds))),
            }
        }
        assert_eq!(pace.stands_still(at(end)), expected, "{steps:?} at {end}");
    }

    // Kills: hopping on a halted chain, on a lag, on an old reading; and never leaving a node that stands still.
    #[test]
    fn only_a_head_that_others_leave_behind_stands_still() {
        check(&[(0, Ok(100)), (1, Err(100)), (2, Err(101))], 99, false);
        check(&[(0, Ok(100)), (1, Err(100)), (2, Err(102))], 2, false);
        check(&[(0, Ok(100)), (1, Err(100)), (2, Err(102))], 3, true);
        check(&[(0, Ok(100)), (1, Err(102))], 2, false);
        check(&[(0, Ok(100)), (1, Err(102))], 3, true);
        check(&[(0, Ok(90)), (10, Ok(100)), (11, Err(102))], 30, false);
        check(&[(0, Ok(90)), (10, Ok(100)), (11, Err(102))], 31, true);
        check(&[(0, Ok(100)), (1, Err(105)), (2, Ok(101)), (3, Err(106)), (4, Ok(102))], 99, false);
        check(&[(0, Err(100)), (1, Err(101))], 99, false);
        check(&[(0, Err(100)), (1, Err(102))], 1, false);
        check(&[(0, Err(100)), (1, Err(102))], 2, true);
    }
}
