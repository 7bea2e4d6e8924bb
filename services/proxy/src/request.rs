//! One client request on its way: who serves it, until when, and the story it leaves.

use crate::caller::Toll;
use crate::fleet::Chain;
use crate::upstream::Codings;
use crate::why::{Record, What};
use crate::worker::Worker;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What stays the same over all attempts of a request.
pub(crate) struct Request<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) chain: &'a Arc<Chain>,
    pub(crate) started: Instant,
    pub(crate) deadline: Instant,
    /// Content codings that the client and we both read.
    pub(crate) codings: Codings,
    /// The client asked for archive nodes.
    pub(crate) archive: bool,
    /// The number of the endpoint that is asked first if it may be: it told this client of the newest head.
    pub(crate) prefer: Option<u32>,
    pub(crate) story: RefCell<Record>,
    /// What its caller was charged, if anything.
    pub(crate) toll: Option<Toll>,
}

impl Request<'_> {
    /// Adds to the story that `why` tells.
    pub(crate) fn tell(&self, what: What) {
        self.tell_of(Instant::now(), what);
    }

    /// The same of something that happened at `at`.
    pub(crate) fn tell_of(&self, at: Instant, what: What) {
        self.story.borrow_mut().push(at.saturating_duration_since(self.started), what);
    }

    /// What stories call an endpoint of its chain; this worker knows its name from now on.
    pub(crate) fn number(&self, index: u16) -> u32 {
        let endpoint = self.chain.at(index);
        self.worker.metrics.endpoint(self.chain, endpoint);
        endpoint.number
    }

    /// Something is sent for it: from now on it costs what it was charged.
    pub(crate) fn dispatching(&self) {
        if let Some(toll) = &self.toll {
            toll.keep();
        }
    }

    /// Until when one attempt begun at `now` may take.
    pub(crate) fn attempt_limit(&self, now: Instant) -> Instant {
        self.deadline.min(now + self.worker.app.settings.proxy_timeout_per_try)
    }

    pub(crate) fn left(&self, now: Instant) -> Duration {
        self.deadline.saturating_duration_since(now)
    }
}
