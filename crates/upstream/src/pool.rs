//! A worker's connections to each endpoint, and one request over one of them.
//!
//! An HTTP/1.1 connection carries one request at a time and comes back when its answer was read to the end;
//! an HTTP/2 connection carries them all.

use crate::connect::{ConnectError, Connector, Established};
use crate::target::{Codings, Target};
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Idle connections are closed before the usual 60 s of load balancers and nodes, whenever the pools are tidied.
const IDLE: Duration = Duration::from_secs(50);
/// Idle connections kept per worker and endpoint.
const MOST_IDLE: usize = 256;

/// All pools of one worker, by the endpoint's number.
pub struct Pools {
    connector: Connector,
    pools: RefCell<HashMap<u32, Rc<Pool>>>,
}

struct Pool {
    idle: RefCell<Vec<(http1::SendRequest<Full<Bytes>>, Instant)>>,
    multiplexed: RefCell<Option<http2::SendRequest<Full<Bytes>>>>,
    /// When it was last tidied: near enough to tell how long a connection idles.
    tidied: Cell<Instant>,
}

/// Why no answer's head came.
#[derive(Debug)]
pub enum Failure {
    /// Nothing was sent: no connection could be made.
    Connect(ConnectError),
    /// The request was sent, at least in part; it may have been carried out.
    Sent(hyper::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Connect(error) => error.fmt(f),
            Failure::Sent(error) => write!(f, "no answer: {error}"),
        }
    }
}

/// The connection that an answer comes over. Give it back once the answer was read to its end;
/// dropped before that, the connection is closed.
pub struct Connection {
    sender: Option<http1::SendRequest<Full<Bytes>>>,
    pool: Rc<Pool>,
}

impl Connection {
    pub fn give_back(mut self) {
        let Some(sender) = self.sender.take() else { return };
        let mut idle = self.pool.idle.borrow_mut();
        if !sender.is_closed() && idle.len() < MOST_IDLE {
            idle.push((sender, self.pool.tidied.get()));
        }
    }
}

impl Pools {
    pub fn new(connector: Connector) -> Pools {
        Pools { connector, pools: RefCell::default() }
    }

    /// Sees to it that [`Pools::send`] can write at once: makes a connection if there is none. The caller sets the time limit.
    ///
    /// # Errors
    /// No connection could be made.
    pub async fn connect(&self, endpoint: u32, target: &Target) -> Result<(), ConnectError> {
        let pool = self.pool(endpoint);
        if pool.is_connected() {
            return Ok(());
        }
        match Box::pin(self.connector.establish(target)).await? {
            Established::Http1(sender) => pool.idle.borrow_mut().push((sender, pool.tidied.get())),
            Established::Http2(sender) => *pool.multiplexed.borrow_mut() = Some(sender),
        }
        Ok(())
    }

    /// Sends one request and waits for the head of its answer. The caller sets the time limit.
    pub async fn send(
        &self,
        endpoint: u32,
        target: &Target,
        body: Bytes,
        codings: Codings,
    ) -> Result<(Response<Incoming>, Connection), Failure> {
        let pool = self.pool(endpoint);
        if let Some(answer) = pool.over_multiplexed(target, &body, codings).await {
            return answer;
        }
        while let Some(sender) = pool.idle_sender().await {
            match over(sender, target, &body, codings, &pool).await {
                Err(Unsent::NotSent) => {}
                Err(Unsent::Broken(error)) => return Err(Failure::Sent(error)),
                Ok(answer) => return Ok(answer),
            }
        }
        // Rare and large: boxed, so that the usual request's future stays small.
        match Box::pin(self.connector.establish(target)).await.map_err(Failure::Connect)? {
            Established::Http1(sender) => fresh(over(sender, target, &body, codings, &pool).await),
            Established::Http2(sender) => {
                *pool.multiplexed.borrow_mut() = Some(sender);
                pool.over_multiplexed(target, &body, codings).await.unwrap_or(Err(Failure::Connect(
                    ConnectError::Tcp("the connection closed at once".into()),
                )))
            }
        }
    }

    /// One request and its whole answer, uncompressed and of at most `most` bytes. The caller sets the time limit.
    ///
    /// # Errors
    /// What went wrong, in words: no connection, no answer, or one that is larger.
    pub async fn ask(
        &self,
        endpoint: u32,
        target: &Target,
        body: Bytes,
        most: usize,
    ) -> Result<(http::response::Parts, Bytes), String> {
        let sent = self.send(endpoint, target, body, Codings::IDENTITY).await;
        let (response, connection) = sent.map_err(|failure| failure.to_string())?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, most).collect().await.map_err(|error| error.to_string())?;
        connection.give_back();
        Ok((head, body.to_bytes()))
    }

    /// Closes connections that idled too long, and those to endpoints that `kept` does not name.
    pub fn tidy(&self, now: Instant, kept: impl Fn(u32) -> bool) {
        let mut pools = self.pools.borrow_mut();
        pools.retain(|endpoint, _| kept(*endpoint));
        for pool in pools.values() {
            pool.tidied.set(now);
            let fresh = |since: Instant| now.saturating_duration_since(since) < IDLE;
            pool.idle.borrow_mut().retain(|(sender, since)| !sender.is_closed() && fresh(*since));
        }
    }

    fn pool(&self, endpoint: u32) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        Rc::clone(pools.entry(endpoint).or_insert_with(|| {
            let tidied = Cell::new(Instant::now());
            Rc::new(Pool { idle: RefCell::default(), multiplexed: RefCell::default(), tidied })
        }))
    }
}

impl Pool {
    fn is_connected(&self) -> bool {
        let multiplexed = self.multiplexed.borrow();
        multiplexed.as_ref().is_some_and(|sender| !sender.is_closed())
            || self.idle.borrow().iter().rev().any(|(sender, _)| !sender.is_closed())
    }

    /// The connection that was used last, once it can take a request. `None`: a new one is needed.
    async fn idle_sender(&self) -> Option<http1::SendRequest<Full<Bytes>>> {
        loop {
            let (mut sender, _) = self.idle.borrow_mut().pop()?;
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn over_multiplexed(
        self: &Rc<Self>,
        target: &Target,
        body: &Bytes,
        codings: Codings,
    ) -> Option<Result<(Response<Incoming>, Connection), Failure>> {
        let mut sender = self.multiplexed.borrow().clone()?;
        if sender.ready().await.is_err() {
            *self.multiplexed.borrow_mut() = None;
            return None;
        }
        match sender.try_send_request(target.request(body.clone(), codings, true)).await {
            Ok(answer) => Some(Ok((answer, Connection { sender: None, pool: Rc::clone(self) }))),
            Err(mut unsent) => match unsent.take_message() {
                Some(_) => {
                    *self.multiplexed.borrow_mut() = None;
                    None
                }
                None => Some(Err(Failure::Sent(unsent.into_error()))),
            },
        }
    }
}

/// Why a connection brought no answer.
enum Unsent {
    /// It had died before; nothing was written.
    NotSent,
    Broken(hyper::Error),
}

async fn over(
    mut sender: http1::SendRequest<Full<Bytes>>,
    target: &Target,
    body: &Bytes,
    codings: Codings,
    pool: &Rc<Pool>,
) -> Result<(Response<Incoming>, Connection), Unsent> {
    match sender.try_send_request(target.request(body.clone(), codings, false)).await {
        Ok(answer) => Ok((answer, Connection { sender: Some(sender), pool: Rc::clone(pool) })),
        Err(mut unsent) => match unsent.take_message() {
            Some(_) => Err(Unsent::NotSent),
            None => Err(Unsent::Broken(unsent.into_error())),
        },
    }
}

fn fresh<T>(answer: Result<T, Unsent>) -> Result<T, Failure> {
    answer.map_err(|unsent| match unsent {
        Unsent::NotSent => Failure::Connect(ConnectError::Tcp("the connection closed at once".into())),
        Unsent::Broken(error) => Failure::Sent(error),
    })
}
