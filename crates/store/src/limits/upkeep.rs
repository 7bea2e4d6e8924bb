//! What is done for limits while nobody waits: the probe that finds the store again, unused tokens given back, slots
//! prolonged and released. Decides nothing about a request.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use clients::Credit;
use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use super::ClientLimits;
use super::shared::{Errand, Shared};
use super::subject::Subject;

/// The store is probed this often.
const PROBE: Duration = Duration::from_millis(250);
/// Leases are looked at this often, while there are any.
const SWEEP: Duration = Duration::from_millis(50);
/// A block that nobody spends from for so long is given back.
const IDLE_MS: u64 = 250;
/// Slots are prolonged so often within their life.
const BEATS: u64 = 3;
/// Giving everything back at the end takes no longer.
const GOODBYE: Duration = Duration::from_secs(2);

impl ClientLimits {
    /// Looks after everything until it is dropped.
    pub async fn run(&self) {
        let Some(shared) = &self.shared else { return std::future::pending().await };
        tokio::select! {
            () = self.probe(shared) => {}
            () = errands(shared) => {}
            () = self.sweep(shared) => {}
            () = self.beat(shared) => {}
        }
    }

    /// Gives back what is left, at the end of the process. Nobody must be charged any more.
    pub async fn goodbye(&self) {
        let Some(shared) = self.shared.as_ref().filter(|shared| !shared.is_open()) else { return };
        let farewell = async {
            for subject in self.subjects() {
                let credits = credits(&subject, 0, self.now());
                send_credits(shared, &subject, credits).await;
                release(shared, &subject).await;
            }
        };
        // What was not told in time ends by itself.
        let _ = timeout(GOODBYE, farewell).await;
    }

    async fn sweep(&self, shared: &Arc<Shared>) {
        loop {
            sleep(SWEEP).await;
            let now = self.now();
            let mut due = Vec::new();
            watched(shared).retain(|subject| {
                // First, so that an ask begun from here on puts it on the list again.
                subject.watched.store(false, Relaxed);
                let credits = credits(subject, IDLE_MS, now);
                let holds = subject.state().lease.as_ref().is_some_and(clients::Lease::holds);
                if !credits.is_empty() {
                    due.push((Arc::clone(subject), credits));
                }
                subject.watched.fetch_or(holds, Relaxed);
                holds
            });
            for (subject, credits) in due.into_iter().filter(|_| !shared.is_open()) {
                let shared = Arc::clone(shared);
                tokio::spawn(async move { send_credits(&shared, &subject, credits).await });
            }
        }
    }

    /// Asks again and again whether the store is there, and how many proxies are.
    async fn probe(&self, shared: &Arc<Shared>) {
        let mut turns = shared.store.turns();
        loop {
            let probe = shared.breaker().probe();
            match shared.store.presence().await {
                Ok(proxies) => {
                    shared.told(proxies);
                    if shared.is_open() {
                        // First, so that nobody is given a slot that was taken here meanwhile.
                        self.tell_slots(shared).await;
                    }
                    let outage = shared.breaker().succeeded(probe, shared.now());
                    if let Some(outage) = outage {
                        let lasted_ms = outage.lasted_ms;
                        tracing::info!(proxies, lasted_ms, "client limits are counted together");
                    }
                }
                Err(miss) => shared.missed(&miss),
            }
            tokio::select! {
                () = sleep(PROBE) => {}
                Ok(()) = turns.changed() => {}
            }
        }
    }

    /// Prolongs the slots that are held here; what Valkey lost comes back with it.
    async fn beat(&self, shared: &Arc<Shared>) {
        let pause = Duration::from_millis((shared.store.slot_life_ms() / BEATS).max(1));
        loop {
            sleep(pause).await;
            self.tell_slots(shared).await;
        }
    }

    /// Says which slots are held here, and which no longer are.
    async fn tell_slots(&self, shared: &Arc<Shared>) {
        let subjects = self.subjects();
        let telling = subjects.iter().map(|subject| {
            let kept: Vec<u64> = subject.pot.local().slots.iter().copied().collect();
            async move { tell(shared, subject, &kept).await }
        });
        join_all(telling).await;
    }

    fn subjects(&self) -> Vec<Arc<Subject>> {
        self.kept().subjects.values().map(Arc::clone).collect()
    }
}

async fn errands(shared: &Arc<Shared>) {
    let inbox = shared.inbox.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut inbox) = inbox else { return };
    while let Some(errand) = inbox.recv().await {
        if shared.is_open() {
            continue;
        }
        let shared = Arc::clone(shared);
        tokio::spawn(async move {
            match errand {
                Errand::Slots(subject) => release(&shared, &subject).await,
                Errand::GiveBack(subject, credit) => {
                    if let Some(place) = &subject.place {
                        // Not said twice: it might be heard twice.
                        let _ = shared.store.credit(place, &credit, None).await;
                    }
                }
            }
        });
    }
}

async fn release(shared: &Shared, subject: &Subject) {
    tell(shared, subject, &[]).await;
}

/// Says which slots were released here, and that these go on.
async fn tell(shared: &Shared, subject: &Subject, kept: &[u64]) {
    let Some(place) = &subject.place else { return };
    let released = std::mem::take(&mut subject.pot.local().released);
    if released.is_empty() && kept.is_empty() {
        return;
    }
    if shared.store.slots(place, &released, kept).await.is_err() {
        // Said again with the next beat, or when the store is found again.
        subject.pot.local().untold(released);
    }
}

/// What will not be spent, each with an id that rises.
fn credits(subject: &Subject, idle_ms: u64, now: u64) -> Vec<(u64, Credit)> {
    let mut state = subject.state();
    let credits = state.lease.as_mut().map(|lease| lease.credits(idle_ms, now)).unwrap_or_default();
    let mut numbered = Vec::with_capacity(credits.len());
    for credit in credits {
        state.credited += 1;
        numbered.push((state.credited, credit));
    }
    numbered
}

async fn send_credits(shared: &Shared, subject: &Subject, credits: Vec<(u64, Credit)>) {
    let Some(place) = &subject.place else { return };
    for (id, credit) in credits {
        // Lost, they stay unused.
        let _ = shared.store.credit(place, &credit, Some(id)).await;
    }
}

fn watched(shared: &Shared) -> std::sync::MutexGuard<'_, Vec<Arc<Subject>>> {
    shared.watched.lock().unwrap_or_else(PoisonError::into_inner)
}
