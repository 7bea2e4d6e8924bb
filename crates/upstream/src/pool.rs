//! A worker's connections to endpoints, and one request over one of them.
//!
//! An HTTP/1.1 connection carries one request at a time and comes back when its answer was read to the end: it is kept by its
//! origin, so that endpoints and chains on one host share what they leave idle. An HTTP/2 connection carries all requests
//! of its endpoint; others would wait for its streams.

mod kept;

use crate::connect::{ConnectError, Connector, Established};
use crate::target::{Codings, Target};
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use kept::{Kept, Origin, Sender};
use std::cell::RefCell;
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
    kept: Rc<Kept>,
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
        let pool = self.pool(endpoint, target);
        if pool.is_connected() {
            return Ok(());
        }
        match Box::pin(self.connector.establish(target)).await? {
            Established::Http1(sender) => pool.kept.put(sender),
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
        let pool = self.pool(endpoint, target);
        if let Some(answer) = pool.over_multiplexed(target, &body, codings).await {
            return answer;
        }
        while let Some(sender) = pool.kept.take().await {
            match over(sender, target, &body, codings, &pool.kept).await {
                Err(Unsent::NotSent) => {}
                Err(Unsent::Broken(error)) => return Err(Failure::Sent(error)),
                Ok(answer) => return Ok(answer),
            }
        }
        // Rare and large: boxed, so that the usual request's future stays small.
        match Box::pin(self.connector.establish(target)).await.map_err(Failure::Connect)? {
            Established::Http1(sender) => fresh(over(sender, target, &body, codings, &pool.kept).await),
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
            Rc::new(Pool { multiplexed: RefCell::default(), kept: Rc::clone(kept) })
        }))
    }
}

impl Pool {
    fn is_connected(&self) -> bool {
        let multiplexed = self.multiplexed.borrow();
        multiplexed.as_ref().is_some_and(|sender| !sender.is_closed()) || self.kept.has_any()
    }

    async fn over_multiplexed(
        &self,
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
            Ok(answer) => Some(Ok((answer, Connection { own: None }))),
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
    mut sender: Sender,
    target: &Target,
    body: &Bytes,
    codings: Codings,
    kept: &Rc<Kept>,
) -> Result<(Response<Incoming>, Connection), Unsent> {
    match sender.try_send_request(target.request(body.clone(), codings, false)).await {
        Ok(answer) => Ok((answer, Connection { own: Some((sender, Rc::clone(kept))) })),
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
