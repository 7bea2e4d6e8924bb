//! What is to be looked at when. A timer is a reminder: whoever is reminded looks whether there is anything to do.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::ids::{CallId, GroupId, SocketId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A deadline, or something to fetch again.
    Group(GroupId),
    /// Idle, standing still, or something to ask.
    Socket(SocketId),
    /// An answer that should have come.
    Call(SocketId, CallId),
    /// A pause or a ceiling has ended.
    Place,
}

#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Instant, Timer)>);

impl Timers {
    pub(super) fn set(&mut self, at: Instant, timer: Timer) {
        self.0.insert((at, timer));
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    pub(super) fn due(&mut self, now: Instant) -> Option<Timer> {
        let (at, timer) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some(timer)
    }
}
