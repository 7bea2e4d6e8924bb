//! What a test sees of a proxy's gates.

use crate::harness::{Client, GLANCE, Proxy, Reply, World, call, soon};
use http::Request;
use hyper::Response;
use hyper::body::Incoming;

/// A metric of a gate, if the proxy has it.
pub(crate) async fn metric(proxy: &Proxy, name: &str, gate: &str, more: &str) -> Option<f64> {
    let line = format!("headgate_{name}{{gate=\"{gate}\"{more}}} ");
    let text = Client::new(proxy.metrics).get("/metrics").await;
    text.text().lines().find_map(|found| found.strip_prefix(&line)?.parse().ok())
}

pub(crate) async fn limit(proxy: &Proxy, gate: &str) -> Option<f64> {
    metric(proxy, "concurrency_limit", gate, "").await
}

pub(crate) async fn in_flight(proxy: &Proxy, gate: &str) -> Option<f64> {
    metric(proxy, "concurrency_in_flight", gate, "").await
}

pub(crate) async fn waiting(proxy: &Proxy, gate: &str) -> Option<f64> {
    metric(proxy, "concurrency_waiting", gate, "").await
}

pub(crate) async fn shed(proxy: &Proxy, gate: &str, reason: &str) -> Option<f64> {
    metric(proxy, "concurrency_shed_total", gate, &format!(",reason=\"{reason}\"")).await
}

/// Waits for what must come.
pub(crate) async fn until(happened: impl AsyncFn() -> bool) {
    soon(async {
        while !happened().await {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}

/// The refusal of a gate.
pub(crate) fn check_shed(reply: &Reply) {
    assert_eq!(reply.refusal(), (503, -32603, "overloaded".to_owned()), "{reply:?}");
    let after = reply.header("retry-after").expect("Retry-After").parse::<u64>().expect("whole seconds");
    assert!((1..=3).contains(&after), "{after}");
}

/// A request on its way; it ends when this is dropped.
pub(crate) struct Asking(pub(crate) tokio::task::JoinHandle<Result<Reply, hyper::Error>>);

impl Asking {
    pub(crate) fn of(world: &World, id: u64) -> Asking {
        let client = Client::new(world.proxy.address);
        let request = Request::post("/main").body(call(id).to_string().into()).expect("a request");
        Asking(tokio::spawn(async move { client.send(request).await }))
    }

    pub(crate) async fn reply(mut self) -> Reply {
        soon(&mut self.0).await.expect("no panic").expect("an answer")
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An answer whose body is still coming.
pub(crate) type Streaming =
    (Response<Incoming>, hyper::client::conn::http1::SendRequest<http_body_util::Full<bytes::Bytes>>);

/// Asks for a large answer and reads its head only.
pub(crate) async fn stream(world: &World, bytes: u64) -> Streaming {
    let call =
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [{"bytes": bytes}]});
    let request = Request::post("/main").body(call.to_string().into()).expect("a request");
    soon(Client::new(world.proxy.address).open(request)).await.expect("a head")
}
