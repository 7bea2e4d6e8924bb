//! A client that keeps its connections, and what it was answered.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::soon;

/// How many requests a volley keeps in flight.
const CONCURRENCY: usize = 32;

/// A pooled HTTP/1.1 client of one address.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    idle: Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, idle: Arc::default() }
    }

    /// Posts a body to the chain `main`.
    pub(crate) async fn post(&self, body: impl Into<Bytes>) -> Reply {
        self.post_to("/main", body).await
    }

    pub(crate) async fn post_to(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(Request::post(path).body(body.into()).expect("a request")).await.expect("an answer")
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path).body(Bytes::new()).expect("a request")).await.expect("an answer")
    }

    pub(crate) async fn with_method(&self, method: Method, path: &str) -> Reply {
        let request = Request::builder().method(method).uri(path).body(Bytes::new()).expect("a request");
        self.send(request).await.expect("an answer")
    }

    /// Sends a request and reads the whole answer.
    pub(crate) async fn send(&self, request: Request<Bytes>) -> Result<Reply, hyper::Error> {
        soon(self.exchange(request)).await
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Reply, hyper::Error> {
        let (response, sender) = self.open(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        self.idle.lock().expect("no panic").push(sender);
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }

    /// Sends a request and hands over the answer as it comes. The connection is not used again.
    pub(crate) async fn open(
        &self,
        request: Request<Bytes>,
    ) -> Result<(Response<Incoming>, SendRequest<Full<Bytes>>), hyper::Error> {
        let mut sender = self.connection().await?;
        let (mut head, body) = request.into_parts();
        head.headers.insert("host", "headgate.test".parse().expect("a value"));
        if head.method == Method::POST && !head.headers.contains_key("content-type") {
            head.headers.insert("content-type", "application/json".parse().expect("a value"));
        }
        let response = sender.send_request(Request::from_parts(head, Full::new(body))).await?;
        Ok((response, sender))
    }

    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, hyper::Error> {
        while let Some(mut sender) = self.take_idle() {
            if sender.ready().await.is_ok() {
                return Ok(sender);
            }
        }
        let stream = TcpStream::connect(self.address).await.expect("connects");
        stream.set_nodelay(true).expect("a socket option");
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn take_idle(&self) -> Option<SendRequest<Full<Bytes>>> {
        self.idle.lock().expect("no panic").pop()
    }

    /// Asks call after call, many at once; every one must get its own right answer.
    pub(crate) async fn volley(&self, ids: Range<u64>) {
        self.volley_of(CONCURRENCY, ids).await;
    }

    /// The same, with so many in flight.
    pub(crate) async fn volley_of(&self, at_once: usize, ids: Range<u64>) {
        let wrong: Vec<String> = stream::iter(ids)
            .map(|id| async move { self.wrong(id).await })
            .buffer_unordered(at_once)
            .filter_map(std::future::ready)
            .collect()
            .await;
        assert!(wrong.is_empty(), "{} wrong answers, the first: {}", wrong.len(), wrong[0]);
    }

    /// What was wrong with the answer to this call. Every tenth goes as a batch of three.
    async fn wrong(&self, id: u64) -> Option<String> {
        let (body, right) = if id.is_multiple_of(10) {
            let ids = [id, id + 1_000_000, id + 2_000_000];
            (json!(ids.map(call)), json!(ids.map(right)))
        } else {
            (call(id), right(id))
        };
        let request = Request::post("/main").body(body.to_string().into()).expect("a request");
        match self.send(request).await {
            Ok(reply) if reply.status == 200 && reply.value().as_ref() == Some(&right) => None,
            Ok(reply) => Some(format!("{body} got {reply:?}")),
            Err(err) => Some(format!("{body} got {err:?}")),
        }
    }
}

impl Reply {
    fn value(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    pub(crate) fn json(&self) -> Value {
        self.value().unwrap_or_else(|| panic!("not JSON: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// Status, JSON-RPC code and `data.reason`: what a refusal of ours consists of.
    pub(crate) fn refusal(&self) -> (u16, i64, String) {
        let error = &self.json()["error"];
        let reason = error["data"]["reason"].as_str().unwrap_or_default().to_owned();
        (self.status, error["code"].as_i64().unwrap_or_default(), reason)
    }
}

/// A read whose right answer can be told from any other.
pub(crate) fn call(id: u64) -> Value {
    let to = format!("{id:#042x}");
    json!({"jsonrpc": "2.0", "id": id, "method": "eth_call", "params": [{"to": to, "data": "0x"}, "latest"]})
}

/// The only right answer to [`call`].
pub(crate) fn right(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": simulator::expected("eth_call", &call(id)["params"])})
}

/// A batch of reads as a body.
pub(crate) fn calls(ids: Range<u64>) -> String {
    Value::from_iter(ids.map(call)).to_string()
}
