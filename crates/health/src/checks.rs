//! Runs the scheduled probes: one task that starts what [`Schedule`] says is due and tells it what became of it.
//! It decides nothing and sends nothing; a probe that panics or outlasts its deadline costs that probe alone.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::{Future, pending};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

use crate::schedule::{Schedule, Settings, Standing};

/// What sends the probes: the service, with its connections and its trackers.
pub trait Prober: Send + Sync + 'static {
    /// One endpoint over one protocol.
    type Target: Copy + Ord + Hash + Debug + Send + 'static;

    /// Probes the target, records what it found, and says how the target stands now. It should keep its own
    /// time limit below the schedule's deadline: a probe that is cut off there has recorded nothing.
    fn probe(&self, target: Self::Target) -> impl Future<Output = Standing> + Send;
}

/// What the running checks can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<K> {
    /// This target has just been ejected.
    Suspect(K),
    /// The targets of each chain, the most important first, after a reload.
    Retarget(Vec<Vec<K>>),
}

/// Probes `chains` on the schedule until every sender of `commands` is gone; then probes in flight are dropped.
/// `first_pass` becomes true once everything was probed.
pub async fn run_checks<P: Prober>(
    prober: Arc<P>,
    settings: Settings,
    chains: Vec<Vec<P::Target>>,
    mut commands: mpsc::Receiver<Command<P::Target>>,
    first_pass: watch::Sender<bool>,
    rng: SmallRng,
) {
    let mut checks = Checks {
        prober,
        deadline: Duration::from_millis(settings.deadline_ms),
        schedule: Schedule::new(settings, &chains, 0),
        started: Instant::now(),
        flights: JoinSet::new(),
        targets: HashMap::new(),
        rng,
    };
    drop(chains);
    loop {
        checks.start_due();
        first_pass.send_if_modified(|over| {
            let newly = !*over && checks.schedule.first_pass_is_over();
            *over |= newly;
            newly
        });
        let due = checks.next_wake();
        tokio::select! {
            command = commands.recv() => match command {
                Some(command) => checks.obey(command),
                None => return,
            },
            Some(landed) = checks.flights.join_next_with_id() => {
                match landed {
                    Ok((id, standing)) => checks.landed(id, standing),
                    Err(error) => checks.crashed(error.id()),
                }
            }
            () = wait_until(due) => {}
        }
    }
}

struct Checks<P: Prober> {
    prober: Arc<P>,
    schedule: Schedule<P::Target>,
    deadline: Duration,
    started: Instant,
    flights: JoinSet<Standing>,
    targets: HashMap<Id, P::Target>,
    rng: SmallRng,
}

impl<P: Prober> Checks<P> {
    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn start_due(&mut self) {
        for target in self.schedule.next(self.now(), &mut self.rng) {
            let (prober, deadline) = (Arc::clone(&self.prober), self.deadline);
            let flight = self.flights.spawn(async move {
                timeout(deadline, prober.probe(target)).await.unwrap_or_else(|_| {
                    warn!(?target, "probe outlasted its deadline");
                    Standing::Bad
                })
            });
            self.targets.insert(flight.id(), target);
        }
    }

    fn next_wake(&mut self) -> Option<Instant> {
        let wake_at = self.schedule.wake_at()?;
        self.started.checked_add(Duration::from_millis(wake_at))
    }

    fn obey(&mut self, command: Command<P::Target>) {
        let now = self.now();
        match command {
            Command::Suspect(target) => self.schedule.suspect(target, now),
            Command::Retarget(chains) => self.schedule.retarget(&chains, now),
        }
    }

    fn landed(&mut self, id: Id, standing: Standing) {
        let now = self.now();
        if let Some(target) = self.targets.remove(&id) {
            self.schedule.done(target, standing, now, &mut self.rng);
        }
    }

    fn crashed(&mut self, id: Id) {
        warn!(target = ?self.targets.get(&id), "probe crashed");
        self.landed(id, Standing::Bad);
    }
}

async fn wait_until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => pending().await,
    }
}

#[cfg(test)]
#[path = "checks/tests.rs"]
mod tests;
