//! All ceilings of one account in one place: may one more be dispatched, when again, and what its outcome teaches.
//! Static ceilings are exact and all or nothing over every limit; without any, a ceiling may be learned. Decides
//! nothing about parking, health or who else could serve.

mod day;
mod sharing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aimd::{Learned as Record, Mode, Params};

use crate::fixed::Fixed;
use crate::learned::Learned;
use crate::several::Ceiling as _;
use crate::steady::Steady;
use crate::{
    CeilingKind, Cost, Door, Evidence, Holder, Leased, Limit, LocalMs, Lowered, Overflow, Sender, Ticket,
    Unit, Usage24h, several,
};

/// One account's ceilings and use. Shared by all workers; every method takes `&self`.
///
/// `now` is one axis for all calls: the store's milliseconds as this process estimates them, carried on by its
/// monotonic clock.
#[derive(Debug)]
#[repr(C)]
pub struct Gate {
    usage: Usage24h,
    /// False while no ceiling is known: then nothing below is looked at.
    gated: AtomicBool,
    /// False while `overflow` is idle, so that successes need not lock it.
    overflowed: AtomicBool,
    ceilings: Ceilings,
    overflow: Mutex<Overflow>,
}

#[derive(Debug)]
enum Ceilings {
    None,
    Fixed(Vec<Fixed>),
    Leased(Vec<Leased>),
    Learned(Box<Learned>),
    Steady(Box<Steady>),
}

/// The answer to [`Gate::try_take`].
#[derive(Debug)]
pub enum Take {
    /// Go ahead, and hand the ticket to [`Gate::sent`].
    Granted(Ticket),
    /// At a ceiling.
    Dry {
        /// The first millisecond at which it fits, as far as is known now.
        again_at: u64,
        /// Which kind of ceiling.
        kind: CeilingKind,
    },
    /// No token here, and not known to be dry: tokens are being asked for. A gate that grants at once, like one
    /// over the memory store, never answers this.
    Doubt,
    /// More than this account ever gets in one window.
    TooBig {
        /// The most requests that fit at once.
        largest: u32,
    },
}

/// One ceiling, for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CeilingView {
    /// Its window in milliseconds.
    pub window_ms: u64,
    /// What it counts.
    pub unit: Unit,
    /// How much per window, as grown now.
    pub limit: u64,
    /// Configured or learned.
    pub kind: CeilingKind,
    /// What is used: of the running window for a static one, of the trailing one for a learned one.
    pub used: u64,
}

impl Gate {
    /// A gate over `limits`; only if there are none, one that learns, if `learning` says how.
    #[must_use]
    pub fn new(limits: Vec<Limit>, learning: Option<Params>) -> Self {
        Self::restored(limits, learning, None)
    }

    /// As [`Gate::new`], going on with what was learned before. An estimate in `record` keeps its windows, whatever
    /// `learning` says now.
    #[must_use]
    pub fn restored(limits: Vec<Limit>, learning: Option<Params>, record: Option<Record>) -> Self {
        let ceilings = match learning {
            _ if !limits.is_empty() => Ceilings::Fixed(limits.into_iter().map(Fixed::new).collect()),
            Some(params) => match params.mode {
                Mode::Aimd => {
                    let record = record.map(|record| record.into_aimd(&params));
                    let record = record.unwrap_or_else(|| aimd::Record::new(&params));
                    Ceilings::Learned(Box::new(Learned::new(params, record)))
                }
                Mode::Steady => {
                    let level = record.and_then(|record| record.into_steady(&params));
                    Ceilings::Steady(Box::new(Steady::new(params, level)))
                }
            },
            None => Ceilings::None,
        };
        Self::over(ceilings)
    }

    /// A gate over `limits`, at least one, that `holder` shares with other processes through a store: tokens come by
    /// [`Gate::leases`]. `assumed` processes are reckoned with if the store is lost before it told a number.
    #[must_use]
    pub fn leased(limits: Vec<Limit>, holder: Holder, assumed: u32) -> Self {
        let lease = |limit| Leased::new(limit, holder, assumed);
        Self::over(Ceilings::Leased(limits.into_iter().map(lease).collect()))
    }

    /// What is leased from a store; nothing if this gate shares with nobody.
    #[must_use]
    pub fn leases(&self) -> &[Leased] {
        match &self.ceilings {
            Ceilings::Leased(leased) => leased,
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Learned(_) | Ceilings::Steady(_) => &[],
        }
    }

    fn over(ceilings: Ceilings) -> Self {
        let gate = Self {
            usage: Usage24h::default(),
            gated: AtomicBool::new(false),
            overflowed: AtomicBool::new(false),
            ceilings,
            overflow: Mutex::default(),
        };
        gate.note_gated();
        gate
    }

    /// True if there is no ceiling: a dispatch needs no ticket then, only [`Gate::charge`].
    #[must_use]
    pub fn open(&self) -> bool {
        !self.gated.load(Ordering::Relaxed)
    }

    /// Takes what `cost` needs under every ceiling, or nothing.
    pub fn try_take(&self, cost: Cost, now: u64) -> Take {
        self.try_take_behind(Cost::requests(0), cost, now)
    }

    /// As [`Gate::try_take`], for somebody who stands behind others that wait: what these need, `ahead` all together, is
    /// left to them.
    pub fn try_take_behind(&self, ahead: Cost, cost: Cost, now: u64) -> Take {
        match &self.ceilings {
            Ceilings::None => Take::Granted(Ticket::free(cost)),
            Ceilings::Fixed(fixed) => several::take(fixed, cost, ahead, now),
            Ceilings::Leased(leased) => several::take(leased, cost, ahead, now),
            Ceilings::Learned(_) | Ceilings::Steady(_) if self.open() => Take::Granted(Ticket::free(cost)),
            Ceilings::Learned(learned) => learned.take(cost, ahead, now),
            Ceilings::Steady(steady) => steady.take(cost, ahead, now),
        }
    }

    /// Gives back a ticket that will not be sent; its tokens are there again for others if their window runs.
    pub fn give_back(&self, ticket: Ticket) {
        match &self.ceilings {
            Ceilings::Fixed(fixed) => several::put_back(fixed, &ticket),
            Ceilings::Leased(leased) => several::put_back(leased, &ticket),
            Ceilings::None | Ceilings::Learned(_) | Ceilings::Steady(_) => {}
        }
        drop(ticket);
    }

    /// To be called just before the first byte is written: counts the dispatch and returns true. False if the
    /// ticket's window has ended meanwhile: nothing is counted, and another ticket must be taken.
    #[must_use = "a ticket that has ended must not be sent"]
    pub fn sent(&self, ticket: Ticket, now: u64) -> bool {
        let Ticket { cost, ends, outstanding, windows: _ } = ticket;
        if LocalMs(now) >= ends {
            return false;
        }
        self.usage.add(cost.requests, now);
        match &self.ceilings {
            Ceilings::Learned(learned) => learned.count(cost.requests, now),
            Ceilings::Steady(steady) => steady.count(cost.requests, now),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => {}
        }
        // Only now: the room it held is freed after the use that replaces it was counted.
        drop(outstanding);
        true
    }

    /// Counts a dispatch that took no ticket: of an open gate, a probe, an overflow, a socket's own call. It takes
    /// what tokens there are, and waits for none.
    pub fn charge(&self, cost: Cost, sender: Sender, now: u64) {
        self.usage.add(cost.requests, now);
        match &self.ceilings {
            Ceilings::None => {}
            Ceilings::Fixed(fixed) => fixed.iter().for_each(|f| f.charge(cost.of(f.limit().unit), now)),
            Ceilings::Leased(leased) => {
                leased.iter().for_each(|l| l.charge(cost.of(l.limit().unit), now));
            }
            Ceilings::Learned(learned) => {
                learned.count(cost.requests, now);
                if sender == Sender::Probe {
                    learned.note_probes(cost.requests, now);
                }
            }
            Ceilings::Steady(steady) => steady.count(cost.requests, now),
        }
    }

    /// A request sent at `sent_at` was served: any success of the account, its probes included.
    pub fn served(&self, sent_at: u64, now: u64) {
        match &self.ceilings {
            Ceilings::Learned(learned) => learned.served(sent_at, now),
            Ceilings::Steady(steady) => steady.served(sent_at, now),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => {}
        }
        if self.overflowed.load(Ordering::Relaxed) {
            self.with_overflow(Overflow::reopen);
        }
    }

    /// The probe that ends a park was served, as `evidence` says. Returns how that lowers a learned ceiling: an account
    /// that refused for long is measured by what it granted.
    pub fn back(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        self.served(evidence.sent_at, now);
        let Ceilings::Steady(steady) = &self.ceilings else { return None };
        steady.back(evidence, now)
    }

    /// A rate limit was hit. Returns how that lowers a learned ceiling, if it does.
    pub fn refused(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        if evidence.overflow {
            self.with_overflow(|overflow| overflow.refused(now));
        }
        let lowered = match &self.ceilings {
            Ceilings::Learned(learned) => learned.refused(evidence, now),
            Ceilings::Steady(steady) => steady.refused(evidence, now),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => None,
        };
        self.note_gated();
        lowered
    }

    /// When `cost` fits, if nothing else is dispatched until then: `now` if it fits at once, `None` if never.
    #[must_use]
    pub fn when_again(&self, cost: Cost, now: u64) -> Option<u64> {
        match &self.ceilings {
            Ceilings::None => Some(now),
            Ceilings::Fixed(fixed) => several::fits(fixed, cost).then(|| several::when(fixed, cost, now)),
            Ceilings::Leased(leased) => several::fits(leased, cost).then(|| several::when(leased, cost, now)),
            Ceilings::Learned(learned) => {
                (u64::from(cost.requests) <= learned.largest(now)).then(|| learned.when(cost.requests, now))
            }
            Ceilings::Steady(steady) => {
                (u64::from(cost.requests) <= steady.largest()).then(|| steady.when(cost.requests, now))
            }
        }
    }

    /// How many requests of `units` compute units each fit now: the size of the part to cut off a batch.
    #[must_use]
    pub fn room(&self, units: u32, now: u64) -> u64 {
        match &self.ceilings {
            Ceilings::None => u64::MAX,
            Ceilings::Fixed(fixed) => fixed
                .iter()
                .map(|f| several::parts(f.left(now), units, f.limit().unit))
                .min()
                .unwrap_or(u64::MAX),
            Ceilings::Leased(leased) => leased
                .iter()
                .map(|l| several::parts(l.left(now), units, l.limit().unit))
                .min()
                .unwrap_or(u64::MAX),
            Ceilings::Learned(learned) => learned.left(now),
            Ceilings::Steady(steady) => steady.left(now),
        }
    }

    /// Every ceiling in force, as it is now.
    #[must_use]
    pub fn snapshot(&self, now: u64) -> Vec<CeilingView> {
        match &self.ceilings {
            Ceilings::None => Vec::new(),
            Ceilings::Fixed(fixed) => fixed.iter().map(|f| f.view(now)).collect(),
            Ceilings::Leased(leased) => leased.iter().map(|l| l.view(now)).collect(),
            Ceilings::Learned(learned) => learned.views(now),
            Ceilings::Steady(steady) => steady.view(now).into_iter().collect(),
        }
    }

    /// What a request above a learned ceiling would find.
    #[must_use]
    pub fn overflow(&self, now: u64) -> Door {
        self.overflow_state().door(now)
    }

    /// Sends one above the ceiling, if none is under way and the last one was not refused lately. Its outcome must
    /// be told: [`Gate::refused`], or [`Gate::overflow_ended`].
    pub fn enter_overflow(&self, now: u64) -> bool {
        self.with_overflow(|overflow| overflow.enter(now))
    }

    /// The overflow under way ended in anything but a refusal. A success is told to [`Gate::served`] as well.
    pub fn overflow_ended(&self) {
        self.with_overflow(Overflow::ended);
    }

    /// A level is kept for this account.
    #[must_use]
    pub fn keeps_level(&self) -> bool {
        matches!(&self.ceilings, Ceilings::Steady(_)) && !self.open()
    }

    /// An answer says that nothing is left of the account until `until`: where a level is kept, it is believed.
    pub fn close(&self, until: u64, now: u64) {
        if let Ceilings::Steady(steady) = &self.ceilings {
            steady.close(until, now);
        }
    }

    fn note_gated(&self) {
        let gated = match &self.ceilings {
            Ceilings::None => false,
            Ceilings::Fixed(_) | Ceilings::Leased(_) => true,
            Ceilings::Learned(learned) => learned.is_gated(),
            Ceilings::Steady(steady) => steady.is_gated(),
        };
        self.gated.store(gated, Ordering::Relaxed);
    }

    fn with_overflow<T>(&self, change: impl FnOnce(&mut Overflow) -> T) -> T {
        let mut overflow = self.overflow_state();
        let outcome = change(&mut overflow);
        self.overflowed.store(!overflow.is_idle(), Ordering::Relaxed);
        outcome
    }

    fn overflow_state(&self) -> MutexGuard<'_, Overflow> {
        self.overflow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
