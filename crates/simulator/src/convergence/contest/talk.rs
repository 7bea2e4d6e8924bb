//! How the replicas of a contest keep in step: what each tells the store and hears of it, when, and over what way. The
//! same exchange, at the same pace, as between a proxy and Valkey; nothing is decided here.

use aimd::{Learned, News};
use ledger::Footprint;
use recovery::Record;

use super::{Event, Run};

/// Told and asked so often while the account is used, and else.
const LIVELY_US: u64 = 100_000;
const SYNC_US: u64 = 500_000;
/// Between two times lies at least this.
const BREATH_US: u64 = 20_000;
/// A message takes up to so long, and of so many one is lost.
const WAY_US: f64 = 20_000.0;
const LOST: f64 = 0.02;
/// Clean use is written this often, decisions at once.
const CLEAN_EVERY_MS: u64 = 5_000;
/// Who may not probe looks again after this.
const AFTER_A_MISS_US: u64 = 1_000_000;

/// What a replica says to the store.
#[derive(Clone)]
pub(super) enum Said {
    State { footprint: Option<Footprint>, park: Record },
    Swap { old: Option<Learned>, new: Learned },
    Claim,
    Release,
}

/// What it hears.
#[derive(Clone)]
pub(super) enum Told {
    State { learned: Option<Learned>, park: Record, others: Footprint },
    Newer(Option<Learned>),
    Changed,
    MayProbe,
}

impl Run<'_> {
    /// It is time to tell and ask.
    pub(super) fn syncs(&mut self, replica: usize, regular: bool, at_us: u64) {
        let now = at_us / 1000;
        let own = &mut self.replicas[replica];
        let every = if own.account.gate.is_lively(now) { LIVELY_US } else { SYNC_US };
        let said = Said::State { footprint: own.account.gate.footprint(now), park: own.account.parking() };
        own.synced_us = at_us;
        if regular {
            self.events.at(at_us + every, Event::Syncs { replica, regular });
        } else {
            own.stirred = false;
        }
        self.on_its_way(Event::Says { replica, said }, at_us);
    }

    /// Others should hear of it now, or it of others.
    pub(super) fn stir(&mut self, replica: usize, at_us: u64) {
        let own = &mut self.replicas[replica];
        if !own.stirred {
            own.stirred = true;
            let at_us = at_us.max(own.synced_us + BREATH_US);
            self.events.at(at_us, Event::Syncs { replica, regular: false });
        }
    }

    /// What a replica said has come to the store.
    pub(super) fn store_hears(&mut self, replica: usize, said: Said, at_us: u64) {
        let now = at_us / 1000;
        let (changed, told) = match said {
            Said::State { footprint, park } => {
                if let Some(footprint) = footprint {
                    self.shared.tell(replica, footprint, now);
                }
                let changed = self.shared.hear_park(&park);
                let (learned, park) = (self.shared.learned.clone(), self.shared.park);
                let others = self.shared.others(replica, now);
                (changed, Some(Told::State { learned, park, others }))
            }
            Said::Swap { old, new } => match self.shared.swap(old.as_ref(), &new) {
                true => (true, None),
                false => (false, Some(Told::Newer(self.shared.learned.clone()))),
            },
            Said::Claim => (false, self.shared.claim(replica, now).then_some(Told::MayProbe)),
            Said::Release => {
                self.shared.release(replica);
                (false, None)
            }
        };
        if let Some(told) = told {
            let late_us = if matches!(told, Told::MayProbe) { 0.0 } else { self.plan.late_s * 1e6 };
            self.on_its_way(Event::Hears { replica, told }, at_us + late_us as u64);
        }
        if changed {
            for replica in (0..self.replicas.len()).filter(|other| *other != replica) {
                self.on_its_way(Event::Hears { replica, told: Told::Changed }, at_us);
            }
        }
    }

    /// What the store told has come to a replica.
    pub(super) fn hears(&mut self, replica: usize, told: Told, at_us: u64) {
        let now = at_us / 1000;
        match told {
            Told::State { learned, park, others } => {
                self.replicas[replica].account.gate.beside(&others, now);
                self.reconcile(replica, learned, at_us);
                let own = &mut self.replicas[replica].account;
                let was_due = own.probe_due(now);
                own.hear_park(&park, now);
                self.expect_probe(replica, was_due, now);
            }
            Told::Newer(learned) => self.reconcile(replica, learned, at_us),
            Told::Changed => self.stir(replica, at_us),
            Told::MayProbe => self.probes(replica, at_us),
        }
    }

    /// Takes over what others learned, and writes what they lack.
    fn reconcile(&mut self, replica: usize, theirs: Option<Learned>, at_us: u64) {
        let now = at_us / 1000;
        let own = &mut self.replicas[replica];
        if let Some(theirs) = &theirs {
            own.account.gate.adopt(theirs, now);
        }
        let Some(new) = own.account.gate.export() else { return };
        let writes = match new.news(theirs.as_ref()) {
            News::None => false,
            News::Slight => now - own.written >= CLEAN_EVERY_MS,
            News::Decision => true,
        };
        if writes {
            own.written = now;
            self.on_its_way(Event::Says { replica, said: Said::Swap { old: theirs, new } }, at_us);
        }
    }

    /// A probe is due: of several replicas one may send it.
    pub(super) fn claims(&mut self, replica: usize, at_us: u64) {
        if self.replicas.len() == 1 {
            return self.probes(replica, at_us);
        }
        self.events.at(at_us + AFTER_A_MISS_US, Event::ProbeDue { replica });
        self.on_its_way(Event::Says { replica, said: Said::Claim }, at_us);
    }

    /// A probe was answered: once others can know, another may probe. Unlike what is said again, this is not lost.
    pub(super) fn releases(&mut self, replica: usize, at_us: u64) {
        if self.replicas.len() > 1 {
            let told_us = at_us + BREATH_US + 2 * WAY_US as u64;
            self.events.at(told_us, Event::Says { replica, said: Said::Release });
        }
    }

    fn on_its_way(&mut self, event: Event, at_us: u64) {
        let way = WAY_US * self.rng.even();
        if !self.rng.chance(LOST) {
            self.events.at(at_us + way as u64, event);
        }
    }
}
