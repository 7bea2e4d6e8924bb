//! How much memory all requests of the process may hold together.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::Notify;

/// A number of bytes that many requests share.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicUsize,
    total: usize,
    freed: Notify,
}

/// A budget as one worker holds it. Its reservations share the worker's hold on it: each would else count itself
/// where all workers count.
#[derive(Clone, Debug)]
pub(crate) struct Purse(Rc<Hold>);

#[derive(Debug)]
struct Hold(Arc<Budget>);

/// A part of a budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    purse: Purse,
    bytes: usize,
    starved: bool,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Arc<Budget> {
        Arc::new(Budget { left: AtomicUsize::new(bytes), total: bytes, freed: Notify::new() })
    }

    fn take(&self, bytes: usize) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

impl Purse {
    pub(crate) fn of(budget: &Arc<Budget>) -> Purse {
        Purse(Rc::new(Hold(Arc::clone(budget))))
    }

    /// An empty reservation, to be grown.
    pub(crate) fn open(&self) -> Reservation {
        Reservation { purse: self.clone(), bytes: 0, starved: false }
    }

    fn budget(&self) -> &Budget {
        &self.0.0
    }
}

impl Reservation {
    /// Adds `bytes` if they are free.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let taken = self.purse.budget().take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Adds `bytes`, waiting until others gave them back. Never ends for more than the whole budget:
    /// the caller sets the time limit.
    pub(crate) async fn grow(&mut self, bytes: usize) {
        self.starved = true;
        loop {
            let freed = self.purse.budget().freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.purse.budget().take(bytes) {
                self.bytes += bytes;
                self.starved = false;
                return;
            }
            freed.await;
        }
    }

    /// Whether it is waiting for others to give back.
    pub(crate) fn is_starved(&self) -> bool {
        self.starved
    }

    /// Whether this much could ever be free.
    pub(crate) fn could_hold(&self, bytes: usize) -> bool {
        bytes <= self.purse.budget().total
    }
}

impl Reservation {
    /// Gives a part back, at most what is held.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        if bytes == 0 {
            return;
        }
        self.bytes -= bytes;
        let before = self.purse.budget().left.fetch_add(bytes, Relaxed);
        // Someone waits only while little is left; waking costs nothing when nobody does.
        if before < self.purse.budget().total / 2 {
            self.purse.budget().freed.notify_waiters();
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Waker};

    #[test]
    fn what_was_taken_comes_back() {
        let budget = Purse::of(&Budget::new(10));
        let mut first = budget.open();
        assert!(first.try_grow(6) && first.try_grow(4));
        assert!(!budget.open().try_grow(1), "kills: taking without checking");
        first.give_back(1);
        assert!(budget.open().try_grow(1) && !budget.open().try_grow(2), "kills: giving back all or nothing");
        drop(first);
        assert!(budget.open().try_grow(10), "kills: forgetting a growth on drop");
    }

    #[tokio::test]
    async fn who_waits_is_woken_by_a_return() {
        let budget = Purse::of(&Budget::new(10));
        let mut first = budget.open();
        assert!(first.try_grow(10));
        let mut second = budget.open();
        let waiting = second.grow(5);
        tokio::pin!(waiting);
        let mut context = Context::from_waker(Waker::noop());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        drop(first);
        waiting.await;
        assert!(!budget.open().try_grow(6));
    }
}
