//! The Valkey backend: keeps the handles of this process in step with those of all others, in the background. No
//! request ever waits here; without Valkey the handles go on with what they know.
//!
//! One loop refills leases, every 5 ms while they are spent. Another tells and reads everything else: twice a second, ten
//! times while an account that keeps a level is in use, at once when something changed here, and when others say so.

mod counts;
mod hours;
mod keys;
mod leases;
mod limits;
mod link;
mod passes;
mod reports;
mod rights;
mod scripts;
mod steps;
mod subject;
mod target;
mod trouble;

pub use counts::Op;
pub(crate) use limits::{Answered, Asked, LimitStore, Miss, Place};
pub use link::Failure;
pub use target::{BadSetting, Target};

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ledger::Holder;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::{Account, Clock, Finding, Memory, News, Sharing};
use keys::{Keys, Of};
use leases::Refill;
use link::{Ears, Link};
use reports::Reports;
use scripts::Scripts;
use steps::StepWatch;
use subject::{Depth, Ground};

/// How often leases are looked at while they are spent, and else.
const REFILL: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
/// So long after the last ask leases count as spent.
const SPENT_FOR: Duration = Duration::from_secs(1);
/// So many messages wait to be looked at; what is lost beyond them is read soon.
const UNREAD: usize = 256;
/// Saying goodbye as a whole takes no longer.
const GOODBYE: Duration = Duration::from_secs(2);

/// The shared store.
pub struct Valkey {
    ground: Ground,
    refill: Arc<Refill>,
    reports: Reports,
    keys: Keys,
    clock: Clock,
    sharing: Sharing,
    timeout: Duration,
    wanted: Notify,
    stirred: Notify,
    passes: watch::Sender<u64>,
    filled: Arc<Notify>,
    /// The process ends: what is returned must not be asked for again.
    leaving: AtomicBool,
    /// Its answers come too late for windows that are in use.
    late: AtomicBool,
}

/// Something that can be parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// An account, by its name.
    Account(&'a str),
    /// An address, by host and port.
    Address(&'a str),
}

impl Valkey {
    /// A store that connects to nothing before it runs.
    ///
    /// # Errors
    /// A setting that cannot be used.
    pub fn new(target: &Target, clock: Clock) -> Result<Valkey, BadSetting> {
        let holder: u64 = SmallRng::from_os_rng().random();
        let (keys, name) = (Keys::new(&target.prefix), format!("{holder:016x}"));
        let link = Arc::new(Link::new(target.builder()?, target.place(), keys.clone(), name.clone()));
        let (scripts, trouble, filled) = (Arc::new(Scripts::new()), Arc::default(), Arc::new(Notify::new()));
        let refill = Refill {
            link: Arc::clone(&link),
            scripts: Arc::clone(&scripts),
            clock,
            holder: name.clone(),
            trouble: Arc::clone(&trouble),
            filled: Arc::clone(&filled),
        };
        Ok(Valkey {
            ground: Ground { link, scripts, trouble, holder: name, channel: keys.changes() },
            refill: Arc::new(refill),
            reports: Reports::new(keys.health(), keys.news(), target.poll),
            keys,
            clock,
            sharing: Sharing { holder: Holder(holder), assumed: target.replicas_assumed },
            timeout: target.timeout,
            wanted: Notify::new(),
            stirred: Notify::new(),
            passes: watch::Sender::new(0),
            filled,
            leaving: AtomicBool::new(false),
            late: AtomicBool::new(false),
        })
    }

    /// Who this process is.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        self.sharing
    }

    /// Where limits of clients are counted; a slot that is not prolonged lives for `slot_life`.
    pub(crate) fn limit_store(&self, slot_life: Duration) -> LimitStore {
        let Ground { link, scripts, trouble, holder, .. } = &self.ground;
        LimitStore::new(link, scripts, trouble, &self.keys, holder, self.timeout, slot_life)
    }

    /// Whether Valkey answers.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.ground.link.is_up()
    }

    /// Whether it answers, and soon enough for the ceilings in use.
    #[must_use]
    pub fn keeps_up(&self) -> bool {
        self.is_up() && !self.late.load(Relaxed)
    }

    /// Round trips and errors so far.
    #[must_use]
    pub fn counts(&self, op: Op) -> (u64, u64) {
        self.ground.link.counts().of(op)
    }

    /// Something was changed here that others should know: a hit, a probe's outcome.
    pub fn stir(&self) {
        self.stirred.notify_one();
    }

    /// Tokens are wanted that are not here; waits until some came, or for as long as anybody may wait for the store.
    pub async fn wait_for_tokens(&self) {
        let filled = self.filled.notified();
        tokio::pin!(filled);
        filled.as_mut().enable();
        self.wanted.notify_one();
        // In vain: the caller looks again and finds what there is.
        let _ = timeout(self.timeout, filled).await;
    }

    /// Keeps the handles of `memory` in step until it is dropped. `changed` is called when something was parked or came
    /// back because of others, `news` with what others found at endpoints.
    pub async fn run(&self, memory: &Memory, changed: impl Fn(), news: impl Fn(Vec<News>)) {
        let (changes, heard) = mpsc::channel(1);
        let (told, unread) = mpsc::channel(UNREAD);
        tokio::select! {
            () = self.ground.link.keep(Ears { changes, news: told }) => {}
            () = self.reports.run(&self.ground, unread, news) => {}
            () = self.refill_leases(memory) => {}
            () = self.keep_in_step(memory, heard, changed) => {}
        }
    }

    /// Tells all others what a check found at `subject` (see [`crate::subject`]).
    pub fn found(&self, subject: String, finding: Finding) {
        self.reports.found(subject, finding);
    }

    /// Tells all others that `subject` was ejected here.
    pub fn ejected(&self, subject: String) {
        self.reports.ejected(subject);
    }

    /// All flags and their values, as people wrote them. One round trip.
    ///
    /// # Errors
    /// Valkey does not answer, or what is there is no hash.
    pub async fn flags(&self) -> Result<Vec<(String, String)>, Failure> {
        self.ground.link.counts().tripped(Op::Flags);
        let script = &self.ground.scripts.flags;
        let answer =
            self.ground.link.run(Op::Flags, script, vec![self.keys.flags()], vec![], subject::LIMIT).await?;
        let words: Vec<String> =
            answer.into_array().iter().map(|word| word.as_string().unwrap_or_default()).collect();
        let pairs = words.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone()));
        Ok(pairs.collect())
    }

    /// Tells what was not told yet, returns tokens, and says goodbye. Nobody must dispatch any more.
    pub async fn goodbye(&self, memory: &Memory) {
        self.leaving.store(true, Relaxed);
        if !self.is_up() {
            return;
        }
        let farewell = async {
            self.pass(&mut HashMap::new(), memory, Depth::Usual).await;
            for account in memory.accounts() {
                self.refill.give_back(&account, &self.keys.account(&account.name)).await;
            }
        };
        if timeout(GOODBYE, farewell).await.is_err() {
            tracing::warn!("valkey did not hear our goodbye in time");
        }
    }

    fn of(&self, named: Named<'_>) -> Of {
        match named {
            Named::Account(name) => self.keys.account(name),
            Named::Address(place) => self.keys.address(place),
        }
    }

    fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    async fn refill_leases(&self, memory: &Memory) {
        let mut steps = StepWatch::new(self.clock);
        let mut turns = self.ground.link.turns();
        let mut last_ask: Option<Instant> = None;
        loop {
            let spent = last_ask.is_some_and(|last| last.elapsed() < SPENT_FOR);
            tokio::select! {
                () = sleep(if spent { REFILL.0 } else { REFILL.1 }) => {}
                () = self.wanted.notified() => {}
                Ok(()) = turns.changed() => {}
            }
            let stepped = steps.stepped();
            let (mut asked, mut late) = (false, false);
            for account in memory.accounts() {
                if stepped {
                    account.gate.leases().iter().for_each(ledger::Leased::void);
                }
                asked |= self.refill_account(&account);
                late |= account.gate.leases().iter().any(|lease| lease.is_late((self.clock)()));
            }
            if self.late.swap(late, Relaxed) != late && late {
                tracing::warn!("valkey answers too late: tokens of ceilings with short windows stay unused");
            }
            if asked {
                self.ground.link.counts().tripped(Op::Lease);
                last_ask = Some(Instant::now());
            }
        }
    }

    fn refill_account(&self, account: &Arc<Account>) -> bool {
        let (leases, now, up) = (account.gate.leases(), (self.clock)(), self.is_up());
        for lease in leases {
            if up { lease.back(now) } else { lease.cut_off(now) }
        }
        up && !leases.is_empty() && !self.is_leaving() && self.refill.ask(account, &self.keys)
    }
}

impl std::fmt::Debug for Valkey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Valkey").field("sharing", &self.sharing).finish_non_exhaustive()
    }
}
