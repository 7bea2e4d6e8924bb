//! What the hub is told. Data; what each means is decided in `hub`.

use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::action::Fetch;
use crate::frame::Notification;
use crate::ids::{CallId, ClientId, EndpointId, FetchId, SocketId, SubscriptionId};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client asks for a subscription. `tag` comes back with the answer.
    Subscribe { client: ClientId, tag: u64, method: Box<str>, params: Bytes },
    /// A client gives one back.
    Unsubscribe { client: ClientId, tag: u64, id: SubscriptionId },
    /// A client's socket has ended.
    Gone { client: ClientId },
    /// An upstream socket is open.
    Opened { socket: SocketId },
    /// An upstream socket could not be opened; its endpoint says when again, if it does.
    Refused { socket: SocketId, again: Option<Duration> },
    /// An upstream socket has ended.
    Closed { socket: SocketId, end: End },
    /// A call on an upstream socket was answered.
    Answered { socket: SocketId, call: CallId, answer: Answer },
    /// An upstream socket told something.
    Notified { socket: SocketId, notification: Notification },
    /// A fetch was answered with this `result` (raw JSON, may be `null`).
    Fetched { fetch: FetchId, result: Bytes },
    /// A fetch could not be answered.
    Unfetched { fetch: FetchId },
    /// All endpoints of the chain that have a WebSocket, the preferred first.
    Endpoints(Vec<Candidate>),
    /// An endpoint was seen to have this block (by a health check, by an answer).
    Head { endpoint: EndpointId, number: u64 },
    /// Time has passed: [`crate::Hub::next_timer`] is due.
    Tick,
}

/// An endpoint that has a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub endpoint: EndpointId,
    /// It may be given more: healthy, not parked, not draining. What it has is kept either way.
    pub eligible: bool,
    /// Not parked, healthy or not: it may be asked for a first subscription when nobody eligible made it.
    pub open: bool,
}

/// How an upstream socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A provider's own time limit or restart (close 1000, 1001, 1012): no failure.
    Normal,
    /// Any other close, a reset, an end without a close, or silence.
    Failed,
}

/// The answer to a call on an upstream socket.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The raw JSON of `result`.
    Result(Bytes),
    /// An error: the whole answer, and whose matter it is.
    Error { answer: Bytes, blame: Blame },
    /// None came in time, or it was not to be read.
    None,
}

/// Whose matter an error is, as `detect` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The client asked wrongly: passed to it at once.
    Client,
    /// This endpoint cannot: another is asked, and if none can, the first refusal is passed on.
    Capability,
    /// A limit.
    Limit { again: Option<Duration> },
    /// The endpoint's.
    Upstream,
}

/// The ceilings of the endpoints' accounts: what the hub opens and subscribes counts as use.
pub trait Allowance {
    /// Takes room for one connect or call at `endpoint`.
    fn take(&mut self, endpoint: EndpointId, now: Instant) -> Grant;
}

/// Whether there was room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    Now,
    /// Not before this time.
    At(Instant),
}

impl Event {
    /// The answer to `fetch`, from a `result` that may be missing.
    #[must_use]
    pub fn fetched(fetch: &Fetch, result: Option<Bytes>) -> Self {
        match result {
            Some(result) => Self::Fetched { fetch: fetch.id, result },
            None => Self::Unfetched { fetch: fetch.id },
        }
    }
}
