//! A request from its arrival to its answer's head: counted while it is in flight, its story kept however it ends.

use super::admission::Hold;
use super::{enveloped, intake, malformed_body, wants_archive};
use crate::caller::Caller;
use crate::fleet::Chain;
use crate::net::Body;
use crate::reply::Problem;
use crate::request::Request;
use crate::upstream::Codings;
use crate::why::{Record, RequestId};
use crate::worker::Worker;
use bytes::Bytes;
use http::{Response, StatusCode, request::Parts};
use hyper::body::Incoming;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

/// A request while it is being answered. Dropped early (the client went away) it still leaves its story.
pub(crate) struct Visit<'a> {
    worker: &'a Worker,
    chain: &'a Arc<Chain>,
    story: Option<Record>,
    started: Instant,
    in_flight: bool,
}

/// What nginx logs when the client closed the connection first.
const CLIENT_WENT_AWAY: u16 = 499;

impl<'a> Visit<'a> {
    pub(crate) fn begin(worker: &'a Worker, chain: &'a Arc<Chain>, id: RequestId, now: u64) -> Visit<'a> {
        let story = worker.stories.borrow_mut().start(id, now);
        worker.metrics.in_flight.set(worker.metrics.in_flight.get() + 1);
        Visit { worker, story: Some(story), chain, started: Instant::now(), in_flight: true }
    }

    pub(crate) fn chain(&self) -> &'a Arc<Chain> {
        self.chain
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.started + self.worker.app.settings.proxy_timeout
    }

    pub(super) async fn answer(
        &mut self,
        id: RequestId,
        head: &Parts,
        body: Incoming,
        caller: Option<&Caller>,
    ) -> Response<Body> {
        let (body, _reservation) = match intake::read(self.worker, head, body, self.deadline()).await {
            Ok(read) => read,
            Err(problem) => return self.problem(&problem, None, id),
        };
        let mut request = self.request(id, head);
        let response = self.enveloped(&mut request, caller, Hold::Slot, &body, id).await;
        self.keep_story(request);
        response
    }

    /// The request that `head` announces. Its story comes back with [`Visit::keep_story`].
    pub(crate) fn request(&mut self, id: RequestId, head: &Parts) -> Request<'a> {
        self.new_request(id, Codings::offered(&head.headers), wants_archive(head.uri.query()))
    }

    pub(super) fn new_request(&mut self, id: RequestId, codings: Codings, archive: bool) -> Request<'a> {
        Request {
            worker: self.worker,
            chain: self.chain,
            started: self.started,
            deadline: self.deadline(),
            codings,
            archive,
            prefer: None,
            story: RefCell::new(self.story.take().unwrap_or_else(|| Record::empty(id))),
            toll: None,
        }
    }

    pub(crate) fn keep_story(&mut self, request: Request<'_>) {
        self.story = Some(request.story.into_inner());
    }

    pub(super) async fn enveloped(
        &self,
        request: &mut Request<'_>,
        caller: Option<&Caller>,
        hold: Hold,
        body: &Bytes,
        id: RequestId,
    ) -> Response<Body> {
        let most = usize::try_from(self.worker.app.settings.max_batch).unwrap_or(usize::MAX);
        match jsonrpc::parse(body, most) {
            Ok(envelope) => enveloped(request, caller, hold, &envelope, body, id).await,
            Err(malformed) => malformed_body(request, &malformed, body, id),
        }
    }

    pub(crate) fn problem(
        &mut self,
        problem: &Problem,
        call: Option<&[u8]>,
        id: RequestId,
    ) -> Response<Body> {
        self.note(problem);
        problem.respond(call, id, crate::clock::unix_ms())
    }

    /// Keeps why the request was refused.
    pub(super) fn note(&mut self, problem: &Problem) {
        if let Some(story) = &mut self.story {
            story.reason = Some(problem.reason());
        }
        if problem.is_about_the_caller() {
            self.worker.metrics.refused(self.chain, problem.reason());
        }
    }

    pub(crate) fn end(&mut self, status: StatusCode) {
        self.close(status.as_u16());
    }

    fn close(&mut self, status: u16) {
        if !std::mem::take(&mut self.in_flight) {
            return;
        }
        let (metrics, took) = (&self.worker.metrics, self.started.elapsed());
        metrics.in_flight.set(metrics.in_flight.get() - 1);
        let counts = metrics.chain(self.chain);
        counts.answered(status, took);
        if let Some(mut story) = self.story.take() {
            story.chain = Some(self.chain.number);
            story.rules = self.chain.tables.generation;
            story.status = status;
            story.took = took;
            self.worker.stories.borrow_mut().finish(story);
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.close(CLIENT_WENT_AWAY);
    }
}
