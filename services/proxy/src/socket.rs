//! WebSockets of clients: who may open one, how it begins and ends, and what it carries. A call on a socket goes the
//! way of every other call; nothing here decides who serves it.

mod admission;
mod batch;
mod calls;
mod close;
mod handshake;
mod outbox;
mod registry;
mod session;
mod subscribe;

pub(crate) use handshake::{BadUpgrade, is_upgrade};
pub(crate) use registry::Sockets;

use crate::caller::{Arrival, Caller, identify};
use crate::net::Body;
use crate::reply::Problem;
use crate::rpc::{self, Visit};
use crate::why::RequestId;
use crate::worker::Worker;
use admission::Seat;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use session::Session;
use std::net::IpAddr;
use std::rc::Rc;

/// Answers the opening handshake; a socket that may open is served by a task of this worker from then on.
pub(crate) async fn open(
    worker: &Rc<Worker>,
    id: RequestId,
    peer: IpAddr,
    mut incoming: Request<Incoming>,
) -> Response<Body> {
    let upgrade = hyper::upgrade::on(&mut incoming);
    let (head, _) = incoming.into_parts();
    let fleet = worker.fleet();
    let Some(chain) = rpc::chain_of(&fleet, head.uri.path()) else {
        let mut response = Problem::UnknownChain.respond(None, id, crate::clock::unix_ms());
        rpc::finish_head(worker, id, &mut response);
        return response;
    };
    let mut visit = Visit::begin(worker, chain, id, crate::clock::unix_ms());
    let arrival = Arrival { peer, uri: &head.uri, headers: &head.headers };
    let client = identify(&worker.app, chain, &arrival, crate::clock::unix_ms());
    let admitted = match &client {
        Ok(client) => admit(worker, &mut visit, client.as_ref(), &head, id).await,
        Err(problem) => Err(problem.clone()),
    };
    let mut response = match admitted {
        Ok((accept, seat)) => {
            let archive = rpc::wants_archive(head.uri.query());
            let session = Session::new(worker, seat, &chain.name, archive, client.ok().flatten());
            tokio::task::spawn_local(session.serve(upgrade));
            handshake::accepted(accept)
        }
        Err(problem) => visit.problem(&problem, None, id),
    };
    rpc::finish_head(worker, id, &mut response);
    visit.end(response.status());
    response
}

/// What the client's key is answered with, and the socket's place among all sockets.
async fn admit(
    worker: &Rc<Worker>,
    visit: &mut Visit<'_>,
    client: Option<&Caller>,
    head: &http::request::Parts,
    id: RequestId,
) -> Result<(HeaderValue, Seat), Problem> {
    let accept = handshake::check(head, &worker.app.settings.cors_origin).map_err(Problem::BadUpgrade)?;
    let (gates, until) = (&worker.app.gates, visit.deadline());
    let full = |_| Problem::overloaded(&mut *worker.rng.borrow_mut());
    let _opening = gates.handshake.enter(until).await.map_err(full)?;
    let slot = match client {
        Some(client) => client.hold().await?,
        None => None,
    };
    let seat = Seat::take(worker, visit.chain(), slot, until).await.map_err(full)?;
    let request = visit.request(id, head);
    let outcome = admission::can_serve(&request).await;
    visit.keep_story(request);
    outcome.map(|()| (accept, seat))
}
