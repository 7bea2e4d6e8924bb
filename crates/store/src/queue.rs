//! Who waits for an account's tokens, and in which order: who has waited longest comes first, and nobody who comes later
//! takes a token that somebody before needs. Decides nothing about ceilings, and how long to wait is up to the caller.
//!
//! Nobody is handed a token. Who looks may take one if enough are left for all who stand before it, so those at the head
//! go on side by side, and none of them has to be woken for the next to go. Only somebody who leaves without having taken
//! anything makes room, and calls the next one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ledger::{Cost, Take};
use tokio::sync::Notify;

const NOTHING: Cost = Cost { requests: 0, units: 0 };

/// Since when somebody waits: lower is longer. The same at every queue it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn(u64);

impl Turn {
    /// Of somebody who has not waited yet: behind all who do.
    pub const NEWCOMER: Turn = Turn(u64::MAX);
}

/// Gives out turns, first come, first served.
#[derive(Debug, Default)]
pub struct Turns(AtomicU64);

impl Turns {
    /// The turn of somebody who begins to wait.
    pub fn begin(&self) -> Turn {
        Turn(self.0.fetch_add(1, Relaxed))
    }
}

/// The queue of one account.
#[derive(Debug, Default)]
pub struct Queue {
    /// How many stand in it: without any, nothing else is looked at.
    waiting: AtomicU32,
    line: Mutex<Line>,
}

#[derive(Debug)]
struct Line {
    standing: BTreeMap<Turn, Standing>,
    /// What all of them need.
    cost: Cost,
}

#[derive(Debug)]
struct Standing {
    cost: Cost,
    call: Arc<Notify>,
    /// It looked in vain, and was not called since.
    rests: bool,
}

impl Queue {
    /// Looks whether there is a token, with `take`, which is told what must be left for those who stand before `turn`. Who
    /// gets one does not stand here any more.
    pub fn pass(&self, turn: Turn, take: impl FnOnce(Cost) -> Take) -> Take {
        if self.waiting.load(Relaxed) == 0 {
            return take(NOTHING);
        }
        // Under the lock, so that nobody counts one who has taken already as one before it.
        let mut line = self.line();
        let taken = take(line.before(turn));
        match taken {
            Take::Granted(_) => drop(line.remove(turn)),
            Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => line.rest(turn),
        }
        self.count(&line);
        taken
    }

    /// Stands here from now on, for so much; `call` is notified when it is worth looking again.
    pub fn stand(&self, turn: Turn, cost: Cost, call: &Arc<Notify>) {
        let mut line = self.line();
        line.remove(turn);
        line.add(turn, Standing { cost, call: Arc::clone(call), rests: true });
        self.count(&line);
    }

    /// Leaves without having taken anything here: whoever stands behind and rests is called.
    pub fn leave(&self, turn: Turn) {
        let mut line = self.line();
        let called = line.remove(turn).and_then(|_| line.wake_behind(turn));
        self.count(&line);
        drop(line);
        if let Some(call) = called {
            call.notify_one();
        }
    }

    fn count(&self, line: &Line) {
        self.waiting.store(line.standing.len().try_into().unwrap_or(u32::MAX), Relaxed);
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Line {
    fn default() -> Line {
        Line { standing: BTreeMap::new(), cost: NOTHING }
    }
}

impl Line {
    fn add(&mut self, turn: Turn, standing: Standing) {
        self.cost = sum(self.cost, standing.cost);
        self.standing.insert(turn, standing);
    }

    fn remove(&mut self, turn: Turn) -> Option<Standing> {
        let standing = self.standing.remove(&turn)?;
        self.cost = if self.standing.is_empty() { NOTHING } else { less(self.cost, standing.cost) };
        Some(standing)
    }

    /// What all who stand before `turn` need.
    fn before(&self, turn: Turn) -> Cost {
        if turn == Turn::NEWCOMER {
            return self.cost;
        }
        self.standing.range(..turn).map(|(_, standing)| standing.cost).fold(NOTHING, sum)
    }

    fn rest(&mut self, turn: Turn) {
        if let Some(standing) = self.standing.get_mut(&turn) {
            standing.rests = true;
        }
    }

    /// The first one behind `turn` that rests, which it does no longer.
    fn wake_behind(&mut self, turn: Turn) -> Option<Arc<Notify>> {
        let (_, next) = self.standing.range_mut(turn..).find(|(_, standing)| standing.rests)?;
        next.rests = false;
        Some(Arc::clone(&next.call))
    }
}

fn sum(a: Cost, b: Cost) -> Cost {
    Cost { requests: a.requests.saturating_add(b.requests), units: a.units.saturating_add(b.units) }
}

fn less(a: Cost, b: Cost) -> Cost {
    Cost { requests: a.requests.saturating_sub(b.requests), units: a.units.saturating_sub(b.units) }
}

#[cfg(test)]
mod tests;
