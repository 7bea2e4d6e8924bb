//! A server that answers as a test says, and knows how it was asked: over which connection, in which HTTP. The
//! simulator speaks neither TLS nor HTTP/2, and holds nothing back until told.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// One call as it came.
pub(crate) struct Asked {
    /// Counted from 0.
    pub(crate) connection: usize,
    pub(crate) version: Version,
    pub(crate) question: Value,
}

/// What is done before a call is answered.
pub(crate) type Before = Arc<dyn Fn(Asked) -> BoxFuture<'static, ()> + Send + Sync>;

/// Serves until the test ends; over TLS, if there is an acceptor.
pub(crate) async fn serve(tls: Option<TlsAcceptor>, before: Before) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let connections = AtomicUsize::new(0);
        while let Ok((stream, _)) = listener.accept().await {
            let (number, before) = (connections.fetch_add(1, Ordering::SeqCst), Arc::clone(&before));
            match tls.clone() {
                None => drop(tokio::spawn(connection(stream, number, before))),
                Some(tls) => drop(tokio::spawn(async move {
                    // A client that does not trust us ends here.
                    let Ok(stream) = tls.accept(stream).await else { return };
                    connection(stream, number, before).await;
                })),
            }
        }
    });
    address
}

async fn connection<S>(stream: S, number: usize, before: Before)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(request, number, Arc::clone(&before)));
    let builder = auto::Builder::new(TokioExecutor::new());
    // How the proxy ends its connections is not this server's concern.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    connection: usize,
    before: Before,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let version = request.version();
    let body = request.into_body().collect().await?.to_bytes();
    let question: Value = serde_json::from_slice(&body).expect("JSON");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result(&question)});
    before(Asked { connection, version, question }).await;
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::new(answer.to_string().into())).expect("a response"))
}

fn result(question: &Value) -> Value {
    match question["method"].as_str().unwrap_or_default() {
        "eth_blockNumber" => json!("0x10"),
        "eth_syncing" => json!(false),
        method => simulator::expected(method, &question["params"]),
    }
}
