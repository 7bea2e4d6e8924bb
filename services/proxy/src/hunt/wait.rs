//! What a request does when every endpoint that could serve it is at its limit: wait for the soonest opening if
//! that is soon, overload a ceiling that is only our own estimate, or say so honestly.

use super::place::Place;
use super::{End, Hunt, Pass, Saturated};
use crate::gates::Permits;
use crate::reply::Problem;
use crate::why::What;
use ledger::{Cost, Door};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};
use store::Account;

/// A waiter looks again at least this often: openings can come sooner than announced.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

impl Hunt<'_> {
    /// `Some`: overload that endpoint now. `None`: look again.
    pub(super) async fn wait(
        &mut self,
        saturated: &Saturated,
        cost: Cost,
    ) -> Result<Option<(u16, Pass)>, End> {
        let now = crate::clock::unix_ms();
        let patience = self.patience();
        let until = |at: u64| Duration::from_millis(at.saturating_sub(now).max(1));
        if until(saturated.at) <= patience {
            self.sleep(until(saturated.opens).min(LOOK_AGAIN).min(patience), cost).await?;
            return Ok(None);
        }
        let Some(index) = saturated.overflow else {
            return Err(self.saturated(saturated.at));
        };
        let account = &self.request.chain.at(index).account;
        let gate = &account.gate;
        match gate.overflow(now) {
            Door::Open if gate.enter_overflow(now) => {
                self.request.tell(What::Overflow { endpoint: self.request.number(index) });
                Ok(Some((index, Pass(Arc::clone(account)))))
            }
            Door::Open | Door::Busy if !patience.is_zero() => {
                self.sleep(patience.min(Duration::from_millis(20)), cost).await?;
                Ok(None)
            }
            Door::Open | Door::Busy => Err(self.saturated(saturated.at)),
            Door::Closed { until } => Err(self.saturated(saturated.at.min(until))),
        }
    }

    /// The one wait for the shared store that there is: tokens of an account that is used for the first time.
    pub(super) async fn wait_for_tokens(&mut self) {
        let began = *self.in_doubt_since.get_or_insert_with(Instant::now);
        if let Some(valkey) = &self.request.worker.app.valkey {
            valkey.wait_for_tokens().await;
        }
        self.request.tell(What::Waited { took: began.elapsed() });
    }

    /// All its waits for tokens together last no longer than a command may.
    pub(super) fn may_wait_for_tokens(&self) -> bool {
        let most = self.request.worker.app.settings.valkey_timeout_ms;
        self.in_doubt_since.is_none_or(|since| since.elapsed() < most)
    }

    /// How long this request may still wait for capacity.
    fn patience(&self) -> Duration {
        let settings = &self.request.worker.app.settings;
        let left = self.request.left(Instant::now());
        settings.saturation_wait_ms.saturating_sub(self.waited).min(left)
    }

    /// Waits in line where there were no tokens, for so long or until it is worth looking again.
    async fn sleep(&mut self, wait: Duration, cost: Cost) -> Result<(), End> {
        let (app, began) = (&self.request.worker.app, Instant::now());
        let waiting = app.waiting.fetch_add(1, Relaxed);
        let waiter = Waiter(&app.waiting);
        if waiting >= app.settings.gate_queue {
            return Err(self.overloaded());
        }
        let accounts = self.dry_accounts();
        let place = self.place.get_or_insert_with(|| Place::new(&app.turns));
        // Called or not: what counts is what there is then.
        let _ = tokio::time::timeout(wait, place.stand(accounts, cost).notified()).await;
        drop(waiter);
        let took = began.elapsed();
        self.waited += took;
        self.request.tell(What::Waited { took });
        Ok(())
    }

    fn dry_accounts(&self) -> Vec<Arc<Account>> {
        let endpoints = (0u16..).zip(&self.request.chain.endpoints);
        let dry = endpoints.filter(|(index, _)| self.dry.contains(*index));
        dry.map(|(_, endpoint)| Arc::clone(&endpoint.account)).collect()
    }

    /// Leave to make one attempt. Taken before an endpoint is chosen: nobody waits here with an endpoint's tokens in hand.
    pub(super) async fn admitted(&mut self) -> Result<Permits, End> {
        let gates = &self.request.worker.app.gates;
        match gates.try_attempt(&self.request.chain.gate) {
            Some(permits) => Ok(permits),
            None => Box::pin(self.wait_at_the_gates()).await,
        }
    }

    async fn wait_at_the_gates(&mut self) -> Result<Permits, End> {
        let (request, began) = (self.request, Instant::now());
        let passed = request.worker.app.gates.attempt(&request.chain.gate, request.deadline).await;
        request.tell(What::Queued { took: began.elapsed() });
        match passed {
            Ok(permits) => Ok(permits),
            Err(_) if request.left(Instant::now()).is_zero() => Err(self.end(Problem::Deadline)),
            Err(_) => Err(self.overloaded()),
        }
    }

    fn overloaded(&mut self) -> End {
        let problem = Problem::overloaded(&mut *self.request.worker.rng.borrow_mut());
        self.end(problem)
    }

    fn saturated(&mut self, at: u64) -> End {
        self.request.worker.metrics.saturated(self.request.chain);
        let problem = if self.failures > 0 { Problem::AllAttemptsFailed } else { Problem::Saturated { at } };
        self.end(problem)
    }
}

/// One request in the queue; leaves it when dropped, also when the client goes away.
struct Waiter<'a>(&'a AtomicU32);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
