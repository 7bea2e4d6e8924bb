//! The outermost service, written by hand: it recognises a JSON-RPC request by method and path, and an upgrade to a
//! WebSocket, and hands them straight on; everything else is the router's.

use crate::net::{Body, Peer, Sent};
use crate::pages;
use crate::rpc;
use crate::socket;
use crate::why::RequestId;
use crate::worker::{Phase, Worker};
use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tower::ServiceExt;

/// One client connection's service.
pub(crate) struct Front {
    worker: Rc<Worker>,
    peer: Rc<Peer>,
}

impl Front {
    pub(crate) fn new(worker: Rc<Worker>, peer: Rc<Peer>) -> Front {
        Front { worker, peer }
    }
}

impl hyper::service::Service<Request<Incoming>> for Front {
    type Response = Response<Sent>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (worker, id, peer) = (Rc::clone(&self.worker), self.worker.next_id(), self.peer.ip);
        self.peer.is_served();
        let alone = (request.version() < Version::HTTP_2).then(|| Rc::clone(&self.peer));
        let is_page = pages::serves(request.uri().path());
        let answer = if *request.method() == Method::POST && !is_page {
            boxed(|| rpc::serve(worker, id, peer, request))
        } else if socket::is_upgrade(request.method(), request.headers()) && !is_page {
            boxed(|| async move { socket::open(&worker, id, peer, request).await })
        } else {
            boxed(|| routed(worker, id, request))
        };
        Answering { worker: Rc::clone(&self.worker), id, alone, answer }
    }
}

type Boxed = Pin<Box<dyn Future<Output = Response<Body>>>>;

/// Makes a future where it stays. `Box::pin` makes it on the stack first and copies all of it, and a request's is large.
fn boxed<F>(make: impl FnOnce() -> F) -> Boxed
where
    F: Future<Output = Response<Body>> + 'static,
{
    let made = Box::write(Box::new_uninit(), make());
    Box::into_pin(made)
}

/// One request on its way to its answer. A bug in it does not end the other requests of its worker.
pub(crate) struct Answering {
    worker: Rc<Worker>,
    id: RequestId,
    /// Whose it is, if nothing else is asked meanwhile.
    alone: Option<Rc<Peer>>,
    answer: Boxed,
}

impl Future for Answering {
    type Output = Result<Response<Sent>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = match catch_unwind(AssertUnwindSafe(|| self.answer.as_mut().poll(cx))) {
            Ok(polled) => ready!(polled),
            Err(_) => {
                tracing::error!(id = %self.id, "a request panicked");
                crate::reply::Problem::Internal.respond(None, self.id, crate::clock::unix_ms())
            }
        };
        let response = closing(&self.worker, response);
        Poll::Ready(Ok(response.map(|body| Sent::new(body, self.alone.take()))))
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

async fn routed(worker: Rc<Worker>, id: RequestId, mut request: Request<Incoming>) -> Response<Body> {
    request.extensions_mut().insert(id);
    match worker.router.clone().oneshot(request.map(axum::body::Body::new)).await {
        Ok(response) => response.map(Body::Page),
        Err(never) => match never {},
    }
}
