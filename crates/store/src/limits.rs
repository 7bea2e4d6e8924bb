//! Limits of clients: one request is charged to its subject in all dimensions at once, or refused. Decides where that is
//! counted: here alone, where all replicas count, or here for a part while that place is away. The arithmetic is
//! `clients`'.
//!
//! Small limits and concurrency take one round trip per request, bounded by the store's timeout; large ones are spent from
//! blocks. What was refused is refused here until it may pass, without a round trip.

mod permit;
mod shared;
mod subject;
mod upkeep;

pub use permit::{Charge, Permit, Receipt};
pub use subject::Subject;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clients::{Limits, Mode, Refusal, Standing, Tag};
use ledger::Cost;

use crate::{Clock, Valkey};
use permit::How;
use shared::Shared;
use subject::Pot;

/// So many subjects are told apart. Addresses beyond them are counted as one.
const MOST_SUBJECTS: usize = 65_536;
/// What those are called.
const OTHERS: &str = "others";
/// A replica that may not count alone refuses for so long at a time.
const DENIED_MS: u64 = 1_000;

/// How to go on while the store is away.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// So long from the first failure each replica counts its share alone.
    pub grace: Duration,
    /// Whether it refuses after that.
    pub denies: bool,
    /// A crashed replica's concurrency slots are free after this.
    pub slot_life: Duration,
}

/// Why a request is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// It costs more than this dimension ever has: waiting does not help.
    Never {
        dimension: &'static str,
        limit: u64,
    },
    Refused(Refusal),
}

/// All subjects of this process.
#[derive(Debug)]
pub struct ClientLimits {
    started: Instant,
    clock: Clock,
    kept: Mutex<Kept>,
    shared: Option<Arc<Shared>>,
}

#[derive(Debug, Default)]
struct Kept {
    subjects: HashMap<(Tag, Limits), Arc<Subject>>,
    pots: HashMap<Tag, Arc<Pot>>,
}

impl ClientLimits {
    /// Counts in this process alone.
    #[must_use]
    pub fn alone(clock: Clock) -> ClientLimits {
        ClientLimits { started: Instant::now(), clock, kept: Mutex::default(), shared: None }
    }

    /// Counts where all replicas count, once [`ClientLimits::run`] has found it.
    #[must_use]
    pub fn shared(clock: Clock, valkey: &Valkey, lost: Lost) -> ClientLimits {
        let shared = Shared::new(valkey.limit_store(lost.slot_life), valkey.sharing().assumed, lost);
        ClientLimits { shared: Some(Arc::new(shared)), ..ClientLimits::alone(clock) }
    }

    /// Whether limits that should be counted together are not.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.is_open())
    }

    /// The subject of this name and these limits; the same as long as anybody holds it or it has counted anything.
    pub fn subject(&self, tag: &Tag, limits: &Limits) -> Arc<Subject> {
        let mut kept = self.kept();
        if let Some(subject) = kept.subjects.get(&(tag.clone(), *limits)) {
            return Arc::clone(subject);
        }
        let full = kept.subjects.len() >= MOST_SUBJECTS && matches!(tag, Tag::Address(_));
        let tag = if full { &Tag::Address(OTHERS.into()) } else { tag };
        let pot = Arc::clone(kept.pots.entry(tag.clone()).or_default());
        let place = self.shared.as_ref().map(|shared| shared.store.place(tag, limits));
        let made = kept
            .subjects
            .entry((tag.clone(), *limits))
            .or_insert_with(|| Arc::new(Subject::new(*limits, pot, place)));
        Arc::clone(made)
    }

    /// Charges a request of this cost; with `slot` it takes a concurrency slot too, where they are limited.
    ///
    /// # Errors
    /// Why it must not be served.
    pub async fn charge(&self, subject: &Arc<Subject>, cost: Cost, slot: bool) -> Result<Charge, Denial> {
        if subject.limits.is_open() {
            return Ok(Charge::free(subject));
        }
        if let Some((dimension, limit)) = subject.limits.never(cost) {
            return Err(Denial::Never { dimension, limit });
        }
        let slot = slot && subject.limits.concurrency.is_some();
        if !slot && cost == Cost::requests(0) {
            return Ok(Charge::free(subject));
        }
        let Some(shared) = &self.shared else { return self.here(subject, &subject.limits, cost, slot) };
        match shared.mode(self.now()) {
            Mode::Shared => {}
            Mode::Share => return self.share(shared, subject, cost, slot),
            Mode::Deny => return Err(Denial::Refused(denied(&subject.limits))),
        }
        let counted = match subject.limits.is_exact() {
            true => self.exact(shared, subject, cost, slot).await,
            false => self.leased(shared, subject, cost).await,
        };
        counted.unwrap_or_else(|_away| self.share(shared, subject, cost, slot))
    }

    /// Takes back what a request was charged that was never dispatched.
    pub fn give_back(&self, receipt: Receipt) {
        let Receipt { subject, cost, how } = receipt;
        match how {
            How::Free => {}
            How::Here { at } => subject.pot.local().windows.give_back(cost, at, (self.clock)()),
            How::There { at } => {
                if let Some(shared) = &self.shared {
                    shared.give_back(&subject, cost, at);
                }
            }
            How::Block { granted } => {
                if let Some(lease) = &mut subject.state().lease {
                    lease.put_back(cost, granted);
                }
                if let Some(shared) = &self.shared {
                    shared.watch(&subject);
                }
            }
        }
    }

    /// Forgets subjects that nobody holds and that count nothing.
    pub fn tidy(&self) {
        let (now, mut kept) = ((self.clock)(), self.kept());
        kept.subjects.retain(|_, subject| Arc::strong_count(subject) > 1 || !subject.is_over(now));
        kept.pots.retain(|_, pot| Arc::strong_count(pot) > 1);
    }

    /// Counts in this process, up to `limits`.
    fn here(
        &self,
        subject: &Arc<Subject>,
        limits: &Limits,
        cost: Cost,
        slot: bool,
    ) -> Result<Charge, Denial> {
        let at = (self.clock)();
        let mut local = subject.pot.local();
        let held = local.held;
        let standing = local.windows.charge(limits, held, cost, slot, at).map_err(Denial::Refused)?;
        let permit = slot.then(|| {
            let number = self.shared.as_ref().map(|shared| shared.next_slot());
            local.hold(number);
            Permit::new(subject, number, self.shared.as_ref())
        });
        drop(local);
        Ok(Charge { standing, receipt: Receipt::new(subject, cost, How::Here { at }), permit })
    }

    /// Counts in this process, up to its part.
    fn share(
        &self,
        shared: &Shared,
        subject: &Arc<Subject>,
        cost: Cost,
        slot: bool,
    ) -> Result<Charge, Denial> {
        self.here(subject, &subject.limits.share(shared.replicas()), cost, slot)
    }

    /// Milliseconds of a clock that does not go back.
    fn now(&self) -> u64 {
        millis(self.started.elapsed())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn denied(limits: &Limits) -> Refusal {
    let limit = limits.limited().map(|(_, _, limit)| limit).chain(limits.concurrency).min().unwrap_or(0);
    let standing = Standing { limit, remaining: 0, reset_ms: DENIED_MS };
    Refusal { retry_in_ms: DENIED_MS, standing, requests: true, units: true, concurrency: false }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
