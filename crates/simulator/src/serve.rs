//! Accepts connections and turns requests into outcomes on the wire. Decides nothing about their content.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request as HttpRequest, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::answer::Answer;
use crate::perform::{Asked, Outcome, Sent, perform};
use crate::provider::{InFlight, Shared, lock};
use crate::request::Request;
use crate::sockets::{Upgrade, accept as accept_socket, asks_for_socket};
use crate::wire::{Reset, Shape, Socket, Wire};

/// A server on its way. Dropped, it stops soon; [`Server::end`] waits until it has.
pub(crate) struct Server {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) fn start(listener: TcpListener, shared: Arc<Shared>) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(accept(listener, shared, stopped)) }
    }

    /// Closes the listener and every connection.
    pub(crate) async fn end(self) {
        drop(self.stop);
        // It ends when it is told to; a panic in it has been printed.
        let _ = self.task.await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    shared.connections.fetch_add(1, Ordering::SeqCst);
                    connections.spawn(connection(stream, Arc::clone(&shared)));
                }
            }
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    // Without it small answers wait for acknowledgements.
    let _ = stream.set_nodelay(true);
    let reset = Reset::default();
    let upgrade = Mutex::new(None);
    let service = service_fn(|request| handle(request, Arc::clone(&shared), reset.clone(), &upgrade));
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    // An error is a fault that was asked for, or a peer that left.
    let _ = http1::Builder::new().serve_connection(socket, service).with_upgrades().await;
    let upgrade = lock(&upgrade).take();
    if let Some(upgrade) = upgrade {
        upgrade.talk(shared, reset).await;
    }
}

async fn handle(
    mut request: HttpRequest<Incoming>,
    shared: Arc<Shared>,
    reset: Reset,
    upgrade: &Mutex<Option<Upgrade>>,
) -> io::Result<Response<Wire>> {
    let in_flight = shared.enter();
    if asks_for_socket(request.headers()) {
        let on = hyper::upgrade::on(&mut request);
        let (head, _) = request.into_parts();
        let refusal = shared.sockets.state.borrow().refusal.clone();
        let sent = match refusal {
            Some(refusal) => refusal.into(),
            None => switch(&head, on, upgrade),
        };
        return Ok(response(sent, reset, in_flight));
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let outcome = match Request::parse(body.clone()) {
        Some(request) => {
            let request = Arc::new(request);
            lock(&shared.memory).note(&head, &request, Instant::now());
            perform(shared.behaviour(), Asked { node: Arc::clone(&shared.node), request, feeds: None }).await
        }
        None => Outcome::Sent(not_json().into()),
    };
    match outcome {
        Outcome::Sent(sent) => Ok(response(sent, reset, in_flight)),
        Outcome::Hang => match std::future::pending::<Infallible>().await {},
        Outcome::Reset => {
            reset.arm();
            Err(io::ErrorKind::ConnectionReset.into())
        }
        Outcome::Close => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Accepts a socket, which the connection becomes once that is sent.
fn switch(head: &Parts, on: OnUpgrade, upgrade: &Mutex<Option<Upgrade>>) -> Sent {
    *lock(upgrade) = Some(Upgrade { on, head: head.clone() });
    Sent {
        status: 101,
        headers: accept_socket(&head.headers),
        payload: Bytes::new().into(),
        shape: Shape::Whole,
    }
}

fn response(sent: Sent, reset: Reset, in_flight: InFlight) -> Response<Wire> {
    let mut response = Response::new(Wire::new(sent.payload, sent.shape, reset, in_flight));
    *response.status_mut() = StatusCode::from_u16(sent.status).unwrap_or(StatusCode::OK);
    for (name, value) in sent.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

fn not_json() -> Answer {
    Answer::json(400, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#)
}
