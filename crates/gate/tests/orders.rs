//! Any order of events: what must hold after each.

use gate::{ConcurrencyGate, Entry, Permit, Waiting};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[derive(Clone, Copy, Debug)]
enum Event {
    Come,
    Leave(usize),
    Limit(u32),
    Cancel(usize),
    Look(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Come),
        3 => (0..8usize).prop_map(Event::Leave),
        1 => (0..6u32).prop_map(Event::Limit),
        1 => (0..8usize).prop_map(Event::Cancel),
        2 => (0..8usize).prop_map(Event::Look),
    ]
}

proptest! {
    /// Kills: any admission past the limit, any free place that somebody waits for, and any that leaks.
    #[test]
    fn never_too_many_and_never_an_idle_place(limit in 0..6u32, queue in 0..6u32, events in prop::collection::vec(event(), 1..80)) {
        let gate = ConcurrencyGate::new(NonZeroU32::new(limit), queue);
        let mut inside: Vec<Permit> = Vec::new();
        let mut waiting: VecDeque<Pin<Box<Waiting>>> = VecDeque::new();
        for event in events {
            let before = gate.load();
            match event {
                Event::Come => match gate.enter() {
                    Entry::Admitted(permit) => {
                        prop_assert_eq!(before.waiting, 0, "it passed those who wait");
                        inside.push(permit);
                    }
                    Entry::Queued(new) => waiting.push_back(Box::pin(new)),
                    Entry::Full => prop_assert_eq!(before.waiting, queue as usize),
                },
                Event::Leave(at) if at < inside.len() => drop(inside.swap_remove(at)),
                Event::Limit(limit) => gate.resize(NonZeroU32::new(limit)),
                Event::Cancel(at) if at < waiting.len() => drop(waiting.remove(at)),
                Event::Look(at) if at < waiting.len() => {
                    if let Poll::Ready(permit) = waiting[at].as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                        drop(waiting.remove(at));
                        inside.push(permit);
                    }
                }
                Event::Leave(_) | Event::Cancel(_) | Event::Look(_) => {}
            }
            let after = gate.load();
            prop_assert_eq!(after.in_flight as usize + after.waiting, inside.len() + waiting.len(), "somebody is lost");
            if let Some(limit) = after.limit {
                prop_assert!(after.in_flight <= limit.get() || after.in_flight <= before.in_flight, "{before:?} to {after:?}");
                prop_assert!(after.waiting == 0 || after.in_flight >= limit.get(), "an idle place: {after:?}");
            } else {
                prop_assert_eq!(after.waiting, 0);
            }
        }
    }
}
