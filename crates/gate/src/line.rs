//! The arithmetic behind the lock: who is inside, who waits in which order, and who is admitted when something changes.
//!
//! While somebody waits there is no room, so who comes need not look at the queue. Whoever has a ticket and is not in the
//! queue any more has been admitted.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::task::Waker;

#[derive(Debug)]
pub(crate) struct Line {
    limit: Option<NonZeroU32>,
    /// Admitted and not gone, also those who do not know of it yet.
    in_flight: u32,
    next_ticket: u64,
    /// By ticket, so first come, first served. No waker: not polled yet.
    queue: BTreeMap<u64, Option<Waker>>,
}

/// Those who were admitted, to be woken once the lock is free.
#[derive(Debug, Default)]
#[must_use = "who was admitted would not hear of it"]
pub(crate) struct Woken(Vec<Waker>);

impl Woken {
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl Line {
    pub(crate) fn new(limit: Option<NonZeroU32>) -> Self {
        Self { limit, in_flight: 0, next_ticket: 0, queue: BTreeMap::new() }
    }

    pub(crate) fn limit(&self) -> Option<NonZeroU32> {
        self.limit
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn try_admit(&mut self) -> bool {
        let admitted = self.has_room();
        self.in_flight += u32::from(admitted);
        admitted
    }

    /// A ticket at the end of the queue.
    pub(crate) fn join(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.queue.insert(ticket, None);
        ticket
    }

    /// Whether the holder of `ticket` still has to wait; it is woken by `waker` then.
    pub(crate) fn is_waiting(&mut self, ticket: u64, waker: &Waker) -> bool {
        let Some(place) = self.queue.get_mut(&ticket) else { return false };
        match place {
            Some(known) => known.clone_from(waker),
            None => *place = Some(waker.clone()),
        }
        true
    }

    /// Takes `ticket` out of the queue; false: it is not there any more, its holder is inside.
    pub(crate) fn withdraw(&mut self, ticket: u64) -> bool {
        self.queue.remove(&ticket).is_some()
    }

    /// One of those inside is gone.
    pub(crate) fn leave(&mut self) -> Woken {
        self.in_flight -= 1;
        self.admit()
    }

    pub(crate) fn resize(&mut self, limit: Option<NonZeroU32>) -> Woken {
        self.limit = limit;
        self.admit()
    }

    fn has_room(&self) -> bool {
        self.limit.is_none_or(|limit| self.in_flight < limit.get())
    }

    /// Admits from the head of the queue for as long as there is room.
    fn admit(&mut self) -> Woken {
        let mut woken = Vec::new();
        while self.has_room() {
            let Some((_, waker)) = self.queue.pop_first() else { break };
            self.in_flight += 1;
            woken.extend(waker);
        }
        Woken(woken)
    }
}
