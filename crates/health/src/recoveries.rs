//! Brings parked accounts back: one task that sleeps until the soonest probe of any parked account is due, has it
//! sent, and has its answer applied. It decides nothing ([`recovery`] does) and sends nothing. A probe that
//! panics, hangs, or belongs to a process that died only means that another one follows.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand::rngs::SmallRng;
use recovery::{Policy, Probe, Record, probe_due};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

/// A probe without an answer after this long has failed.
const PROBE_DEADLINE: Duration = Duration::from_secs(10);
/// A claim or an update that takes longer than this has failed.
const STORE_DEADLINE: Duration = Duration::from_secs(5);
/// The accounts are read again after this long even if nobody announced a change.
const BACKSTOP: Duration = Duration::from_secs(5);
/// An answered account is looked at again after this long, so that a view that lags behind the update does not
/// repeat the probe. Shorter than the shortest wait.
const AFTER_AN_ANSWER: Duration = Duration::from_millis(250);
/// An account that another process probes, or whose update failed, is looked at again after this long.
const AFTER_A_MISS: Duration = Duration::from_secs(1);
/// Probes in flight at most; the others follow as these end.
const MOST_IN_FLIGHT: usize = 256;

/// An account in an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Parked<Id> {
    /// The account.
    pub id: Id,
    /// Its record.
    pub record: Record,
    /// Its settings.
    pub policy: Policy,
}

/// The accounts, as the service keeps them.
pub trait Accounts: Send + Sync + 'static {
    /// An account's name.
    type Id: Clone + Eq + Hash + Debug + Send + Sync + 'static;

    /// Unix milliseconds, by the clock that the records are written with.
    fn now_ms(&self) -> u64;

    /// Every account in an episode; `None` when that cannot be read now.
    fn in_episode(&self) -> impl Future<Output = Option<Vec<Parked<Self::Id>>>> + Send;

    /// Takes the lease to probe the account; `false` when another process holds it. The lease must end by
    /// itself, after 15 s or so.
    fn claim(&self, id: &Self::Id) -> impl Future<Output = bool> + Send;

    /// Sends one probe to the account.
    fn probe(&self, id: &Self::Id) -> impl Future<Output = Probe> + Send;

    /// Applies [`recovery::probed`] with this chance to the account's record, by compare-and-set; `false` when
    /// that failed.
    fn apply(&self, id: &Self::Id, outcome: Probe, jitter: f64) -> impl Future<Output = bool> + Send;
}

/// Probes parked accounts when they are due, until the sender of `changes` is gone. A new value there, whatever
/// it is, says that an account was parked or its record changed.
pub async fn run_recoveries<A: Accounts>(accounts: Arc<A>, mut changes: watch::Receiver<u64>, rng: SmallRng) {
    let mut recoveries = Recoveries { accounts, flights: JoinSet::new(), held: HashMap::new(), rng };
    loop {
        let wake = recoveries.start_due().await;
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            Some(landed) = recoveries.flights.join_next() => {
                if let Ok(flight) = landed {
                    recoveries.landed(&flight);
                }
            }
            () = sleep_until(wake) => {}
        }
    }
}

struct Recoveries<A: Accounts> {
    accounts: Arc<A>,
    flights: JoinSet<Flight<A::Id>>,
    /// Accounts that are not looked at before a time: in flight, or just answered.
    held: HashMap<A::Id, Instant>,
    rng: SmallRng,
}

struct Flight<Id> {
    id: Id,
    applied: bool,
}

impl<A: Accounts> Recoveries<A> {
    /// Starts every probe that is due; when to look again.
    async fn start_due(&mut self) -> Instant {
        let began = Instant::now();
        self.held.retain(|_, until| *until > began);
        let mut wake = began + BACKSTOP;
        let Ok(Some(parked)) = timeout(STORE_DEADLINE, self.accounts.in_episode()).await else {
            warn!("parked accounts cannot be read");
            return Instant::now() + AFTER_A_MISS;
        };
        let (instant, now) = (Instant::now(), self.accounts.now_ms());
        for account in parked {
            let Some(due) = probe_due(&account.record, &account.policy, now) else { continue };
            let due = instant + Duration::from_millis(due.saturating_sub(now)).min(BACKSTOP);
            let due = self.held.get(&account.id).map_or(due, |held| due.max(*held));
            if due > instant {
                wake = wake.min(due);
            } else if self.flights.len() < MOST_IN_FLIGHT {
                self.start(account.id);
            }
        }
        wake
    }

    fn start(&mut self, id: A::Id) {
        // Longer than a flight can last, should it end without a word.
        let longest = STORE_DEADLINE + PROBE_DEADLINE + STORE_DEADLINE + AFTER_A_MISS;
        self.held.insert(id.clone(), Instant::now() + longest);
        let jitter = self.rng.random();
        self.flights.spawn(fly(Arc::clone(&self.accounts), id, jitter));
    }

    fn landed(&mut self, flight: &Flight<A::Id>) {
        let wait = if flight.applied { AFTER_AN_ANSWER } else { AFTER_A_MISS };
        self.held.insert(flight.id.clone(), Instant::now() + wait);
    }
}

/// Claims, probes and applies. Each step may panic or hang without taking the flight with it.
async fn fly<A: Accounts>(accounts: Arc<A>, id: A::Id, jitter: f64) -> Flight<A::Id> {
    let (store, name) = (Arc::clone(&accounts), id.clone());
    let claimed = guarded(STORE_DEADLINE, async move { store.claim(&name).await }).await;
    if claimed != Some(true) {
        return Flight { id, applied: false };
    }
    let (prober, name) = (Arc::clone(&accounts), id.clone());
    let outcome = guarded(PROBE_DEADLINE, async move { prober.probe(&name).await }).await;
    if outcome.is_none() {
        warn!(account = ?id, "recovery probe was lost");
    }
    let name = id.clone();
    let outcome = outcome.unwrap_or(Probe::Failed);
    let applied = guarded(STORE_DEADLINE, async move { accounts.apply(&name, outcome, jitter).await }).await;
    Flight { id, applied: applied == Some(true) }
}

/// The step's result; `None` when it panicked or took too long. Dropped with its caller.
async fn guarded<T: Send + 'static>(
    deadline: Duration,
    step: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let mut task = JoinSet::new();
    task.spawn(timeout(deadline, step));
    task.join_next().await?.ok()?.ok()
}

#[cfg(test)]
#[path = "recoveries/tests.rs"]
mod tests;
