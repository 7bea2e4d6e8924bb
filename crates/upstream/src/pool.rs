//! A worker's connections to endpoints, and one request over one of them.
//!
//! An HTTP/1.1 connection carries one request at a time and comes back when its answer was read to the end: it is kept by its
//! origin, so that endpoints and chains on one host share what they leave idle. An HTTP/2 connection carries all requests
//! of its endpoint; others would wait for its streams.

mod kept;
mod lost;

pub use lost::Lost;

use crate::connect::{ConnectError, Connector, Established};
use crate::target::{Codings, Target};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http2};
use kept::{Kept, Origin, Sender};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

/// All pools of one worker.
pub struct Pools {
    connector: Connector,
    /// By the endpoint's number, which stays with its URL.
    pools: RefCell<Vec<Option<Rc<Pool>>>>,
    origins: RefCell<HashMap<Origin, Rc<Kept>>>,
}

/// The connections of one endpoint.
struct Pool {
    multiplexed: RefCell<Option<http2::SendRequest<Full<Bytes>>>>,
    /// The multiplexed one has brought an answer.
    proven: Cell<bool>,
    kept: Rc<Kept>,
}

/// A connection that nothing was sent over yet.
pub struct Fresh {
    pool: Rc<Pool>,
    /// `None`: it is the endpoint's multiplexed one.
    own: Option<Sender>,
}

/// Why no answer's head came.
#[derive(Debug)]
pub enum Failure {
    /// Nothing was sent: no connection could be made.
    Connect(ConnectError),
    /// The connection had been kept from an earlier request and closed before a byte of an answer came: as a rule the peer
    /// closed what was idle while the request was on its way. A fresh connection may do.
    Closed(Lost, hyper::Error),
    /// The request was sent, at least in part; it may have been carried out.
    Sent(hyper::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Connect(error) => error.fmt(f),
            Failure::Closed(_, error) | Failure::Sent(error) => write!(f, "no answer: {error}"),
        }
    }
}

/// The connection that an answer comes over. Give it back once the answer was read to its end;
/// dropped before that, the connection is closed.
pub struct Connection {
    /// `None`: others use it too, and it stays where it is.
    own: Option<(Sender, Rc<Kept>)>,
}

impl Connection {
    /// Whether it is HTTP/1.1, and so nobody else's.
    pub fn is_http1(&self) -> bool {
        self.own.is_some()
    }

    pub fn give_back(self) {
        if let Some((sender, kept)) = self.own {
            kept.put(sender);
        }
    }
}

impl Pools {
    pub fn new(connector: Connector) -> Pools {
        Pools { connector, pools: RefCell::default(), origins: RefCell::default() }
    }

    /// Sees to it that [`Pools::send`] can write at once: makes a connection if there is none. The caller sets the time limit.
    ///
    /// # Errors
    /// No connection could be made.
    pub async fn connect(&self, endpoint: u32, target: &Target) -> Result<(), ConnectError> {
        if self.pool(endpoint, target).is_connected() {
            return Ok(());
        }
        Box::pin(self.fresh(endpoint, target)).await.map(Fresh::keep)
    }

    /// Makes a connection, whatever others there are. The caller sets the time limit.
    ///
    /// # Errors
    /// No connection could be made.
    pub async fn fresh(&self, endpoint: u32, target: &Target) -> Result<Fresh, ConnectError> {
        let pool = self.pool(endpoint, target);
        let own = match self.connector.establish(target).await? {
            Established::Http1(requests, heard) => Some(Sender { requests, heard }),
            Established::Http2(sender) => {
                *pool.multiplexed.borrow_mut() = Some(sender);
                pool.proven.set(false);
                None
            }
        };
        Ok(Fresh { pool, own })
    }

    /// Sends one request and waits for the head of its answer. The caller sets the time limit.
    ///
    /// # Errors
    /// No head came, and why.
    pub async fn send(
        &self,
        endpoint: u32,
        target: &Target,
        body: Bytes,
        codings: Codings,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        let pool = self.pool(endpoint, target);
        if let Some(answer) = pool.over_multiplexed(target, &body, codings).await {
            return answer;
        }
        if let Some(sender) = pool.kept.take().await {
            return over(sender, &pool.kept, target.request(body, codings, false)).await;
        }
        // Rare and large: boxed, so that the usual request's future stays small.
        let fresh = Box::pin(self.fresh(endpoint, target)).await.map_err(Failure::Connect)?;
        Box::pin(fresh.send(target, body, codings)).await
    }

    /// One request and its whole answer, uncompressed and of at most `most` bytes. The caller sets the time limit.
    /// A connection that closes under it is nobody's failure: `twice` is called, and it is sent once more over a fresh one.
    ///
    /// # Errors
    /// What went wrong, in words: no connection, no answer, or one that is larger.
    pub async fn ask(
        &self,
        endpoint: u32,
        target: &Target,
        body: Bytes,
        most: usize,
        twice: impl FnOnce(),
    ) -> Result<(http::response::Parts, Bytes), String> {
        let mut sent = self.send(endpoint, target, body.clone(), Codings::IDENTITY).await;
        if let Err(Failure::Closed(lost, _)) = sent {
            let fresh = self.fresh(endpoint, target).await.map_err(|error| error.to_string())?;
            if lost != Lost::Unwritten {
                twice();
            }
            sent = fresh.send(target, body, Codings::IDENTITY).await;
        }
        let (response, connection) = sent.map_err(|failure| failure.to_string())?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, most).collect().await.map_err(|error| error.to_string())?;
        connection.give_back();
        Ok((head, body.to_bytes()))
    }

    /// Closes connections that idled too long, and those to endpoints that `kept` does not name.
    pub fn tidy(&self, now: Instant, kept: impl Fn(u32) -> bool) {
        for (number, slot) in (0..).zip(self.pools.borrow_mut().iter_mut()) {
            if slot.is_some() && !kept(number) {
                *slot = None;
            }
        }
        let mut origins = self.origins.borrow_mut();
        // With the last endpoint of an origin its connections go, but for those that still bring an answer.
        origins.retain(|_, kept| Rc::strong_count(kept) > 1);
        origins.values().for_each(|kept| kept.tidy(now));
    }

    fn pool(&self, endpoint: u32, target: &Target) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        let index = endpoint as usize;
        if pools.len() <= index {
            pools.resize(index + 1, None);
        }
        Rc::clone(pools[index].get_or_insert_with(|| {
            let mut origins = self.origins.borrow_mut();
            let kept = origins.entry(Origin::of(target)).or_insert_with(|| Rc::new(Kept::new()));
            Rc::new(Pool { multiplexed: RefCell::default(), proven: Cell::default(), kept: Rc::clone(kept) })
        }))
    }
}

impl Pool {
    fn is_connected(&self) -> bool {
        let multiplexed = self.multiplexed.borrow();
        multiplexed.as_ref().is_some_and(|sender| !sender.is_closed()) || self.kept.has_any()
    }

    /// `None`: there is no such connection any more.
    async fn over_multiplexed(
        &self,
        target: &Target,
        body: &Bytes,
        codings: Codings,
    ) -> Option<Result<(Response<Incoming>, Connection), Failure>> {
        let mut sender = self.multiplexed.borrow().clone()?;
        if sender.ready().await.is_err() {
            self.multiplexed.borrow_mut().take_if(|sender| sender.is_closed());
            return None;
        }
        let kept = self.proven.get();
        match sender.try_send_request(target.request(body.clone(), codings, true)).await {
            Ok(answer) => {
                self.proven.set(true);
                Some(Ok((answer, Connection { own: None })))
            }
            Err(unsent) => Some(Err(failure(unsent, kept, false))),
        }
    }
}

impl Fresh {
    /// Sends the first request over it, as [`Pools::send`] does.
    ///
    /// # Errors
    /// No head came, and why.
    pub async fn send(
        self,
        target: &Target,
        body: Bytes,
        codings: Codings,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        match self.own {
            Some(sender) => over(sender, &self.pool.kept, target.request(body, codings, false)).await,
            None => {
                let answer = self.pool.over_multiplexed(target, &body, codings).await;
                answer.unwrap_or_else(|| Err(Failure::Connect(closed_at_once())))
            }
        }
    }

    /// Nothing is sent over it for now.
    pub fn keep(self) {
        if let Some(sender) = self.own {
            self.pool.kept.put(sender);
        }
    }
}

async fn over(
    mut sender: Sender,
    kept: &Rc<Kept>,
    request: Request<Full<Bytes>>,
) -> Result<(Response<Incoming>, Connection), Failure> {
    let was_kept = sender.heard.forget();
    match sender.requests.try_send_request(request).await {
        Ok(answer) => Ok((answer, Connection { own: Some((sender, Rc::clone(kept))) })),
        Err(unsent) => Err(failure(unsent, was_kept, sender.heard.get())),
    }
}

/// Why a request got no answer over a connection: one that was kept from an earlier one, or a fresh one. `heard`: something came.
fn failure(mut unsent: TrySendError<Request<Full<Bytes>>>, kept: bool, heard: bool) -> Failure {
    let unwritten = unsent.take_message().is_some();
    let error = unsent.into_error();
    let lost = match (unwritten, heard) {
        (true, _) if !kept => return Failure::Connect(closed_at_once()),
        (true, _) => Some(Lost::Unwritten),
        (false, false) if kept => lost::lost(&error),
        (false, _) => None,
    };
    match lost {
        Some(lost) => Failure::Closed(lost, error),
        None => Failure::Sent(error),
    }
}

fn closed_at_once() -> ConnectError {
    ConnectError::Tcp("the connection closed at once".into())
}

#[cfg(test)]
mod tests;
