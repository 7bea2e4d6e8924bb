//! What happens next: events in the order of their time, and of their making where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events to come, by virtual microseconds.
#[derive(Debug)]
pub(crate) struct Events<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    made: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: u64,
    made: u64,
    event: E,
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), made: 0 }
    }
}

impl<E> Events<E> {
    pub(crate) fn at(&mut self, at: u64, event: E) {
        self.made += 1;
        self.heap.push(Reverse(Entry { at, made: self.made, event }));
    }

    pub(crate) fn next(&mut self) -> Option<(u64, E)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.made) == (other.at, other.made)
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.made).cmp(&(other.at, other.made))
    }
}
