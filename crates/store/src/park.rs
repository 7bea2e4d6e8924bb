//! Something that can be parked: its record, changed in one place, and the instant that a request reads. Where the
//! record is shared, what was changed here is kept until the store has it: the same steps are taken again on whatever
//! others wrote meanwhile.

use recovery::{Hit, Policy, Probe, Record};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// More steps than these are not kept for the store: the oldest go first.
const MOST_PENDING: usize = 64;

/// A record of parking and the rules it follows. `Relaxed` reads are enough: a request that misses a park by a
/// moment is refused by the provider.
#[derive(Debug)]
pub struct Park {
    /// The last instant at which it is parked, in Unix milliseconds; 0: not parked.
    through: AtomicU64,
    /// Boxed: a request reads only whether it is parked.
    rare: Box<Rare>,
}

#[derive(Debug)]
struct Rare {
    policy: Policy,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    record: Record,
    /// Steps taken here that the store does not have; `None` where nothing is shared.
    pending: Option<Vec<Step>>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Hit { hit: Hit, jitter: f64 },
    Probed { outcome: Probe, now: u64, jitter: f64 },
}

impl Step {
    fn on(&self, record: &Record, policy: &Policy) -> Record {
        match *self {
            Step::Hit { hit, jitter } => recovery::hit(record, policy, &hit, jitter),
            Step::Probed { outcome, now, jitter } => recovery::probed(record, policy, outcome, now, jitter),
        }
    }
}

/// What should be in the store, and how many steps it contains that the store does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub record: Record,
    steps: usize,
}

/// What a hit or a probe changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is parked from now on.
    Parked,
    /// It was parked before and still is.
    StillParked,
    /// It is back.
    Back,
    /// It was not parked and is not.
    Free,
}

impl Park {
    /// Goes on from `record`; the default one is not parked.
    pub fn new(policy: Policy, record: Record) -> Park {
        let through = AtomicU64::new(recovery::parked_through(&record));
        Park { through, rare: Box::new(Rare { policy, kept: Mutex::new(Kept { record, pending: None }) }) }
    }

    /// From now on its record is shared with other processes: steps are kept until the store has them.
    pub fn share(&self) {
        self.kept().pending.get_or_insert_default();
    }

    /// The rules it follows.
    pub fn policy(&self) -> &Policy {
        &self.rare.policy
    }

    /// Whether it is kept out of selection at `now` (Unix milliseconds).
    #[inline]
    pub fn is_parked(&self, now: u64) -> bool {
        now <= self.through.load(Relaxed)
    }

    /// Whether it is parked, or was and is not back yet.
    pub fn in_episode(&self) -> bool {
        self.through.load(Relaxed) != 0
    }

    /// A copy of its record.
    pub fn record(&self) -> Record {
        self.kept().record
    }

    /// When a probe is due (Unix milliseconds); `None`: not parked.
    pub fn probe_due(&self, now: u64) -> Option<u64> {
        if !self.in_episode() {
            return None;
        }
        recovery::probe_due(&self.record(), self.policy(), now)
    }

    /// The provider refused; `jitter` is chance in 0..=1.
    pub fn hit(&self, hit: &Hit, jitter: f64) -> Change {
        self.step(Step::Hit { hit: *hit, jitter })
    }

    /// A probe ended at `now` (Unix milliseconds).
    pub fn probed(&self, outcome: Probe, now: u64, jitter: f64) -> Change {
        self.step(Step::Probed { outcome, now, jitter })
    }

    /// What the store should have, when it has `stored` (`None`: nothing): that, with the steps taken here. A store
    /// that lost the record is given ours.
    pub fn propose(&self, stored: Option<&Record>) -> Proposal {
        let kept = self.kept();
        match (stored, &kept.pending) {
            (Some(stored), Some(pending)) => {
                let record = pending.iter().fold(*stored, |record, step| step.on(&record, self.policy()));
                Proposal { record, steps: pending.len() }
            }
            (None, pending) => Proposal { record: kept.record, steps: pending.as_ref().map_or(0, Vec::len) },
            (Some(stored), None) => Proposal { record: *stored, steps: 0 },
        }
    }

    /// The store has `proposal`: it is our record from now on, with the steps taken since.
    pub fn settle(&self, proposal: &Proposal) -> Change {
        let mut kept = self.kept();
        let pending = kept.pending.get_or_insert_default();
        pending.drain(..proposal.steps.min(pending.len()));
        let record = pending.iter().fold(proposal.record, |record, step| step.on(&record, self.policy()));
        self.replace(&mut kept, record)
    }

    /// Whether steps were taken here that the store does not have.
    pub fn has_news(&self) -> bool {
        self.kept().pending.as_ref().is_some_and(|pending| !pending.is_empty())
    }

    fn step(&self, step: Step) -> Change {
        let mut kept = self.kept();
        let record = step.on(&kept.record, self.policy());
        if record != kept.record
            && let Some(pending) = &mut kept.pending
        {
            if pending.len() == MOST_PENDING {
                pending.remove(0);
            }
            pending.push(step);
        }
        self.replace(&mut kept, record)
    }

    fn replace(&self, kept: &mut Kept, record: Record) -> Change {
        let before = kept.record.in_episode();
        kept.record = record;
        self.through.store(recovery::parked_through(&record), Relaxed);
        match (before, record.in_episode()) {
            (false, true) => Change::Parked,
            (true, true) => Change::StillParked,
            (true, false) => Change::Back,
            (false, false) => Change::Free,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.rare.kept.lock().expect("no holder of this lock can panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recovery::Kind;

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn a_hit_parks_and_a_clean_probe_brings_back() {
        let park = Park::new(Policy::default(), Record::default());
        assert!(!park.is_parked(NOW) && park.probe_due(NOW).is_none());
        let hit = Hit { now: NOW, hint: None, kind: Kind::Burst, window_ms: 1_000, gap_ms: 0 };
        assert_eq!(park.hit(&hit, 0.5), Change::Parked);
        assert_eq!(park.hit(&hit, 0.5), Change::StillParked);
        let due = park.probe_due(NOW).expect("parked");
        assert!(park.is_parked(due), "kills: letting requests through before the probe");
        assert_eq!(park.probed(Probe::Clean, due, 0.5), Change::Back);
        assert!(!park.is_parked(due));
        assert_eq!(park.probed(Probe::Clean, due, 0.5), Change::Free);
    }

    fn burst(now: u64) -> Hit {
        Hit { now, hint: None, kind: Kind::Burst, window_ms: 1_000, gap_ms: 0 }
    }

    fn shared() -> Park {
        let park = Park::new(Policy::default(), Record::default());
        park.share();
        park
    }

    /// Kills: writing our own record over what another process wrote.
    #[test]
    fn two_replicas_that_saw_one_episode_escalate_once() {
        let (a, b) = (shared(), shared());
        a.hit(&burst(NOW), 0.5);
        b.hit(&burst(NOW + 5), 0.5);
        let first = a.propose(None);
        a.settle(&first);
        let second = b.propose(Some(&first.record));
        assert_eq!(second.record, first.record, "the second hit says nothing new");
        b.settle(&second);
        assert_eq!(a.record(), b.record());
    }

    #[test]
    fn a_step_taken_while_the_store_was_asked_is_kept() {
        let park = shared();
        let asked = park.propose(None);
        park.hit(&burst(NOW), 0.5);
        assert_eq!(park.settle(&asked), Change::StillParked, "kills: forgetting it");
        assert!(park.is_parked(NOW + 1));
        let next = park.propose(Some(&asked.record));
        assert_eq!(next.record, park.record());
        park.settle(&next);
        // Others ended it: nothing of ours is left to take again.
        let back = Record { returned_at: NOW + 900, ..Record::default() };
        assert_eq!(park.settle(&park.propose(Some(&back))), Change::Back);
        assert!(!park.is_parked(NOW + 1));
    }

    #[test]
    fn a_store_that_forgot_is_told() {
        let park = shared();
        park.hit(&burst(NOW), 0.5);
        park.settle(&park.propose(None));
        let record = park.record();
        assert_eq!(park.propose(None).record, record, "kills: taking an empty store for an end of the park");
    }
}
