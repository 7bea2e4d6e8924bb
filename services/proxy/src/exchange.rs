//! One attempt at one endpoint: send, hold the answer until its verdict is certain, and say what it was.
//!
//! Nothing is retried here and nothing is marked: those who decide get a value.

mod hold;
mod over_line;
mod rest;

use hold::Holding;
pub(crate) use rest::Rest;
use rest::UnderWay;

use crate::fleet::Endpoint;
use crate::gates::Permits;
use crate::request::Request;
use crate::upstream::{Codings, ConnectError, Failure, Fresh, Lost, by};
use bytes::Bytes;
use detect::{Head, Item, Judgement, Protocol};
use http::{HeaderValue, StatusCode};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What is sent, and what may come back.
pub(crate) struct Ask<'a> {
    pub(crate) body: Bytes,
    /// The method of a single call.
    pub(crate) method: Option<&'a str>,
    pub(crate) batch: bool,
    /// No answer is expected: any 2xx will do.
    pub(crate) notification: bool,
    pub(crate) codings: Codings,
    /// Keep a complete body, decoded, because the answer will be edited.
    pub(crate) whole: bool,
}

/// An answer whose verdict is certain.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) content_type: Option<HeaderValue>,
    /// The content coding of what is held and of the rest.
    pub(crate) coding: Option<HeaderValue>,
    pub(crate) held: VecDeque<Bytes>,
    pub(crate) held_bytes: usize,
    /// `None`: what is held is all there is.
    pub(crate) rest: Option<Rest>,
    /// Bytes of held and rest together, if known.
    pub(crate) length: Option<u64>,
    pub(crate) judgement: Judgement,
    /// Its headers say that nothing is left of the account for so long.
    pub(crate) exhausted: Option<Duration>,
    /// It answers a batch.
    pub(crate) batch: bool,
    /// The items of a batch, where they stand in what is held.
    pub(crate) items: Vec<Item>,
}

/// How an attempt ended.
pub(crate) enum Outcome {
    Answered(Box<Answer>),
    /// Nothing was sent.
    Unreachable(String),
    /// It was sent, at least in part, and no usable answer came.
    Broken(String),
    TimedOut,
}

impl Answer {
    /// What is held, in one piece.
    pub(crate) fn whole(&self) -> Bytes {
        match self.held.len() {
            0 => Bytes::new(),
            1 => self.held[0].clone(),
            _ => {
                let mut all = Vec::with_capacity(self.held_bytes);
                self.held.iter().for_each(|chunk| all.extend_from_slice(chunk));
                all.into()
            }
        }
    }
}

/// The connection that had been kept for an attempt closed under it; what becomes of it is still to be decided.
pub(crate) struct Stale {
    pub(crate) lost: Lost,
    pub(crate) how: String,
    under_way: UnderWay,
}

/// Sees to it that an attempt at `endpoint` can be written at once, until `limit`. An endpoint without HTTP is reached over
/// a socket that is kept open anyway.
pub(crate) async fn connected(
    request: &Request<'_>,
    endpoint: &Endpoint,
    limit: Instant,
) -> Result<(), Outcome> {
    let Some(target) = &endpoint.http else { return Ok(()) };
    made(by(limit, request.worker.pools.connect(endpoint.number, target)).await)
}

fn made<T>(connected: Option<Result<T, ConnectError>>) -> Result<T, Outcome> {
    match connected {
        Some(Ok(connection)) => Ok(connection),
        Some(Err(error)) => Err(Outcome::Unreachable(error.to_string())),
        None => Err(Outcome::TimedOut),
    }
}

/// Asks one endpoint and waits until the verdict is certain, or until `limit`.
pub(crate) async fn attempt(
    request: &Request<'_>,
    endpoint: &Endpoint,
    ask: &Ask<'_>,
    permits: Permits,
    now: u64,
    limit: Instant,
) -> Result<Outcome, Box<Stale>> {
    let under_way = UnderWay { mark: endpoint.state.enter(now), permits };
    by(limit, exchange(request, endpoint, ask, under_way, None)).await.unwrap_or(Ok(Outcome::TimedOut))
}

/// Goes on with an attempt whose connection had closed, until `limit`: over a fresh one, if `pay` says that it may be sent.
pub(crate) async fn attempt_again(
    request: &Request<'_>,
    endpoint: &Endpoint,
    ask: &Ask<'_>,
    stale: Stale,
    limit: Instant,
    pay: impl FnOnce() -> bool,
) -> Result<Outcome, Stale> {
    let Some(target) = &endpoint.http else { return Err(stale) };
    let fresh = match made(by(limit, request.worker.pools.fresh(endpoint.number, target)).await) {
        Ok(fresh) => fresh,
        Err(outcome) => return Ok(outcome),
    };
    if !pay() {
        fresh.keep();
        return Err(stale);
    }
    let asked = by(limit, exchange(request, endpoint, ask, stale.under_way, Some(fresh))).await;
    Ok(asked.unwrap_or(Ok(Outcome::TimedOut)).unwrap_or_else(|stale| Outcome::Broken(stale.how)))
}

/// `fresh`: the connection to ask over. `None`: any.
async fn exchange(
    request: &Request<'_>,
    endpoint: &Endpoint,
    ask: &Ask<'_>,
    under_way: UnderWay,
    fresh: Option<Fresh>,
) -> Result<Outcome, Box<Stale>> {
    let worker = request.worker;
    let Some(target) = &endpoint.http else {
        // Rare: boxed, so that the usual attempt's future stays small.
        return Ok(Box::pin(over_line::exchange(request, endpoint, ask, under_way)).await);
    };
    let (response, connection) = {
        // Gone with this block: what lives across the next wait makes the future large.
        let sent = match fresh {
            None => worker.pools.send(endpoint.number, target, ask.body.clone(), ask.codings).await,
            Some(fresh) => Box::pin(fresh.send(target, ask.body.clone(), ask.codings)).await,
        };
        match sent {
            Ok(answer) => answer,
            Err(Failure::Connect(error)) => return Ok(Outcome::Unreachable(error.to_string())),
            Err(error @ Failure::Closed(lost, _)) => {
                return Err(Box::new(Stale { lost, how: error.to_string(), under_way }));
            }
            Err(error @ Failure::Sent(_)) => return Ok(Outcome::Broken(error.to_string())),
        }
    };
    let (head, body) = response.into_parts();
    let seen = Head {
        provider: Some(&*endpoint.provider).filter(|provider| !provider.is_empty()),
        host: Some(&target.host),
        method: ask.method,
        status: Some(head.status.as_u16()),
        batch: ask.batch,
        ..Head::new(Protocol::Http, &head.headers, crate::clock::unix_ms())
    };
    let rest = Rest::new(body, connection, under_way, worker.app.settings.proxy_timeout_per_try);
    let mut holding = match Holding::new(worker, &request.chain.tables.rules, &seen, ask, rest) {
        Ok(holding) => holding,
        Err(error) => return Ok(Outcome::Broken(error)),
    };
    let complete = match holding.fill(ask).await {
        Ok(complete) => complete,
        Err(error) => return Ok(Outcome::Broken(error)),
    };
    let mut answer = Box::new(holding.answer(ask, head.status, complete));
    if endpoint.account.gate.keeps_level() {
        answer.exhausted = detect::exhausted(&seen);
    }
    Ok(Outcome::Answered(answer))
}
