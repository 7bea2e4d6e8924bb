//! One hidden limit against one law, request by request, on one or several replicas that share what they learn through a
//! store which delays and loses what they say. A second endpoint takes what is turned away, so nothing waits.

mod shared;
mod talk;

use aimd::{Mode, Params};
use ledger::Gate;

use super::account::{Account, Refusal};
use super::events::Events;
use super::hidden::{Arrivals, Demand, Hidden, Provider};
use super::rng::Rng;
use super::tally::Tally;
use shared::Shared;
use talk::{Said, Told};

/// Runs begin at a Monday's midnight.
const START_US: u64 = 1_699_833_600_000_000;

/// A run.
#[derive(Debug, Clone)]
pub struct Contest {
    /// What the provider does.
    pub hidden: Hidden,
    /// What clients do.
    pub demand: Demand,
    /// So many windows with demand, then as many without, and so on.
    pub idle: Option<f64>,
    /// A round trip in seconds, ± 25 %.
    pub round_trip_s: f64,
    /// The law.
    pub mode: Mode,
    /// The window is configured.
    pub window_known: bool,
    /// How many replicas.
    pub replicas: usize,
    /// What replicas read of each other is so old, in seconds.
    pub late_s: f64,
    /// Seconds before anything is counted, and seconds counted.
    pub seconds: (f64, f64),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// Served ÷ what a greedy client would be granted.
    pub used: f64,
    /// Refused ÷ sent.
    pub refused: f64,
    /// The same in the worst minute.
    pub worst_minute: f64,
    /// Windows from the step until it was followed; infinite if it was not.
    pub followed: f64,
}

impl Score {
    /// What is asked of a law: at least 92 % used, at most 0.2 % refused.
    #[must_use]
    pub fn reaches_both(&self) -> bool {
        self.used >= 0.92 && self.refused <= 0.002
    }
}

#[derive(Clone)]
enum Event {
    Arrives,
    Reaches { replica: usize, sent_at: u64, probe: bool, back_us: u64 },
    Answers { replica: usize, sent_at: u64, probe: bool, refused: bool },
    ProbeDue { replica: usize },
    Syncs { replica: usize, regular: bool },
    Says { replica: usize, said: Said },
    Hears { replica: usize, told: Told },
}

struct Replica {
    account: Account,
    /// A probe of its own is under way.
    probing: bool,
    /// When it told and asked last; whether it is to do so again at once.
    synced_us: u64,
    stirred: bool,
    /// When it last wrote what it learned.
    written: u64,
}

/// An answer as one replica heard it, for traces and plots.
#[derive(Debug)]
pub struct Heard<'a> {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The gate's time.
    pub now: u64,
    /// Which replica.
    pub replica: usize,
    /// It was sent at the end of a park.
    pub probe: bool,
    /// It was refused.
    pub refused: bool,
    /// The replica's gate, after it.
    pub gate: &'a Gate,
}

struct Run<'a> {
    plan: &'a Contest,
    watch: &'a mut dyn FnMut(&Heard<'_>),
    rng: Rng,
    events: Events<Event>,
    arrivals: Arrivals,
    provider: Provider,
    greedy: Provider,
    replicas: Vec<Replica>,
    shared: Shared,
    tally: Tally,
}

impl Contest {
    /// Runs it with `seed`.
    #[must_use]
    pub fn run(&self, seed: u64) -> Score {
        self.run_watched(seed, &mut |_| ())
    }

    /// As [`Contest::run`], and shows each answer to `watch`.
    pub fn run_watched(&self, seed: u64, watch: &mut dyn FnMut(&Heard<'_>)) -> Score {
        let window_ms = (self.hidden.window_s * 1000.0) as u64;
        let params = Params {
            mode: self.mode,
            window_ms: self.window_known.then_some(window_ms),
            ..Params::default()
        };
        let replica = |_| Replica {
            account: Account::learning(Gate::new(Vec::new(), Some(params)), self.mode),
            probing: false,
            synced_us: 0,
            stirred: false,
            written: 0,
        };
        let greedy = Hidden { counts_refused: false, ..self.hidden };
        let mut run = Run {
            plan: self,
            watch,
            rng: Rng::new(seed),
            events: Events::default(),
            arrivals: Arrivals::new(self.demand, &self.hidden, self.idle),
            provider: Provider::new(&self.hidden, seed),
            greedy: Provider::new(&greedy, seed),
            replicas: (0..self.replicas).map(replica).collect(),
            shared: Shared::new(self.replicas),
            tally: Tally::new(self),
        };
        run.events.at(START_US, Event::Arrives);
        for replica in 0..self.replicas {
            if self.replicas > 1 {
                run.events.at(START_US + replica as u64 * 7_000, Event::Syncs { replica, regular: true });
            }
        }
        let end = START_US + ((self.seconds.0 + self.seconds.1) * 1e6) as u64;
        while let Some((at, event)) = run.events.next().filter(|(at, _)| *at < end) {
            run.apply(event, at);
        }
        run.tally.score()
    }
}

impl Run<'_> {
    fn apply(&mut self, event: Event, at_us: u64) {
        let now = at_us / 1000;
        match event {
            Event::Arrives => self.arrives(at_us),
            Event::Reaches { replica, sent_at, probe, back_us } => {
                let stray = self.rng.chance(self.plan.hidden.strays);
                let refused = !self.provider.serves(at_us - START_US) || stray;
                self.tally.sent(at_us - START_US, refused);
                self.events.at(back_us, Event::Answers { replica, sent_at, probe, refused });
            }
            Event::Answers { replica, sent_at, probe, refused } => {
                self.answers(replica, sent_at, probe, refused, at_us);
            }
            Event::ProbeDue { replica } => {
                let own = &self.replicas[replica];
                if !own.probing && own.account.probe_due(now).is_some_and(|due| due <= now) {
                    self.claims(replica, at_us);
                }
            }
            Event::Syncs { replica, regular } => self.syncs(replica, regular, at_us),
            Event::Says { replica, said } => self.store_hears(replica, said, at_us),
            Event::Hears { replica, told } => self.hears(replica, told, at_us),
        }
    }

    fn arrives(&mut self, at_us: u64) {
        let next = self.arrivals.after(at_us - START_US, &mut self.rng) + START_US;
        self.events.at(next, Event::Arrives);
        let half_us = (self.plan.round_trip_s * 5e5) as u64;
        if self.greedy.serves(at_us - START_US + half_us) {
            self.tally.granted(at_us - START_US);
        }
        let replica = (self.rng.even() * self.replicas.len() as f64) as usize;
        if self.replicas[replica].account.admits(at_us / 1000) {
            self.send(replica, false, at_us);
        }
    }

    fn send(&mut self, replica: usize, probe: bool, at_us: u64) {
        let trip = self.plan.round_trip_s * 1e6 * (0.75 + 0.5 * self.rng.even());
        let back_us = at_us + trip as u64;
        let reaches = Event::Reaches { replica, sent_at: at_us / 1000, probe, back_us };
        self.events.at(at_us + (trip / 2.0) as u64, reaches);
    }

    /// The probe at the end of a park, if it is still due.
    fn probes(&mut self, replica: usize, at_us: u64) {
        let (own, now) = (&mut self.replicas[replica], at_us / 1000);
        if own.account.probe_due(now).is_some_and(|due| due <= now) {
            own.probing = true;
            own.account.probe_sent(now);
            self.send(replica, true, at_us);
        } else {
            self.releases(replica, at_us);
        }
    }

    fn answers(&mut self, replica: usize, sent_at: u64, probe: bool, refused: bool, at_us: u64) {
        let now = at_us / 1000;
        let own = &mut self.replicas[replica];
        let was_due = own.account.probe_due(now);
        let refusal = refused.then_some(Refusal::Rate);
        if probe {
            own.probing = false;
            own.account.probed(sent_at, refusal, now, &mut self.rng);
        } else {
            own.account.answered(sent_at, refusal, now, &mut self.rng);
        }
        let at_s = (at_us - START_US) as f64 / 1e6;
        (self.watch)(&Heard { at_s, now, replica, probe, refused, gate: &own.account.gate });
        if probe {
            self.releases(replica, at_us);
        }
        if self.expect_probe(replica, was_due, now) && self.replicas.len() > 1 {
            self.stir(replica, at_us);
        }
    }

    /// A probe is due at another time than before. True if it is.
    fn expect_probe(&mut self, replica: usize, was_due: Option<u64>, now: u64) -> bool {
        let due = self.replicas[replica].account.probe_due(now);
        if let Some(due) = due.filter(|_| due != was_due) {
            self.events.at(due.max(now) * 1000, Event::ProbeDue { replica });
        }
        due != was_due
    }
}
