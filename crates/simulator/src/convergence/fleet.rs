//! Replicas that share a static limit through a store that delays, loses and reorders what they say, and from which
//! they are cut off at times. Every replica has its own clock. Counted is what is written upstream, by the store's
//! clock: never more than the limit in any aligned window.

use std::collections::BTreeMap;

use ledger::{Ask, Grant, Holder, Lease, Ledger, Limit, LocalMs, Plan, Presence, StoreMs, Taken, Trailing};

use super::events::Events;
use super::rng::Rng;

const START_MS: u64 = 1_699_833_600_000;
/// Lease calls are given up after this.
const CALL_MS: u64 = 1_000;
const HELLO_MS: u64 = 500;
const TICK_MS: u64 = 5;
const ASSUMED: u32 = 4;
const TENTHS: u64 = 10;

/// A run of several replicas.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The limit that all replicas share.
    pub limit: Limit,
    /// The limit is a learned ceiling: it holds over any ten tenths of the window, not the aligned ten only.
    pub learned: bool,
    /// How many replicas.
    pub replicas: u64,
    /// Requests per window, on average, for all replicas together.
    pub demand: f64,
    /// Windows to run.
    pub windows: u64,
    /// The shortest and the longest way of a message, in milliseconds; longer ones overtake shorter ones.
    pub delay_ms: (f64, f64),
    /// The share of messages that are lost.
    pub loss: f64,
    /// From when to when (milliseconds from the start) a replica and the store cannot talk.
    pub cuts: Vec<Cut>,
}

/// A partition of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Which replica.
    pub replica: u64,
    /// Its first millisecond.
    pub from: u64,
    /// The first millisecond after it.
    pub until: u64,
}

/// What became of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Spending {
    /// Requests written per aligned window, from the second on; for a learned ceiling per ten tenths, beginning with
    /// every tenth.
    pub windows: Vec<u32>,
    /// Requests written in all.
    pub written: u64,
    /// Asks that reached the store.
    pub calls: u64,
    /// The limit.
    pub limit: u32,
}

#[derive(Clone, Copy)]
enum Event {
    Arrives { replica: usize },
    Written { replica: usize, n: u32, ends: LocalMs },
    Ticks { replica: usize },
    Says { replica: usize, said: Said },
    Hears { replica: usize, heard: Heard, sent: LocalMs },
    GivesUp { replica: usize, id: u64 },
    SaysHello { replica: usize },
}

#[derive(Clone, Copy)]
enum Said {
    Ask { ask: Ask, sent: LocalMs },
    Hello { knows: Option<u32> },
}

#[derive(Clone, Copy)]
enum Heard {
    Grant(Grant),
    Proxies(u32),
}

struct Replica {
    lease: Lease,
    /// This replica's clock less the store's.
    skew_ms: u64,
    waiting: u32,
    awaited: Option<u64>,
    last_heard: u64,
    cut_off: bool,
}

/// The store's entry.
enum Entry {
    Aligned(Ledger),
    Trailing(Trailing),
}

struct Run<'a> {
    plan: &'a Fleet,
    rng: Rng,
    events: Events<Event>,
    replicas: Vec<Replica>,
    ledger: Entry,
    presence: Presence,
    written: BTreeMap<u64, u32>,
    calls: u64,
}

impl Fleet {
    /// Runs it with `seed`.
    #[must_use]
    pub fn run(&self, seed: u64) -> Spending {
        let mut rng = Rng::new(seed);
        let windows = self.leased();
        let replica = |i: u64| Replica {
            lease: if self.learned {
                Lease::of_tenths(windows, Holder(i), ASSUMED)
            } else {
                Lease::new(windows, Holder(i), ASSUMED)
            },
            skew_ms: rng.bits() % 1_000_000_000,
            waiting: 0,
            awaited: None,
            last_heard: START_MS,
            cut_off: false,
        };
        let replicas = (0..self.replicas).map(replica).collect();
        let trailing = || Entry::Trailing(Trailing::new(&[self.limit.window_ms]));
        let ledger = if self.learned { trailing() } else { Entry::Aligned(Ledger::new(windows)) };
        let presence = Presence::default();
        let (events, written) = (Events::default(), BTreeMap::new());
        let mut run = Run { plan: self, rng, events, replicas, ledger, presence, written, calls: 0 };
        run.start();
        let end = (START_MS + self.windows * self.limit.window_ms) * 1000;
        while let Some((at, event)) = run.events.next().filter(|(at, _)| *at < end) {
            run.apply(event, at);
        }
        let windows = self.counted(&run.written);
        let written = run.written.values().map(|n| u64::from(*n)).sum();
        Spending { windows, written, calls: run.calls, limit: self.limit.amount }
    }
}

impl Run<'_> {
    fn start(&mut self) {
        for replica in 0..self.replicas.len() {
            let at = START_MS * 1000 + replica as u64;
            self.events.at(at, Event::Arrives { replica });
            self.events.at(at, Event::Ticks { replica });
            self.events.at(at, Event::SaysHello { replica });
        }
    }

    fn apply(&mut self, event: Event, at_us: u64) {
        let now = at_us / 1000;
        match event {
            Event::Arrives { replica } => self.arrives(replica, at_us),
            Event::Written { replica, n, ends } => self.written(replica, n, ends, now),
            Event::Ticks { replica } => {
                self.events.at(at_us + TICK_MS * 1000, Event::Ticks { replica });
                self.ask(replica, at_us);
            }
            Event::Says { replica, said } => self.store_hears(replica, said, at_us),
            Event::Hears { replica, heard, sent } => self.replica_hears(replica, heard, sent, now),
            Event::GivesUp { replica, id } => {
                if self.replicas[replica].awaited == Some(id) {
                    self.replicas[replica].awaited = None;
                    self.replicas[replica].lease.unanswered();
                }
            }
            Event::SaysHello { replica } => self.says_hello(replica, at_us),
        }
    }

    fn arrives(&mut self, replica: usize, at_us: u64) {
        let rate = self.plan.demand / self.plan.replicas as f64 / (self.plan.limit.window_ms as f64 * 1000.0);
        let next = at_us + self.rng.gap(rate) as u64;
        self.events.at(next, Event::Arrives { replica });
        let r = &mut self.replicas[replica];
        match r.lease.take(1, local(at_us / 1000, r.skew_ms)) {
            Taken::Yes(spent) => {
                let written_at = at_us + (self.rng.even() * 5000.0) as u64;
                self.events.at(written_at, Event::Written { replica, n: 1, ends: spent.ends });
            }
            Taken::Doubt => r.waiting = 1,
            Taken::Dry { .. } => {}
        }
        self.ask(replica, at_us);
    }

    /// Just before the first byte: a token whose block has ended is not spent.
    fn written(&mut self, replica: usize, n: u32, ends: LocalMs, now: u64) {
        if local(now, self.replicas[replica].skew_ms) < ends {
            *self.written.entry(now / (self.plan.limit.window_ms / TENTHS)).or_default() += n;
        }
    }

    fn ask(&mut self, replica: usize, at_us: u64) {
        let r = &mut self.replicas[replica];
        let sent = local(at_us / 1000, r.skew_ms);
        let Some(ask) = r.lease.ask(r.waiting, sent) else { return };
        r.waiting = 0;
        r.awaited = Some(ask.id);
        self.events.at(at_us + CALL_MS * 1000, Event::GivesUp { replica, id: ask.id });
        self.say(replica, Said::Ask { ask, sent }, at_us);
    }

    fn says_hello(&mut self, replica: usize, at_us: u64) {
        let now = at_us / 1000;
        self.events.at(at_us + HELLO_MS * 1000, Event::SaysHello { replica });
        let r = &mut self.replicas[replica];
        if !r.cut_off && now - r.last_heard > CALL_MS {
            r.cut_off = true;
            r.awaited = None;
            r.lease.cut_off(local(now, r.skew_ms));
        }
        if r.cut_off && !self.plan.is_cut(replica, now) {
            r.cut_off = false;
            r.last_heard = now;
            r.lease.back(local(now, r.skew_ms));
        }
        if !r.cut_off && !r.lease.owes_report(local(now, r.skew_ms)) {
            let knows = r.lease.knows();
            self.say(replica, Said::Hello { knows }, at_us);
        }
    }

    fn say(&mut self, replica: usize, said: Said, at_us: u64) {
        if let Some(arrives) = self.way(replica, at_us) {
            self.events.at(arrives, Event::Says { replica, said });
        }
    }

    fn store_hears(&mut self, replica: usize, said: Said, at_us: u64) {
        let (now, holder) = (StoreMs(at_us / 1000), Holder(replica as u64));
        let (heard, sent) = match said {
            Said::Ask { ask, sent } => {
                self.calls += 1;
                self.presence.heard(holder, ask.knows, now);
                let grant = match &mut self.ledger {
                    Entry::Aligned(ledger) => ledger.grant(&ask, &self.presence, now),
                    Entry::Trailing(ledger) => {
                        let ceiling = Some(u64::from(self.plan.limit.amount));
                        ledger.grant(&ask, &[ceiling], &self.presence, now)
                    }
                };
                (Heard::Grant(grant), sent)
            }
            Said::Hello { knows } => (Heard::Proxies(self.presence.heard(holder, knows, now)), LocalMs(0)),
        };
        if let Some(arrives) = self.way(replica, at_us) {
            self.events.at(arrives, Event::Hears { replica, heard, sent });
        }
    }

    fn replica_hears(&mut self, replica: usize, heard: Heard, sent: LocalMs, now: u64) {
        let r = &mut self.replicas[replica];
        if r.cut_off {
            return;
        }
        r.last_heard = now;
        match heard {
            Heard::Grant(grant) => {
                r.awaited = r.awaited.filter(|id| *id != grant.id);
                r.lease.granted(&grant, sent, local(now, r.skew_ms));
            }
            Heard::Proxies(proxies) => r.lease.told(proxies),
        }
    }

    /// When a message said now arrives, if it does.
    fn way(&mut self, replica: usize, at_us: u64) -> Option<u64> {
        let (least, most) = self.plan.delay_ms;
        let arrives = at_us + ((least + (most - least) * self.rng.even()) * 1000.0) as u64;
        let lost = self.rng.chance(self.plan.loss)
            || self.plan.is_cut(replica, at_us / 1000)
            || self.plan.is_cut(replica, arrives / 1000);
        (!lost).then_some(arrives)
    }
}

impl Fleet {
    /// The windows that are leased: of a learned ceiling its tenths.
    fn leased(&self) -> Plan {
        if !self.learned {
            return Plan::of(&self.limit);
        }
        let amount = (self.limit.amount / TENTHS as u32).max(1);
        Plan::of(&Limit { amount, window_ms: self.limit.window_ms / TENTHS, ..self.limit })
    }

    /// What was written per window; `written` is by tenths.
    fn counted(&self, written: &BTreeMap<u64, u32>) -> Vec<u32> {
        let first = START_MS / self.limit.window_ms * TENTHS;
        let (from, until) = (first + TENTHS, first + (self.windows - 1) * TENTHS);
        let step = if self.learned { 1 } else { TENTHS as usize };
        let window = |tenth: u64| written.range(tenth..tenth + TENTHS).map(|(_, n)| *n).sum();
        (from..=until).step_by(step).map(window).collect()
    }

    fn is_cut(&self, replica: usize, now: u64) -> bool {
        let within = |cut: &Cut| (cut.from..cut.until).contains(&(now - START_MS));
        self.cuts.iter().any(|cut| cut.replica == replica as u64 && within(cut))
    }
}

fn local(now: u64, skew_ms: u64) -> LocalMs {
    LocalMs(now - START_MS + skew_ms)
}

impl Spending {
    /// The most that any aligned window saw.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.windows.iter().copied().max().unwrap_or(0)
    }

    /// Spent ÷ what the limit allows.
    #[must_use]
    pub fn used(&self) -> f64 {
        let spent: u64 = self.windows.iter().map(|n| u64::from(*n)).sum();
        spent as f64 / (u64::from(self.limit) * self.windows.len().max(1) as u64) as f64
    }

    /// Requests per lease call.
    #[must_use]
    pub fn per_call(&self) -> f64 {
        self.written as f64 / self.calls.max(1) as f64
    }
}
