//! One account as a proxy keeps it: its gate, and its parking with a probe at the end of each wait. Decides nothing
//! of its own; it only hands outcomes to the crates that do.

use std::time::Duration;

use aimd::Mode;
use ledger::{Cost, Evidence, Gate, Sender, Take};
use recovery::{Hit, Kind, Policy, Probe, Record};

use super::rng::Rng;

/// A refusal as the provider words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Rate,
    DailyQuota,
}

#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) gate: Gate,
    policy: Policy,
    parking: Record,
    window_ms: u64,
    /// Client requests refused, and of those the ones that lowered a ceiling.
    pub(crate) hits: u64,
    pub(crate) decreases: Vec<(u64, u64)>,
}

impl Account {
    pub(crate) fn new(gate: Gate, window_ms: u64) -> Self {
        let (policy, parking) = (Policy::new(None), Record::default());
        Self { gate, policy, parking, window_ms, hits: 0, decreases: Vec::new() }
    }

    /// An account that learns by the law of `mode`, whose windows decide how long it is parked.
    pub(crate) fn learning(gate: Gate, mode: Mode) -> Self {
        let policy = match mode {
            Mode::Aimd => Policy::default(),
            Mode::Steady => Policy::default().quick(),
        };
        Self { policy, ..Self::new(gate, 60_000) }
    }

    /// Its parking, to be told to others.
    pub(crate) fn parking(&self) -> Record {
        self.parking
    }

    /// What others know of its parking.
    pub(crate) fn hear_park(&mut self, theirs: &Record, now: u64) {
        if theirs.changed_at > self.parking.changed_at {
            let parked = self.parking.in_episode();
            self.parking = *theirs;
            if parked && !theirs.in_episode() {
                self.gate.rested(now);
            }
        }
    }

    /// Whether a request goes to this account at `now`.
    pub(crate) fn admits(&self, now: u64) -> bool {
        if recovery::parked(&self.parking, now) {
            return false;
        }
        match self.gate.try_take(Cost::requests(1), now) {
            Take::Granted(ticket) => self.gate.sent(ticket, now),
            Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => false,
        }
    }

    /// When its next probe is due, if it is parked.
    pub(crate) fn probe_due(&self, now: u64) -> Option<u64> {
        recovery::probe_due(&self.parking, &self.policy, now)
    }

    pub(crate) fn probe_sent(&self, now: u64) {
        self.gate.charge(Cost::requests(1), Sender::Probe, now);
    }

    /// A client's request came back.
    pub(crate) fn answered(&mut self, sent_at: u64, refused: Option<Refusal>, now: u64, rng: &mut Rng) {
        let Some(refusal) = refused else { return self.gate.served(sent_at, now) };
        self.hits += 1;
        let quota = refusal == Refusal::DailyQuota;
        let chance = rng.even();
        let evidence = Evidence { quota, chance, ..Evidence::client(sent_at) };
        if let Some(cut) = self.gate.refused(&evidence, now) {
            self.decreases.push((now, cut.to));
        }
        let (window_ms, gap_ms) =
            self.gate.level().map_or((self.window_ms, 0), |level| (level.window_ms, level.gap_ms()));
        let hit = Hit { now, hint: None, kind: kind(refusal), window_ms, gap_ms };
        self.parking = recovery::hit(&self.parking, &self.policy, &hit, chance);
    }

    /// A probe came back.
    pub(crate) fn probed(&mut self, sent_at: u64, refused: Option<Refusal>, now: u64, rng: &mut Rng) {
        let outcome = match refused {
            None => Probe::Clean,
            Some(refusal) => Probe::Limited { kind: kind(refusal), hint: None::<Duration> },
        };
        let chance = rng.even();
        let evidence = Evidence::probe(sent_at, chance);
        match refused {
            None => self.gate.back(&evidence, now),
            Some(_) => self.gate.refused(&evidence, now),
        };
        self.parking = recovery::probed(&self.parking, &self.policy, outcome, now, chance);
    }
}

fn kind(refusal: Refusal) -> Kind {
    match refusal {
        Refusal::Rate => Kind::Burst,
        Refusal::DailyQuota => Kind::Quota { daily: true },
    }
}
