//! The open sockets of one worker: all of them end when the process does, and the one that holds most is cut off when
//! all together hold too much.

use super::close::Why;
use super::outbox::{Outbox, Taken};
use super::subscribe::Waiting;
use crate::metrics::ChainCounts;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio_tungstenite::tungstenite::Utf8Bytes;

#[derive(Default)]
pub(crate) struct Sockets {
    open: RefCell<HashMap<u64, Rc<Peer>>>,
    next: Cell<u64>,
    leaving: Cell<bool>,
}

/// What others may know of an open socket.
pub(super) struct Peer {
    pub(super) outbox: Outbox,
    pub(super) counts: Rc<ChainCounts>,
    /// The endpoint that told it of the newest head.
    pub(super) newest: Cell<Option<u32>>,
    /// Calls about subscriptions that the hub has not answered.
    waiting: RefCell<HashMap<u64, Waiting>>,
    tags: Cell<u64>,
}

impl Peer {
    pub(super) fn new(outbox: Outbox, counts: &Rc<ChainCounts>) -> Peer {
        Peer {
            outbox,
            counts: Rc::clone(counts),
            newest: Cell::new(None),
            waiting: RefCell::default(),
            tags: Cell::new(0),
        }
    }

    pub(super) fn next_tag(&self) -> u64 {
        self.tags.set(self.tags.get() + 1);
        self.tags.get()
    }

    /// Whether it ever asked for a subscription.
    pub(super) fn has_asked(&self) -> bool {
        self.tags.get() > 0
    }

    pub(super) fn wait(&self, tag: u64, waiting: Waiting) {
        self.waiting.borrow_mut().insert(tag, waiting);
    }

    pub(super) fn take_waiting(&self, tag: u64) -> Option<Waiting> {
        let waiting = self.waiting.borrow_mut().remove(&tag);
        // Another call may be read now.
        self.outbox.stir();
        waiting
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.borrow().len()
    }
}

impl Sockets {
    /// Adds a socket; its number, until [`Sockets::remove`].
    pub(super) fn add(&self, peer: &Rc<Peer>) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut().insert(number, Rc::clone(peer));
        if self.leaving.get() {
            peer.outbox.close(Why::Shutdown);
        }
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.open.borrow_mut().remove(&number);
    }

    pub(super) fn peer(&self, number: u64) -> Option<Rc<Peer>> {
        self.open.borrow().get(&number).map(Rc::clone)
    }

    /// The process is about to go: all sockets end, and those still to come at once.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.open.borrow().values().for_each(|peer| peer.outbox.close(Why::Shutdown));
    }

    /// Queues an answer; who holds most is cut off until there is room for it.
    pub(super) fn answer(&self, outbox: &Outbox, text: &Utf8Bytes) {
        self.make_room(outbox, || outbox.answer(text.clone()));
    }

    fn make_room(&self, outbox: &Outbox, take: impl Fn() -> Taken) {
        while take() == Taken::NoBudget {
            if !self.cut_largest() {
                // Others hold it all: this one has to go.
                outbox.close(Why::Slow);
            }
        }
    }

    /// Queues what a subscription told: it does not wait for who is too slow.
    pub(super) fn notify(&self, outbox: &Outbox, text: &Utf8Bytes) {
        if outbox.is_full_for(text.len()) {
            outbox.close(Why::Slow);
        } else {
            self.make_room(outbox, || outbox.tell(text.clone()));
        }
    }

    fn cut_largest(&self) -> bool {
        let open = self.open.borrow();
        let waiting = open.values().map(|peer| &peer.outbox).filter(|outbox| outbox.bytes() > 0);
        let largest = waiting.max_by_key(|outbox| outbox.bytes());
        if let Some(largest) = largest {
            largest.close(Why::Slow);
        }
        largest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Budget, Purse};
    use std::sync::Arc;

    fn open(sockets: &Sockets, budget: &Arc<Budget>, most: u64) -> Rc<Peer> {
        let outbox = Outbox::new(Purse::of(budget).open(), most);
        let peer = Rc::new(Peer::new(outbox, &Rc::new(ChainCounts::new(1, "main".into()))));
        sockets.add(&peer);
        peer
    }

    #[test]
    fn the_largest_is_cut_off_for_want_of_room() {
        let (sockets, budget) = (Sockets::default(), Budget::new(10));
        let [small, large, new] = [(); 3].map(|()| open(&sockets, &budget, 100));
        sockets.answer(&small.outbox, &"xx".into());
        sockets.answer(&large.outbox, &"xxxxxxx".into());
        sockets.answer(&new.outbox, &"xxxx".into());
        let closing = |peer: &Rc<Peer>| peer.outbox.closing();
        assert_eq!((closing(&small), closing(&large), closing(&new)), (None, Some(Why::Slow), None));
        assert_eq!(new.outbox.bytes(), 4, "kills: an answer that is lost although room was made");
        sockets.answer(&new.outbox, &"x".repeat(11).into());
        assert_eq!(closing(&new), Some(Why::Slow), "kills: waiting for ever for what never fits");
    }

    #[test]
    fn who_falls_behind_what_it_subscribed_to_is_cut_off() {
        let (sockets, budget) = (Sockets::default(), Budget::new(100));
        let peer = open(&sockets, &budget, 10);
        sockets.notify(&peer.outbox, &"x".repeat(20).into());
        assert_eq!(peer.outbox.closing(), None, "one that is larger than the queue may wait alone");
        let peer = open(&sockets, &budget, 10);
        for closing in [None, None, Some(Why::Slow)] {
            sockets.notify(&peer.outbox, &"xxxxx".into());
            assert_eq!(peer.outbox.closing(), closing);
        }
    }

    #[test]
    fn all_end_with_the_process_and_late_ones_at_once() {
        let (sockets, budget) = (Sockets::default(), Budget::new(10));
        let early = open(&sockets, &budget, 1);
        sockets.leave();
        let late = open(&sockets, &budget, 1);
        let closing = (early.outbox.closing(), late.outbox.closing());
        assert_eq!(closing, (Some(Why::Shutdown), Some(Why::Shutdown)));
    }
}
