//! What is kept of one subject: its limits, what it may spend here, what it was refused, and the pot that it counts in.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clients::{Dry, Lease, Limits, Refusal, Windows};
use ledger::Cost;
use tokio::sync::Notify;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::valkey::Place;

/// So many released slots wait to be told to the store. More end by themselves: while it is away they would pile up, and
/// what is told at once when it is back must be told within its timeout.
const MOST_RELEASED: usize = 4_096;

/// Whoever has these limits under this name. Clients of a shared plan with limits of their own are several subjects of
/// one pot.
#[derive(Debug)]
pub struct Subject {
    pub(super) limits: Limits,
    pub(super) pot: Arc<Pot>,
    /// Where it is counted by all replicas.
    pub(super) place: Option<Place>,
    state: Mutex<State>,
    /// An ask was answered: whoever waits looks again.
    pub(super) answered: Notify,
    /// Upkeep looks after its lease.
    pub(super) watched: AtomicBool,
}

/// What one process knows of a subject.
#[derive(Debug)]
pub(super) struct State {
    pub(super) dry: Option<Dry>,
    pub(super) lease: Option<Lease>,
    /// The newest credit of a block.
    pub(super) credited: u64,
}

/// What all subjects of one name count in, in this process.
#[derive(Debug, Default)]
pub(super) struct Pot(Mutex<Local>);

#[derive(Debug, Default)]
pub(super) struct Local {
    pub(super) windows: Windows,
    /// Requests that hold a slot.
    pub(super) held: u64,
    /// The slots that the store knows, or should.
    pub(super) slots: BTreeSet<u64>,
    /// Slots that the store should forget.
    pub(super) released: Vec<u64>,
}

impl Subject {
    pub(super) fn new(limits: Limits, pot: Arc<Pot>, place: Option<Place>) -> Subject {
        let lease = if place.is_some() && !limits.is_exact() { Lease::new(limits) } else { None };
        let state = Mutex::new(State { dry: None, lease, credited: 0 });
        Subject { limits, pot, place, state, answered: Notify::new(), watched: AtomicBool::new(false) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it was refused and would be again.
    pub(super) fn refusal(&self, cost: Cost, slot: bool, now: u64) -> Option<Refusal> {
        self.state().dry.and_then(|dry| dry.refuses(cost, slot, now))
    }

    pub(super) fn refused(&self, refusal: Refusal, cost: Cost, now: u64) {
        self.state().dry = Some(Dry::new(refusal, cost, now));
    }

    /// A slot was released here: whoever waits for one need not believe what was said before.
    pub(super) fn freed(&self) {
        self.state().dry = None;
    }

    pub(super) fn is_over(&self, now: u64) -> bool {
        let local = self.pot.local();
        let quiet = local.held == 0 && local.released.is_empty() && local.windows.is_over(now);
        drop(local);
        quiet && !self.state().lease.as_ref().is_some_and(Lease::holds)
    }
}

impl Pot {
    pub(super) fn local(&self) -> MutexGuard<'_, Local> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Local {
    /// One more request holds a slot; where slots are shared, the one of this number.
    pub(super) fn hold(&mut self, slot: Option<u64>) {
        self.held += 1;
        self.slots.extend(slot);
    }

    /// It ended.
    pub(super) fn release(&mut self, slot: Option<u64>) {
        self.held = self.held.saturating_sub(1);
        if let Some(slot) = slot {
            self.slots.remove(&slot);
            self.untold([slot]);
        }
    }

    /// The store should forget these slots, and was not told so yet.
    pub(super) fn untold(&mut self, slots: impl IntoIterator<Item = u64>) {
        let room = MOST_RELEASED.saturating_sub(self.released.len());
        self.released.extend(slots.into_iter().take(room));
    }
}
