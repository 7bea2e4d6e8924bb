//! How a provider behaves: well, or in one of the ways providers fail. Data; `perform` carries it out.
//!
//! Behaviours nest. Those that count (turns, limits) share their count among clones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::answer::Answer;
use crate::encode::Coding;
use crate::limit::{Limit, Meter};
use crate::node::RpcError;

/// What a provider does with a request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// Answers like a node.
    Healthy,
    /// Answers this, whatever was asked.
    Answer(Answer),
    /// HTTP 200 with this JSON-RPC error for every call.
    Error(RpcError),
    /// Every `one_in`-th item (the last of each group) of a request goes wrong.
    Items { one_in: usize, fault: ItemFault },
    /// Answers a batch in reverse order.
    Reversed,
    /// Answers within its limit, and refuses what is above it.
    Limited { meter: Arc<Mutex<Meter>>, refusal: Refusal },
    /// Waits first.
    Delay { by: Duration, inner: Box<Behaviour> },
    /// Accepts, and never answers.
    Hang,
    /// Does what was asked, and never answers.
    Swallow,
    /// Sends so many bytes of the body, and then nothing.
    HangMidBody { after_bytes: u64 },
    /// Resets the connection instead of answering.
    ResetBeforeAnswer,
    /// Sends so many bytes of the body, then resets the connection.
    ResetMidBody { after_bytes: u64 },
    /// Announces the whole body, sends half of it and closes cleanly.
    Truncated,
    /// Closes the connection cleanly instead of answering.
    CloseConnection,
    /// Does not listen (as a whole provider's behaviour; nested, it resets).
    RefuseConnections,
    /// Compresses the answer.
    Encoded { coding: Coding, inner: Box<Behaviour> },
    /// Sends the answer in chunks of this many bytes, without announcing its length.
    Chunked { size: u64, inner: Box<Behaviour> },
    /// Every `one_in`-th request meets the fault.
    Fraction { one_in: usize, turn: Turn, fault: Box<Behaviour>, otherwise: Box<Behaviour> },
    /// By the method of the first call.
    PerMethod { methods: Vec<(String, Behaviour)>, otherwise: Box<Behaviour> },
    /// One after the other; the last stays.
    Sequence { turn: Turn, steps: Vec<Behaviour> },
}

/// What goes wrong with one item of a request.
#[derive(Clone, Debug)]
pub enum ItemFault {
    /// This error.
    Error(RpcError),
    /// No answer at all.
    Missing,
}

/// How a limit is refused.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// HTTP 429 for the whole request, with a true `Retry-After` or none.
    Status { retry_after: bool },
    /// HTTP 200, and this error for each item that does not fit.
    Embedded(RpcError),
}

/// Counts how often something was done.
#[derive(Clone, Debug, Default)]
pub struct Turn(Arc<AtomicUsize>);

impl Turn {
    /// How often this was called before.
    pub(crate) fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

impl Behaviour {
    /// A bare status with a short text.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::Answer(Answer::new(status, format!("status {status}")))
    }

    /// HTTP 429, with so many seconds of `Retry-After`.
    #[must_use]
    pub fn rate_limited(retry_after: Option<u64>) -> Self {
        Self::Answer(Answer::rate_limited(retry_after))
    }

    /// HTTP 200 with a JSON-RPC error -32005 that says the rate limit was exceeded.
    #[must_use]
    pub fn embedded_limit() -> Self {
        Self::Error(limit_exceeded())
    }

    /// A page for people, with status 200.
    #[must_use]
    pub fn html() -> Self {
        let page = "<!DOCTYPE html><html><body><h1>It works!</h1></body></html>";
        Self::Answer(Answer::new(200, page).header("content-type", "text/html"))
    }

    /// Status 200 and no body.
    #[must_use]
    pub fn empty() -> Self {
        Self::Answer(Answer::json(200, ""))
    }

    /// Something that looks like JSON and is none.
    #[must_use]
    pub fn garbage() -> Self {
        Self::Answer(Answer::json(200, r#"{"jsonrpc":"2.0","id":1,"resu"#))
    }

    /// Bytes that are no UTF-8.
    #[must_use]
    pub fn invalid_utf8() -> Self {
        Self::Answer(Answer::json(200, &b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":\"\xff\xfe\xc3\x28\"}"[..]))
    }

    /// A redirect to another address.
    #[must_use]
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::Answer(Answer::new(status, "").header("location", to))
    }

    /// A real limit, refused with HTTP 429 and a true `Retry-After`.
    #[must_use]
    pub fn limited(limit: Limit) -> Self {
        Self::limited_by(limit, Refusal::Status { retry_after: true })
    }

    /// A real limit, refused like this.
    #[must_use]
    pub fn limited_by(limit: Limit, refusal: Refusal) -> Self {
        Self::Limited { meter: Arc::new(Mutex::new(Meter::new(limit))), refusal }
    }

    /// Waits, then behaves.
    #[must_use]
    pub fn delayed(by: Duration, inner: Self) -> Self {
        Self::Delay { by, inner: Box::new(inner) }
    }

    /// A healthy answer in a content coding.
    #[must_use]
    pub fn encoded(coding: Coding) -> Self {
        Self::Encoded { coding, inner: Box::new(Self::Healthy) }
    }

    /// A healthy answer in chunks of `size` bytes.
    #[must_use]
    pub fn chunked(size: u64) -> Self {
        Self::Chunked { size, inner: Box::new(Self::Healthy) }
    }

    /// Every `one_in`-th request meets the fault, the others a healthy node.
    #[must_use]
    pub fn fraction(one_in: usize, fault: Self) -> Self {
        let (fault, otherwise) = (Box::new(fault), Box::new(Self::Healthy));
        Self::Fraction { one_in, turn: Turn::default(), fault, otherwise }
    }

    /// This method meets the fault, the others a healthy node.
    #[must_use]
    pub fn on_method(method: &str, fault: Self) -> Self {
        Self::PerMethod { methods: vec![(method.to_owned(), fault)], otherwise: Box::new(Self::Healthy) }
    }

    /// One after the other; the last stays.
    #[must_use]
    pub fn sequence(steps: Vec<Self>) -> Self {
        Self::Sequence { turn: Turn::default(), steps }
    }
}

/// The commonest words for a rate limit inside HTTP 200.
pub(crate) fn limit_exceeded() -> RpcError {
    RpcError::new(-32005, "rate limit exceeded")
}
