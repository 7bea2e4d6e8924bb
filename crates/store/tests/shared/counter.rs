//! One process's counting of clients' limits.

use std::sync::Arc;
use std::time::Duration;

use clients::{Limits, Tag};
use ledger::Cost;
use store::{Charge, ClientLimits, Denial, Lost, Subject, Target, Valkey};
use tokio::task::JoinHandle;

use crate::replica::{now, target, until};
use crate::server::Server;

const ONE: Cost = Cost { requests: 1, units: 0 };

/// Dropped, it has died without a word.
pub(crate) struct Counter {
    pub(crate) limits: Arc<ClientLimits>,
    pub(crate) valkey: Arc<Valkey>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Counter {
    pub(crate) async fn on(server: &Server, slot_life: Duration) -> Counter {
        let mut settings = target(server.port, "headgate");
        // The machine may be busy: what is shown here is not how fast it answers.
        settings.timeout = Duration::from_secs(5);
        Counter::at(&settings, Lost { grace: Duration::from_secs(60), denies: false, slot_life }).await
    }

    pub(crate) async fn at(settings: &Target, lost: Lost) -> Counter {
        let valkey = Arc::new(Valkey::new(settings, now).expect("good settings"));
        let limits = Arc::new(ClientLimits::shared(now, &valkey, lost));
        let (store, counting) = (Arc::clone(&valkey), Arc::clone(&limits));
        let tasks = vec![
            tokio::spawn(async move { store.run(&store::Memory::default(), || {}, |_| {}).await }),
            tokio::spawn(async move { counting.run().await }),
        ];
        let counter = Counter { limits, valkey, tasks };
        until("counted together", || !counter.limits.is_degraded()).await;
        counter
    }

    pub(crate) fn subject(&self, pairs: &[(&str, u64)]) -> Arc<Subject> {
        self.client("a{:}", pairs)
    }

    pub(crate) fn client(&self, id: &str, pairs: &[(&str, u64)]) -> Arc<Subject> {
        let mut limits = Limits::default();
        pairs.iter().for_each(|(name, limit)| assert!(limits.set(name, *limit)));
        self.limits.subject(&Tag::Client(id.into()), &limits)
    }

    pub(crate) async fn charge(&self, subject: &Arc<Subject>) -> Result<Charge, Denial> {
        self.limits.charge(subject, ONE, true).await
    }

    /// Charges until refused, at most `most`; how many.
    pub(crate) async fn spend(&self, subject: &Arc<Subject>, most: u64) -> u64 {
        for spent in 0..most {
            if self.charge(subject).await.is_err() {
                return spent;
            }
        }
        most
    }

    pub(crate) fn trips(&self) -> u64 {
        store::Op::ALL.into_iter().map(|op| self.valkey.counts(op).0).sum()
    }
}

/// Waits until each knows of the other.
pub(crate) async fn acquainted(a: &Counter, b: &Counter) {
    let said = |counter: &Counter| counter.valkey.counts(store::Op::Presence).0;
    let (first, second) = (said(a), said(b));
    until("each has heard of the other", || said(a) > first + 1 && said(b) > second + 1).await;
}

pub(crate) fn day() -> u64 {
    now() / 86_400_000
}
