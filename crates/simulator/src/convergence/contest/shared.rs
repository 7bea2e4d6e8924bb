//! What the replicas of a contest keep in their store, as proxies do in Valkey: the record and the park of one account,
//! who may probe it, and what each told of its own use. Decides what is newer, never what is right.

use aimd::Learned;
use ledger::Footprint;
use recovery::Record;

/// What was told longer ago counts no more.
const TOLD_MS: u64 = 3_000;
/// The right to probe ends by itself.
const PROBER_MS: u64 = 15_000;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) learned: Option<Learned>,
    pub(super) park: Record,
    told: Vec<(u64, Footprint)>,
    /// Who may probe, and until when.
    prober: Option<(usize, u64)>,
}

impl Shared {
    pub(super) fn new(replicas: usize) -> Self {
        Self {
            learned: None,
            park: Record::default(),
            told: vec![(0, Footprint::default()); replicas],
            prober: None,
        }
    }

    pub(super) fn tell(&mut self, replica: usize, footprint: Footprint, now: u64) {
        self.told[replica] = (now, footprint);
    }

    /// What all but `replica` told of late, together.
    pub(super) fn others(&self, replica: usize, now: u64) -> Footprint {
        let mut all = Footprint::default();
        let told = self.told.iter().enumerate().filter(|(other, _)| *other != replica);
        for (_, (_, footprint)) in told.filter(|(_, (at, _))| now - at < TOLD_MS) {
            all.wanted += footprint.wanted;
            for (window, used) in &footprint.used {
                match all.used.iter_mut().find(|(of, _)| of == window) {
                    Some((_, sum)) => *sum += used,
                    None => all.used.push((*window, *used)),
                }
            }
        }
        all
    }

    /// Compare-and-set. True if it was written.
    pub(super) fn swap(&mut self, old: Option<&Learned>, new: &Learned) -> bool {
        let same = self.learned.as_ref() == old;
        if same {
            self.learned = Some(Learned::decode(&new.encode()).expect("what is written is read"));
        }
        same
    }

    /// True if `park` is newer.
    pub(super) fn hear_park(&mut self, park: &Record) -> bool {
        let newer = park.changed_at > self.park.changed_at;
        if newer {
            self.park = *park;
        }
        newer
    }

    /// True if `replica` may probe.
    pub(super) fn claim(&mut self, replica: usize, now: u64) -> bool {
        let free = self.prober.is_none_or(|(by, until)| by == replica || until <= now);
        if free {
            self.prober = Some((replica, now + PROBER_MS));
        }
        free
    }

    pub(super) fn release(&mut self, replica: usize) {
        self.prober = self.prober.filter(|(by, _)| *by != replica);
    }
}
