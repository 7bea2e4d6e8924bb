//! Counting where all replicas count: request by request, or from leased blocks. Decides when that place is not asked any
//! more; that it may be asked again is said by its own probe only.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clients::{Breaker, Credit, Grant, Mode, Refusal, Taken, Wish, judge, standing};
use ledger::Cost;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout_at};

use super::permit::{How, Pending};
use super::subject::Subject;
use super::{Charge, ClientLimits, Denial, Lost, Receipt, millis};
use crate::valkey::{Answered, Asked, LimitStore, Miss, Place};

/// So many errands may wait. More are left undone: slots end by themselves, and tokens stay unused.
const MOST_ERRANDS: usize = 65_536;
/// A slot that somebody else just released may be on its way: so long it is waited for, once.
const BREATH: Duration = Duration::from_millis(10);

/// The request must be counted otherwise.
pub(super) struct Away;

/// What all of it shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: LimitStore,
    breaker: Mutex<Breaker>,
    started: Instant,
    lost: Lost,
    replicas: AtomicU32,
    slots: AtomicU64,
    errands: mpsc::Sender<Errand>,
    pub(super) inbox: Mutex<Option<mpsc::Receiver<Errand>>>,
    /// Subjects whose leases upkeep looks after.
    pub(super) watched: Mutex<Vec<Arc<Subject>>>,
}

/// What is done in the background.
#[derive(Debug)]
pub(super) enum Errand {
    /// Slots of this subject were released.
    Slots(Arc<Subject>),
    GiveBack(Arc<Subject>, Credit),
}

impl Shared {
    pub(super) fn new(store: LimitStore, assumed: u32, lost: Lost) -> Shared {
        let (errands, inbox) = mpsc::channel(MOST_ERRANDS);
        Shared {
            store,
            breaker: Mutex::new(Breaker::open(0)),
            started: Instant::now(),
            lost,
            replicas: AtomicU32::new(assumed),
            slots: AtomicU64::new(0),
            errands,
            inbox: Mutex::new(Some(inbox)),
            watched: Mutex::default(),
        }
    }

    pub(super) fn mode(&self, now: u64) -> Mode {
        self.breaker().mode(now, millis(self.lost.grace), self.lost.denies)
    }

    pub(super) fn is_open(&self) -> bool {
        self.breaker().is_open()
    }

    /// The last known number of proxies.
    pub(super) fn replicas(&self) -> u32 {
        self.replicas.load(Relaxed)
    }

    pub(super) fn next_slot(&self) -> u64 {
        self.slots.fetch_add(1, Relaxed)
    }

    pub(super) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds of the clock that the breaker goes by.
    pub(super) fn now(&self) -> u64 {
        millis(self.started.elapsed())
    }

    pub(super) fn told(&self, proxies: u32) {
        self.replicas.store(proxies.max(1), Relaxed);
    }

    /// A command had no answer.
    pub(super) fn missed(&self, miss: &Miss) {
        let Miss::Away(why) = miss else { return };
        if self.breaker().failed(self.now()) {
            let (grace, denies, replicas) = (self.lost.grace, self.lost.denies, self.replicas());
            tracing::warn!(
                why,
                ?grace,
                denies,
                replicas,
                "client limits are counted alone, by this proxy's share"
            );
        }
    }

    /// Slots of `subject` wait to be released. They may have been by then: the next ask takes them along.
    pub(super) fn release(&self, subject: &Arc<Subject>) {
        // Full: they end by themselves.
        let _ = self.errands.try_send(Errand::Slots(Arc::clone(subject)));
    }

    pub(super) fn give_back(&self, subject: &Arc<Subject>, tokens: Cost, granted: u64) {
        // Full: they stay unused.
        let _ = self.errands.try_send(Errand::GiveBack(Arc::clone(subject), Credit { granted, tokens }));
    }

    /// Looks after the lease of `subject` from now on.
    pub(super) fn watch(&self, subject: &Arc<Subject>) {
        if !subject.watched.swap(true, Relaxed) {
            self.watched.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(subject));
        }
    }

    /// Asks for a block, unless somebody does. The answer is taken in by a task of its own: whoever asked may be gone.
    fn fetch(self: &Arc<Self>, subject: &Arc<Subject>, started: Instant) {
        let sent = millis(started.elapsed());
        let Some(wish) = subject.state().lease.as_mut().and_then(|lease| lease.ask(sent)) else { return };
        self.watch(subject);
        let (shared, subject) = (Arc::clone(self), Arc::clone(subject));
        tokio::spawn(async move {
            let Some(place) = &subject.place else { return };
            let asked = Asked { wish, replicas: shared.replicas(), slot: None, released: &[] };
            let answer = shared.store.charge(place, &asked).await;
            shared.take_in(&subject, &wish, &answer, sent, millis(started.elapsed()));
            subject.answered.notify_waiters();
        });
    }

    fn take_in(
        &self,
        subject: &Subject,
        wish: &Wish,
        answer: &Result<Answered, Miss>,
        sent: u64,
        received: u64,
    ) {
        let mut state = subject.state();
        let Some(lease) = &mut state.lease else { return };
        match answer {
            Ok(answered) => match answered.granted {
                Some(tokens) => lease.granted(&Grant { tokens, used: answered.used, at: answered.at }, sent),
                None => lease.refused(refusal(subject, answered, wish.need, false), wish, received),
            },
            Err(miss) => {
                lease.unanswered();
                drop(state);
                self.missed(miss);
            }
        }
    }
}

impl ClientLimits {
    /// Counts one request in one round trip.
    pub(super) async fn exact(
        &self,
        shared: &Arc<Shared>,
        subject: &Arc<Subject>,
        cost: Cost,
        slot: bool,
    ) -> Result<Result<Charge, Denial>, Away> {
        let Some(place) = &subject.place else { return Err(Away) };
        if let Some(refusal) = subject.refusal(cost, slot, self.now()) {
            return Ok(Err(Denial::Refused(refusal)));
        }
        let first = self.ask_once(shared, subject, place, cost, slot).await?;
        let Err(Denial::Refused(refusal)) = &first else { return Ok(first) };
        let last = if refusal.concurrency && !refusal.requests && !refusal.units {
            sleep(BREATH).await;
            self.ask_once(shared, subject, place, cost, slot).await?
        } else {
            first
        };
        if let Err(Denial::Refused(refusal)) = &last {
            subject.refused(*refusal, cost, self.now());
        }
        Ok(last)
    }

    async fn ask_once(
        &self,
        shared: &Arc<Shared>,
        subject: &Arc<Subject>,
        place: &Place,
        cost: Cost,
        slot: bool,
    ) -> Result<Result<Charge, Denial>, Away> {
        let pending = slot.then(|| Pending::new(subject, shared));
        let released = std::mem::take(&mut subject.pot.local().released);
        let wish = Wish { need: cost, waiting: cost, more: Cost::requests(0) };
        let slot_number = pending.as_ref().map(Pending::slot);
        let asked = Asked { wish, replicas: 1, slot: slot_number, released: &released };
        let answered = match shared.store.charge(place, &asked).await {
            Ok(answered) => answered,
            Err(miss) => {
                subject.pot.local().untold(released);
                shared.missed(&miss);
                return Err(Away);
            }
        };
        if answered.granted.is_none() {
            pending.into_iter().for_each(Pending::refused);
            return Ok(Err(Denial::Refused(refusal(subject, &answered, cost, slot))));
        }
        let standing = standing(&subject.limits, &answered.used, answered.held, answered.at);
        let receipt = Receipt::new(subject, cost, How::There { at: answered.at });
        Ok(Ok(Charge { standing, receipt, permit: pending.map(Pending::granted) }))
    }

    /// Spends from a block; waits for one where there is none.
    pub(super) async fn leased(
        &self,
        shared: &Arc<Shared>,
        subject: &Arc<Subject>,
        cost: Cost,
    ) -> Result<Result<Charge, Denial>, Away> {
        if let Some(settled) = self.spend(shared, subject, cost)? {
            return Ok(settled);
        }
        let deadline = tokio::time::Instant::now() + shared.store.timeout();
        loop {
            let answered = subject.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            if let Some(settled) = self.spend(shared, subject, cost)? {
                return Ok(settled);
            }
            shared.fetch(subject, self.started);
            if timeout_at(deadline, answered).await.is_err() || shared.is_open() {
                return Err(Away);
            }
        }
    }

    fn spend(
        &self,
        shared: &Arc<Shared>,
        subject: &Arc<Subject>,
        cost: Cost,
    ) -> Result<Option<Result<Charge, Denial>>, Away> {
        let taken = match &mut subject.state().lease {
            Some(lease) => lease.take(cost, self.now()),
            None => return Err(Away),
        };
        Ok(match taken {
            Taken::Yes { standing, granted, low } => {
                if low {
                    shared.fetch(subject, self.started);
                }
                let receipt = Receipt::new(subject, cost, How::Block { granted });
                Some(Ok(Charge { standing, receipt, permit: None }))
            }
            Taken::Dry(refusal) => Some(Err(Denial::Refused(refusal))),
            Taken::Wanting => None,
        })
    }
}

/// What the store's refusal means.
fn refusal(subject: &Subject, answered: &Answered, need: Cost, slot: bool) -> Refusal {
    let judged = judge(&subject.limits, &answered.used, answered.held, need, slot, answered.at);
    // The script has judged by the same rule.
    judged.err().unwrap_or_else(|| super::denied(&subject.limits))
}
