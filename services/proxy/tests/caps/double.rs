//! A service of flags that does what a test says, over real HTTP.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;

pub(crate) type Body = BoxBody<Bytes, Infallible>;

/// What a service was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) fn body(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed()
}

pub(crate) fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).body(body("")).expect("an answer")
}

/// Serves until the runtime ends.
pub(crate) async fn serve(answer: impl Fn(Asked) -> Response<Body> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = Arc::clone(&answer);
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await?.to_bytes();
                    let asked = Asked { path: head.uri.path().to_owned(), headers: head.headers, body };
                    Ok::<_, hyper::Error>(answer(asked))
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    address
}
