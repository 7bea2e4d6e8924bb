//! One process's share of the store: its handles, and what keeps them in step.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ledger::{Cost, Limit, Take, Unit};
use recovery::{Hit, Kind, Policy};
use store::{Account, Memory, Target, Valkey};
use tokio::task::JoinHandle;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often something is looked at that cannot be waited for.
const GLANCE: Duration = Duration::from_millis(2);

pub(crate) struct Replica {
    pub(crate) valkey: Option<Arc<Valkey>>,
    pub(crate) memory: Arc<Memory>,
    task: Option<JoinHandle<()>>,
    pub(crate) changes: Arc<AtomicUsize>,
}

pub(crate) fn target(port: u16, prefix: &str) -> Target {
    Target {
        url: None,
        host: "127.0.0.1".to_owned(),
        port,
        username: None,
        password: None,
        tls: false,
        unchecked: false,
        ca_file: None,
        prefix: prefix.to_owned(),
        timeout: Duration::from_millis(50),
        replicas_assumed: 4,
        poll: Duration::from_secs(1),
    }
}

impl Replica {
    /// One that shares nothing.
    pub(crate) fn alone() -> Replica {
        Replica { valkey: None, memory: Arc::default(), task: None, changes: Arc::default() }
    }

    /// One that shares with all others on this port, whether or not anybody listens there.
    pub(crate) fn on(port: u16) -> Replica {
        Replica::at(&target(port, "headgate"))
    }

    pub(crate) fn at(target: &Target) -> Replica {
        let valkey = Arc::new(Valkey::new(target, now).expect("good settings"));
        let (memory, changes) = (Arc::new(Memory::shared(valkey.sharing())), Arc::<AtomicUsize>::default());
        let (store, handles, count) = (Arc::clone(&valkey), Arc::clone(&memory), Arc::clone(&changes));
        let counted = move || {
            count.fetch_add(1, Relaxed);
        };
        let run = async move { store.run(&handles, counted, |_| {}).await };
        Replica { valkey: Some(valkey), memory, task: Some(tokio::spawn(run)), changes }
    }

    /// One that is connected.
    pub(crate) async fn connected(port: u16) -> Replica {
        let replica = Replica::on(port);
        until("connected", || replica.is_up()).await;
        replica
    }

    pub(crate) fn is_up(&self) -> bool {
        self.valkey.as_ref().is_some_and(|valkey| valkey.is_up())
    }

    /// Ends as a killed process does: without a word.
    pub(crate) fn die(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }

    /// Ends as a process does that was told to.
    pub(crate) async fn leave(mut self) {
        self.die();
        if let Some(valkey) = &self.valkey {
            valkey.goodbye(&self.memory).await;
        }
    }

    /// The account `a` with these limits per hour.
    pub(crate) fn account(&self, limits: &[u32]) -> Arc<Account> {
        let limit = |(i, amount): (u64, &u32)| Limit {
            amount: *amount,
            unit: Unit::Requests,
            window_ms: HOUR << i,
            smooth: false,
        };
        let limits: Vec<Limit> = (0..).zip(limits).map(limit).collect();
        self.memory.account("a", "", |before| {
            let gate = self.memory.gate(limits, Some(aimd::Params::default()), None);
            Account::new("a", Policy::default(), gate, before, now())
        })
    }

    /// The account `a`, which learns by the steady law.
    pub(crate) fn steady(&self) -> Arc<Account> {
        let params = aimd::Params { mode: aimd::Mode::Steady, ..aimd::Params::default() };
        self.memory.account("a", "", |before| {
            let gate = self.memory.gate(Vec::new(), Some(params), None);
            Account::new("a", Policy::default(), gate, before, now())
        })
    }

    /// Takes and sends one after another until the account is dry, at most `most`; how many.
    pub(crate) async fn spend(&self, account: &Account, most: u32) -> u32 {
        let deadline = Instant::now() + PATIENCE;
        let mut spent = 0;
        while spent < most {
            assert!(Instant::now() < deadline, "neither dry nor granted after {spent}");
            match account.gate.try_take(Cost::requests(1), now()) {
                Take::Granted(ticket) => spent += u32::from(account.gate.sent(ticket, now())),
                Take::Dry { .. } => return spent,
                Take::Doubt => self.valkey.as_ref().expect("it shares").wait_for_tokens().await,
                Take::TooBig { .. } => panic!("one is never too big"),
            }
        }
        spent
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.die();
    }
}

pub(crate) const HOUR: u64 = 3_600_000;

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

pub(crate) fn burst(at: u64) -> Hit {
    Hit { now: at, hint: None, kind: Kind::Burst, window_ms: 1_000, gap_ms: 0 }
}

/// Waits for what must come.
pub(crate) async fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(GLANCE).await;
    }
}
