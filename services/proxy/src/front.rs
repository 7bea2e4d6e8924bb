//! The outermost service, written by hand: it recognises a JSON-RPC request by method and path, and an upgrade to a
//! WebSocket, and hands them straight on; everything else is the router's.

use crate::net::Body;
use crate::pages;
use crate::rpc;
use crate::socket;
use crate::why::RequestId;
use crate::worker::{Phase, Worker};
use futures_util::FutureExt;
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use tower::ServiceExt;

/// One client connection's service.
pub(crate) struct Front {
    worker: Rc<Worker>,
    peer: IpAddr,
}

impl Front {
    pub(crate) fn new(worker: Rc<Worker>, peer: IpAddr) -> Front {
        Front { worker, peer }
    }
}

impl hyper::service::Service<Request<Incoming>> for Front {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (worker, peer) = (Rc::clone(&self.worker), self.peer);
        if *request.method() == Method::POST && !pages::serves(request.uri().path()) {
            return Box::pin(async move {
                let id = worker.next_id();
                let response = guarded(id, rpc::serve(&worker, id, peer, request)).await;
                Ok(closing(&worker, response))
            });
        }
        if socket::is_upgrade(request.method(), request.headers()) {
            return Box::pin(async move {
                let id = worker.next_id();
                let response = guarded(id, socket::open(&worker, id, peer, request)).await;
                Ok(closing(&worker, response))
            });
        }
        Box::pin(async move {
            let response = routed(&worker, request).await;
            Ok(closing(&worker, response))
        })
    }
}

/// A connection that stays open would bring requests to a process that is about to go.
fn closing(worker: &Worker, mut response: Response<Body>) -> Response<Body> {
    let stays_http = response.status() != StatusCode::SWITCHING_PROTOCOLS;
    if stays_http && worker.app.phase() != Phase::Serving {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A bug in one request must not end the other requests of its worker.
async fn guarded(id: RequestId, answer: impl Future<Output = Response<Body>>) -> Response<Body> {
    match AssertUnwindSafe(answer).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(%id, "a request panicked");
            crate::reply::Problem::Internal.respond(None, id, crate::clock::unix_ms())
        }
    }
}

async fn routed(worker: &Rc<Worker>, mut request: Request<Incoming>) -> Response<Body> {
    request.extensions_mut().insert(worker.next_id());
    match worker.router.clone().oneshot(request.map(axum::body::Body::new)).await {
        Ok(response) => response.map(Body::Page),
        Err(never) => match never {},
    }
}
