//! Something that can be parked: its record, changed in one place, and the instant that a request reads.

use recovery::{Hit, Policy, Probe, Record};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A record of parking and the rules it follows. `Relaxed` reads are enough: a request that misses a park by a
/// moment is refused by the provider.
#[derive(Debug)]
pub struct Park {
    policy: Policy,
    record: Mutex<Record>,
    /// The last instant at which it is parked, in Unix milliseconds; 0: not parked.
    through: AtomicU64,
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
        Park { policy, record: Mutex::new(record), through }
    }

    /// The rules it follows.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Whether it is kept out of selection at `now` (Unix milliseconds).
    #[inline]
    pub fn is_parked(&self, now: u64) -> bool {
        now <= self.through.load(Relaxed)
    }

    /// A copy of its record.
    pub fn record(&self) -> Record {
        *self.record.lock().expect("no holder of this lock can panic")
    }

    /// When a probe is due (Unix milliseconds); `None`: not parked.
    pub fn probe_due(&self, now: u64) -> Option<u64> {
        if self.through.load(Relaxed) == 0 {
            return None;
        }
        recovery::probe_due(&self.record(), &self.policy, now)
    }

    /// The provider refused; `jitter` is chance in 0..=1.
    pub fn hit(&self, hit: &Hit, jitter: f64) -> Change {
        self.change(|record, policy| recovery::hit(record, policy, hit, jitter))
    }

    /// A probe ended at `now` (Unix milliseconds).
    pub fn probed(&self, outcome: Probe, now: u64, jitter: f64) -> Change {
        self.change(|record, policy| recovery::probed(record, policy, outcome, now, jitter))
    }

    fn change(&self, step: impl FnOnce(&Record, &Policy) -> Record) -> Change {
        let mut record = self.record.lock().expect("no holder of this lock can panic");
        let before = record.in_episode();
        *record = step(&record, &self.policy);
        self.through.store(recovery::parked_through(&record), Relaxed);
        match (before, record.in_episode()) {
            (false, true) => Change::Parked,
            (true, true) => Change::StillParked,
            (true, false) => Change::Back,
            (false, false) => Change::Free,
        }
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
        let hit = Hit { now: NOW, hint: None, kind: Kind::Burst, window_ms: 1_000 };
        assert_eq!(park.hit(&hit, 0.5), Change::Parked);
        assert_eq!(park.hit(&hit, 0.5), Change::StillParked);
        let due = park.probe_due(NOW).expect("parked");
        assert!(park.is_parked(due), "kills: letting requests through before the probe");
        assert_eq!(park.probed(Probe::Clean, due, 0.5), Change::Back);
        assert!(!park.is_parked(due));
        assert_eq!(park.probed(Probe::Clean, due, 0.5), Change::Free);
    }
}
