//! What waits to be written to one client: bounded for each socket and, by a budget, for all of them. Who falls too
//! far behind is cut off; what it was owed is forgotten at once.

use crate::net::Reservation;
use crate::socket::close::Why;
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::task::Waker;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// Longer messages go out in frames of this size: the buffer they are written from stays as small.
const FRAGMENT: usize = 32 * 1024;

pub(crate) struct Outbox {
    state: RefCell<State>,
    most: usize,
}

struct State {
    queue: VecDeque<Utf8Bytes>,
    /// What subscriptions told, kept back while `holds` is above zero.
    told: VecDeque<Utf8Bytes>,
    holds: usize,
    /// What is left of a message whose first frames are out.
    rest: Option<Bytes>,
    /// In the queue, in the rest and kept back.
    bytes: usize,
    held: Reservation,
    close: Option<Why>,
    waker: Option<Waker>,
}

/// Whether a message was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Yes,
    /// All sockets together hold as much as they may.
    NoBudget,
}

impl Outbox {
    pub(super) fn new(held: Reservation, most: u64) -> Outbox {
        let (queue, told) = (VecDeque::new(), VecDeque::new());
        let state = State { queue, told, holds: 0, rest: None, bytes: 0, held, close: None, waker: None };
        Outbox { state: RefCell::new(state), most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    /// An answer to a call: the caller waited for [`Outbox::has_room`], so that one answer is never too large.
    pub(super) fn answer(&self, text: Utf8Bytes) -> Taken {
        self.state.borrow_mut().push(text, false)
    }

    /// What a subscription told.
    pub(super) fn tell(&self, text: Utf8Bytes) -> Taken {
        self.state.borrow_mut().push(text, true)
    }

    /// Keeps what subscriptions tell back, until [`Outbox::release`] was called as often.
    pub(super) fn hold(&self) {
        self.state.borrow_mut().holds += 1;
    }

    pub(super) fn release(&self) {
        let mut state = self.state.borrow_mut();
        state.holds -= 1;
        if state.holds == 0 {
            let mut told = std::mem::take(&mut state.told);
            state.queue.append(&mut told);
            state.wake();
        }
    }

    /// Whether another answer may come. What is kept back waits for one.
    pub(super) fn has_room(&self) -> bool {
        let state = self.state.borrow();
        state.bytes < self.most || state.holds > 0
    }

    /// Whether something could be written now.
    pub(super) fn has_next(&self) -> bool {
        let state = self.state.borrow();
        state.rest.is_some() || !state.queue.is_empty()
    }

    /// Whether `more` would wait behind too much.
    pub(super) fn is_full_for(&self, more: usize) -> bool {
        let bytes = self.state.borrow().bytes;
        bytes > 0 && bytes + more > self.most
    }

    /// Wakes the socket's task.
    pub(super) fn stir(&self) {
        self.state.borrow_mut().wake();
    }

    pub(super) fn bytes(&self) -> usize {
        self.state.borrow().bytes
    }

    /// The next frame to write.
    pub(super) fn frame(&self) -> Option<Message> {
        let mut state = self.state.borrow_mut();
        if let Some(rest) = state.rest.take() {
            return Some(state.split(rest, Data::Continue));
        }
        let text = state.queue.pop_front()?;
        if text.len() > FRAGMENT {
            return Some(state.split(text.into(), Data::Text));
        }
        state.give_back(text.len());
        Some(Message::Text(text))
    }

    /// Asks the socket to end; the first reason stands.
    pub(super) fn close(&self, why: Why) {
        let mut state = self.state.borrow_mut();
        state.close.get_or_insert(why);
        if why == Why::Slow {
            state.forget();
        }
        state.wake();
    }

    pub(super) fn closing(&self) -> Option<Why> {
        self.state.borrow().close
    }

    /// Forgets what waits: the socket ends.
    pub(super) fn forget(&self) {
        self.state.borrow_mut().forget();
    }

    /// Who is woken by a message or by [`Outbox::close`].
    pub(super) fn wakes(&self, waker: &Waker) {
        let mut state = self.state.borrow_mut();
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            None => state.waker = Some(waker.clone()),
        }
    }
}

impl State {
    fn push(&mut self, text: Utf8Bytes, told: bool) -> Taken {
        // At the end of the process what was asked is answered still; else nobody will read this.
        if self.close.is_some_and(|why| why != Why::Shutdown) {
            return Taken::Yes;
        }
        if !self.held.try_grow(text.len()) {
            return Taken::NoBudget;
        }
        self.bytes += text.len();
        if told && self.holds > 0 {
            self.told.push_back(text);
        } else {
            self.queue.push_back(text);
            self.wake();
        }
        Taken::Yes
    }

    fn split(&mut self, mut message: Bytes, kind: Data) -> Message {
        let last = message.len() <= FRAGMENT;
        let part = message.split_to(message.len().min(FRAGMENT));
        self.give_back(part.len());
        if !last {
            self.rest = Some(message);
        }
        Message::Frame(Frame::message(part, OpCode::Data(kind), last))
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.held.give_back(bytes);
    }

    fn forget(&mut self) {
        self.queue = VecDeque::new();
        self.told = VecDeque::new();
        self.rest = None;
        let bytes = self.bytes;
        self.give_back(bytes);
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Budget, Purse};

    fn outbox(budget: usize, most: u64) -> Outbox {
        Outbox::new(Purse::of(&Budget::new(budget)).open(), most)
    }

    fn text(bytes: usize) -> Utf8Bytes {
        "x".repeat(bytes).into()
    }

    #[test]
    fn what_was_taken_comes_out_in_order_and_frees_the_budget() {
        let outbox = outbox(10, 10);
        assert_eq!(outbox.answer("first".into()), Taken::Yes);
        assert_eq!(outbox.answer("again".into()), Taken::Yes);
        assert_eq!(outbox.answer("x".into()), Taken::NoBudget, "kills: taking beyond the budget");
        assert!(!outbox.has_room());
        for expected in ["first", "again"] {
            assert_eq!(outbox.frame().expect("a frame").to_text().expect("text"), expected);
        }
        assert_eq!((outbox.frame(), outbox.bytes()), (None, 0));
        assert_eq!(outbox.answer(text(10)), Taken::Yes, "kills: a budget that is not given back");
    }

    #[test]
    fn a_long_message_goes_out_in_pieces_and_is_counted_until_the_last() {
        let outbox = outbox(1 << 20, 1 << 20);
        assert_eq!(outbox.answer(text(2 * FRAGMENT + 1)), Taken::Yes);
        let mut seen = Vec::new();
        while let Some(Message::Frame(frame)) = outbox.frame() {
            let header = frame.header();
            seen.push((header.opcode, header.is_final, frame.payload().len(), outbox.bytes()));
        }
        let (text, more) = (OpCode::Data(Data::Text), OpCode::Data(Data::Continue));
        let expected =
            [(text, false, FRAGMENT, FRAGMENT + 1), (more, false, FRAGMENT, 1), (more, true, 1, 0)];
        assert_eq!(seen, expected);
    }

    #[test]
    fn who_is_cut_off_for_being_slow_frees_what_it_held() {
        let outbox = outbox(10, 10);
        assert_eq!(outbox.answer(text(10)), Taken::Yes);
        outbox.close(Why::Slow);
        outbox.close(Why::Shutdown);
        assert_eq!((outbox.bytes(), outbox.closing()), (0, Some(Why::Slow)), "the first reason stands");
        assert_eq!(outbox.answer(text(10)), Taken::Yes);
        assert_eq!(outbox.bytes(), 0, "kills: filling a socket that ends");
    }

    // Kills: something told before the batch that subscribed is answered, and what is lost or doubled meanwhile.
    #[test]
    fn what_is_told_waits_for_the_answer_of_the_batch() {
        let outbox = outbox(100, 100);
        let next = || outbox.frame().map(|frame| frame.to_text().expect("text").to_owned());
        outbox.hold();
        outbox.hold();
        assert_eq!(outbox.tell("head".into()), Taken::Yes);
        outbox.release();
        assert_eq!((next(), outbox.bytes()), (None, 4), "two batches, and one is not answered");
        assert_eq!(outbox.answer("answer".into()), Taken::Yes);
        outbox.release();
        assert_eq!(outbox.tell("next".into()), Taken::Yes);
        let order = [next(), next(), next(), next()];
        assert_eq!(
            order,
            ["answer", "head", "next", ""].map(|text| Some(text.to_owned()).filter(|t| !t.is_empty()))
        );
        assert_eq!(outbox.bytes(), 0);
    }

    #[test]
    fn answers_are_taken_while_the_process_ends() {
        let outbox = outbox(10, 10);
        outbox.close(Why::Shutdown);
        assert_eq!((outbox.answer(text(1)), outbox.bytes()), (Taken::Yes, 1));
    }
}
