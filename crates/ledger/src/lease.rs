//! The replica's side of a static limit: the block in force, the one for the coming window, and when to ask for
//! more. Decides what may be spent here without asking, cut off from the store too. It sends nothing itself: asks are
//! handed out, grants are handed in.
//!
//! Bounds hold without clock agreement. A block ends at the instant its ask was sent, plus what then remained of the
//! window, less 20 ms; one for the coming window starts at the instant the grant was received, plus what then
//! remained until its start.

mod alone;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::calendar::{Calendar, MARGIN_MS};
use crate::demand::Demand;
use crate::{Ask, Block, Grant, Holder, LocalMs, Plan, Spent, Which};
use alone::Alone;

/// A block is refilled when less than this part of it is left.
const REFILL_PART: u32 = 5;

/// The answer to [`Lease::take`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Spend them before they end.
    Yes(Spent),
    /// The window is known to be dry.
    Dry {
        /// When the next one opens.
        again: LocalMs,
    },
    /// No tokens here, and not known to be dry: ask, and wait for the grant.
    Doubt,
}

/// One static limit of one account in one replica.
#[derive(Debug)]
pub struct Lease {
    plan: Plan,
    holder: Holder,
    /// Proxies to reckon with before any number was told.
    assumed: u32,
    /// For how many windows what was spent alone stands against a ceiling.
    remembered: u32,
    block: Block,
    /// Asking is due when the block holds fewer.
    refill_below: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    coming: Option<Coming>,
    calendar: Option<Calendar>,
    dry_until: Option<LocalMs>,
    in_flight: Option<(u64, Which)>,
    asked: u64,
    proxies: Option<u32>,
    remaining: u32,
    /// The window last leased for, and all tokens that came for it.
    leased: (u64, u32),
    demand: Demand,
    /// How long an ask takes to be answered: the longest of late.
    way_ms: u64,
    /// When the connection to the store was closed.
    cut_off: Option<LocalMs>,
    alone: Option<Alone>,
}

/// A block whose window has not begun.
#[derive(Debug, Clone, Copy)]
struct Coming {
    window: u64,
    tokens: u32,
    starts: LocalMs,
    ends: LocalMs,
}

impl Lease {
    /// A lease that holds nothing. `assumed` proxies are reckoned with if the store is lost before it told a number.
    #[must_use]
    pub fn new(plan: Plan, holder: Holder, assumed: u32) -> Self {
        let (block, state) = (Block::default(), Mutex::default());
        Self { plan, holder, assumed, remembered: 1, block, refill_below: AtomicU32::new(0), state }
    }

    /// As [`Lease::new`], for a learned ceiling: `plan` is of the tenths of its window, and use stands for ten.
    #[must_use]
    pub fn of_tenths(plan: Plan, holder: Holder, assumed: u32) -> Self {
        Self { remembered: 10, ..Self::new(plan, holder, assumed) }
    }

    /// Takes `n` tokens at once, or none.
    pub fn take(&self, n: u32, now: LocalMs) -> Taken {
        self.take_leaving(n, 0, now)
    }

    /// As [`Lease::take`], but only if `leave` more are left here for others.
    pub fn take_leaving(&self, n: u32, leave: u32, now: LocalMs) -> Taken {
        if let Some(spent) = self.block.take_leaving(n, leave, now) {
            return Taken::Yes(spent);
        }
        let mut state = self.state();
        state.demand.missed(n, now);
        self.begin_coming(&mut state, now);
        if state.cut_off.is_some() {
            self.go_alone(&mut state, now);
        }
        if let Some(spent) = self.block.take_leaving(n, leave, now) {
            return Taken::Yes(spent);
        }
        match (state.cut_off, state.dry_until.filter(|until| now < *until)) {
            (Some(_), _) => {
                Taken::Dry { again: self.calendar(&state, now).next_window(self.plan.period_ms(), now) }
            }
            (None, Some(again)) => Taken::Dry { again },
            (None, None) => Taken::Doubt,
        }
    }

    /// Puts back tokens that will not be spent.
    pub fn put_back(&self, window: u32, n: u32) -> bool {
        self.block.put_back(window, n)
    }

    /// True when [`Lease::ask`] should be called: one load.
    #[must_use]
    pub fn is_low(&self, now: LocalMs) -> bool {
        self.block.left(now) < self.refill_below.load(Ordering::Relaxed)
    }

    /// The ask that is due, if one is. `waiting` tokens are wanted by requests that already wait.
    pub fn ask(&self, waiting: u32, now: LocalMs) -> Option<Ask> {
        let mut state = self.state();
        self.begin_coming(&mut state, now);
        let reports = state.alone.is_some_and(|alone| now < alone.over);
        let idle = !reports && state.demand.is_idle(self.plan.period_ms(), now);
        if state.in_flight.is_some() || state.cut_off.is_some() || idle {
            return None;
        }
        let which = if reports { Which::Running } else { self.due(&state, waiting, now)? };
        state.demand.settle(&self.block);
        let way_ms = state.way_ms;
        let demand = state.demand.measure(way_ms, now);
        state.asked += 1;
        state.in_flight = Some((state.asked, which));
        let alone = state.alone.map(|alone| (alone.window, alone.given.saturating_add(alone.before)));
        let (id, knows) = (state.asked, state.proxies);
        Some(Ask { id, holder: self.holder, which, demand, waiting, alone, knows })
    }

    /// Takes in a grant; `sent` is when its ask was sent, `received` when it arrived. One that is not awaited any
    /// more is left unused.
    pub fn granted(&self, grant: &Grant, sent: LocalMs, received: LocalMs) {
        let mut state = self.state();
        let Some((_, which)) = state.in_flight.take_if(|(id, _)| *id == grant.id) else { return };
        state.way_ms = received.since(sent).max(state.way_ms - state.way_ms.div_ceil(8));
        state.proxies = Some(grant.proxies);
        state.alone = None;
        let ends = sent.plus(grant.ends_in_ms).minus(MARGIN_MS);
        let late = received.plus(grant.ends_in_ms);
        match which {
            Which::Running => {
                state.calendar =
                    Some(Calendar { window: grant.window, early: sent.plus(grant.ends_in_ms), late });
                state.remaining = grant.remaining;
                state.dry_until = (grant.tokens == 0).then_some(late);
                self.install(&mut state, grant.window, grant.tokens, ends);
            }
            Which::Coming => {
                let starts = received.plus(grant.starts_in_ms);
                state.coming = Some(Coming { window: grant.window, tokens: grant.tokens, starts, ends });
            }
        }
    }

    /// The ask under way got no answer in time: what it may have been granted stays unused.
    pub fn unanswered(&self) {
        self.state().in_flight = None;
    }

    /// True while answers take longer than half a window, so that much of what is granted comes too late to be spent.
    #[must_use]
    pub fn is_late(&self, now: LocalMs) -> bool {
        let (state, period) = (self.state(), self.plan.period_ms());
        state.way_ms.saturating_mul(2) > period && !state.demand.is_idle(period, now)
    }

    /// The connection to the store was closed at `now`.
    pub fn cut_off(&self, now: LocalMs) {
        let mut state = self.state();
        state.in_flight = None;
        state.cut_off.get_or_insert(now);
    }

    /// The store is back. Tokens given by ourselves are void; what was spent of them is reported by the next ask.
    pub fn back(&self, now: LocalMs) {
        let mut state = self.state();
        state.cut_off = None;
        state.dry_until = None;
        if let Some(alone) = &mut state.alone {
            alone.given = alone.given.saturating_sub(self.block.drain(u32::MAX, now));
        }
    }

    /// The store said how many proxies there are, apart from any grant.
    pub fn told(&self, proxies: u32) {
        self.state().proxies = Some(proxies);
    }

    /// The number of proxies it was last told: what it must say whenever it speaks to the store.
    #[must_use]
    pub fn knows(&self) -> Option<u32> {
        self.state().proxies
    }

    /// True while something that was spent alone must be reported before anything else is said to the store: to be
    /// heard without the report would free the share that was kept back for it.
    #[must_use]
    pub fn owes_report(&self, now: LocalMs) -> bool {
        self.state().alone.is_some_and(|alone| now < alone.over)
    }

    /// Takes what there is in the block, up to `n`; returns how many.
    pub fn drain(&self, n: u32, now: LocalMs) -> u32 {
        self.block.drain(n, now)
    }

    /// Tokens in the block.
    #[must_use]
    pub fn held(&self, now: LocalMs) -> u32 {
        self.block.left(now)
    }

    /// What the store was last known to have of the running window, for everybody; `None` if that is not known.
    #[must_use]
    pub fn remaining(&self, now: LocalMs) -> Option<u32> {
        let state = self.state();
        state.calendar.filter(|calendar| now < calendar.late).map(|_| state.remaining)
    }

    /// When `n` may be had: now if they are held or not known to be gone, else when the next window opens.
    #[must_use]
    pub fn when(&self, n: u32, now: LocalMs) -> LocalMs {
        if self.block.left(now) >= n {
            return now;
        }
        let state = self.state();
        if state.cut_off.is_some() {
            return self.calendar(&state, now).next_window(self.plan.period_ms(), now);
        }
        state.dry_until.filter(|until| now < *until).unwrap_or(now)
    }

    /// Empties the block; what it held of the running window, to be returned to the store.
    pub fn surrender(&self, now: LocalMs) -> Option<(u64, u32)> {
        let state = self.state();
        let tokens = self.block.drain(u32::MAX, now);
        (tokens > 0 && state.alone.is_none()).then_some((state.leased.0, tokens))
    }

    /// Forgets every token and every bound: the clock they are measured by has made a step.
    pub fn void(&self) {
        let mut state = self.state();
        self.block.clear();
        (state.coming, state.calendar, state.dry_until, state.in_flight) = (None, None, None, None);
    }

    /// Moves the block for the coming window into force once its window has begun.
    fn begin_coming(&self, state: &mut State, now: LocalMs) {
        if let Some(coming) = state.coming.take_if(|coming| now >= coming.starts) {
            state.dry_until = None;
            if let Some(calendar) = &mut state.calendar {
                calendar.turn(coming.window, self.plan.period_ms());
            }
            self.install(state, coming.window, coming.tokens, coming.ends);
        }
    }

    fn install(&self, state: &mut State, window: u64, tokens: u32, ends: LocalMs) {
        state.demand.settle(&self.block);
        if tokens > 0 && self.block.install(window, tokens, ends) {
            let before = if state.leased.0 == window { state.leased.1 } else { 0 };
            state.leased = (window, before.saturating_add(tokens));
            state.demand.refilled(&self.block);
            // What is spent while an ask is under way must be left when it is sent.
            let under_way = state.demand.within(state.way_ms).min(tokens - tokens / REFILL_PART);
            self.refill_below.store((tokens / REFILL_PART).max(under_way).max(1), Ordering::Relaxed);
        }
    }

    /// Which window's tokens are due to be asked for.
    fn due(&self, state: &State, waiting: u32, now: LocalMs) -> Option<Which> {
        let period = self.plan.period_ms();
        let ends = state.calendar.filter(|calendar| now < calendar.late);
        if let Some(calendar) = ends {
            let ahead = (period / 10).clamp(MARGIN_MS, 1000).max(state.way_ms * 2).min(period.div_ceil(2));
            let soon = now.plus(ahead) >= calendar.early;
            if soon {
                return state.coming.is_none().then_some(Which::Coming);
            }
        }
        let dry = state.dry_until.is_some_and(|until| now < until);
        (!dry && (waiting > 0 || self.is_low(now) || self.block.is_over(now))).then_some(Which::Running)
    }

    fn calendar(&self, state: &State, now: LocalMs) -> Calendar {
        state.calendar.unwrap_or_else(|| Calendar::assumed(self.plan.period_ms(), now))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
