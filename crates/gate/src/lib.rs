//! A concurrency cap that can be tightened while it runs: who is admitted, who waits, who finds the queue full.
//!
//! Limit, admission, release and resize settle under one lock, so there is no moment at which two of them disagree. A
//! lower limit cancels nobody: it admits nobody until enough have left. It knows no clock: how long somebody waits is up
//! to the caller, who drops the [`Waiting`].

mod line;

use line::{Line, Woken};
use std::num::NonZeroU32;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// A cap on what is under way at once, first come, first served. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct ConcurrencyGate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    line: Mutex<Line>,
    /// How many may wait.
    queue: usize,
}

/// What became of somebody who came to a gate.
#[derive(Debug)]
pub enum Entry {
    /// There was room.
    Admitted(Permit),
    /// There is none: await it for as long as it is worth waiting.
    Queued(Waiting),
    /// There is none, and as many wait as may.
    Full,
}

/// A place inside. Dropped, it is free again.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once admits nobody"]
pub struct Permit(Arc<Shared>);

/// A place in the queue, and then the permit. Dropped before that, it gives back whatever it had got.
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Waiting {
    /// `None` once the permit was handed over.
    shared: Option<Arc<Shared>>,
    ticket: u64,
}

/// How full a gate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// `None`: everybody is admitted.
    pub limit: Option<NonZeroU32>,
    pub in_flight: u32,
    pub waiting: usize,
}

impl ConcurrencyGate {
    /// A gate that nobody is inside of; at most `queue` may wait at it.
    #[must_use]
    pub fn new(limit: Option<NonZeroU32>, queue: u32) -> Self {
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        Self(Arc::new(Shared { line: Mutex::new(Line::new(limit)), queue }))
    }

    /// A place, if there is one at once.
    #[must_use]
    pub fn try_enter(&self) -> Option<Permit> {
        self.0.line().try_admit().then(|| Permit(Arc::clone(&self.0)))
    }

    /// Comes to the gate. Nobody passes those who wait already.
    #[must_use]
    pub fn enter(&self) -> Entry {
        let mut line = self.0.line();
        if line.try_admit() {
            return Entry::Admitted(Permit(Arc::clone(&self.0)));
        }
        if line.waiting() >= self.0.queue {
            return Entry::Full;
        }
        let ticket = line.join();
        Entry::Queued(Waiting { shared: Some(Arc::clone(&self.0)), ticket })
    }

    /// The limit from now on. A lower one waits until enough have left, a higher one admits as many more at once.
    pub fn resize(&self, limit: Option<NonZeroU32>) {
        let woken = self.0.line().resize(limit);
        woken.wake();
    }

    /// How full it is now.
    #[must_use]
    pub fn load(&self) -> Load {
        let line = self.0.line();
        Load { limit: line.limit(), in_flight: line.in_flight(), waiting: line.waiting() }
    }
}

impl Shared {
    /// Nothing that can panic is done under the lock, so what a panic elsewhere left behind is whole.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self) {
        let woken = self.line().leave();
        woken.wake();
    }

    /// Gives up a ticket; a place that it had been granted goes to the next.
    fn cancel(&self, ticket: u64) {
        let woken = {
            let mut line = self.line();
            if line.withdraw(ticket) { Woken::default() } else { line.leave() }
        };
        woken.wake();
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Future for Waiting {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let ticket = self.ticket;
        let shared = self.shared.take().expect("a future is not polled after it was ready");
        if shared.line().is_waiting(ticket, cx.waker()) {
            self.shared = Some(shared);
            return Poll::Pending;
        }
        Poll::Ready(Permit(shared))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.cancel(self.ticket);
        }
    }
}
