//! The open sockets of one worker: all of them end when the process does, and the one that holds most is cut off when
//! all together hold too much.

use super::close::Why;
use super::outbox::{Outbox, Taken};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio_tungstenite::tungstenite::Utf8Bytes;

#[derive(Default)]
pub(crate) struct Sockets {
    open: RefCell<HashMap<u64, Rc<Outbox>>>,
    next: Cell<u64>,
    leaving: Cell<bool>,
}

impl Sockets {
    /// Adds a socket; its number, until [`Sockets::remove`].
    pub(super) fn add(&self, outbox: &Rc<Outbox>) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        self.open.borrow_mut().insert(number, Rc::clone(outbox));
        if self.leaving.get() {
            outbox.close(Why::Shutdown);
        }
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.open.borrow_mut().remove(&number);
    }

    /// The process is about to go: all sockets end, and those still to come at once.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.open.borrow().values().for_each(|outbox| outbox.close(Why::Shutdown));
    }

    /// Queues an answer; who holds most is cut off until there is room for it.
    pub(super) fn answer(&self, outbox: &Outbox, text: &Utf8Bytes) {
        while outbox.answer(text.clone()) == Taken::NoBudget {
            if !self.cut_largest() {
                // Others hold it all: this one has to go.
                outbox.close(Why::Slow);
            }
        }
    }

    fn cut_largest(&self) -> bool {
        let open = self.open.borrow();
        let largest = open.values().filter(|outbox| outbox.bytes() > 0).max_by_key(|outbox| outbox.bytes());
        if let Some(largest) = largest {
            largest.close(Why::Slow);
        }
        largest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Budget;

    #[test]
    fn the_largest_is_cut_off_for_want_of_room() {
        let (sockets, budget) = (Sockets::default(), Budget::new(10));
        let outbox = || {
            let outbox = Rc::new(Outbox::new(budget.open(), 100));
            sockets.add(&outbox);
            outbox
        };
        let (small, large, new) = (outbox(), outbox(), outbox());
        sockets.answer(&small, &"xx".into());
        sockets.answer(&large, &"xxxxxxx".into());
        sockets.answer(&new, &"xxxx".into());
        assert_eq!((small.closing(), large.closing(), new.closing()), (None, Some(Why::Slow), None));
        assert_eq!(new.bytes(), 4, "kills: an answer that is lost although room was made");
        sockets.answer(&new, &"x".repeat(11).into());
        assert_eq!(new.closing(), Some(Why::Slow), "kills: waiting for ever for what never fits");
    }

    #[test]
    fn all_end_with_the_process_and_late_ones_at_once() {
        let (sockets, budget) = (Sockets::default(), Budget::new(10));
        let early = Rc::new(Outbox::new(budget.open(), 1));
        sockets.add(&early);
        sockets.leave();
        let late = Rc::new(Outbox::new(budget.open(), 1));
        sockets.add(&late);
        assert_eq!((early.closing(), late.closing()), (Some(Why::Shutdown), Some(Why::Shutdown)));
    }
}
