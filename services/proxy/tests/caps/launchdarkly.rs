//! Flags from LaunchDarkly: the vendor's own SDK against a double of its streaming and event endpoints, reached as a relay
//! proxy is.

use crate::double::{Asked, Body, serve, status};
use crate::harness::{World, call, right};
use crate::seen::{limit, until};
use bytes::Bytes;
use futures_util::StreamExt;
use http::Response;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use serde_json::{Value, json};
use simulator::Behaviour;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const KEY: &str = "sdk-this-is-a-secret";
const FLAG: &str = "headgate.concurrency.upstream";

/// A flag that is `tight` for the context of all replicas, and 7 for everybody else.
fn flag(version: u32, tight: &Value) -> Value {
    let ours = json!({"contextKind": "headgate", "attribute": "key", "op": "in", "negate": false, "values": ["headgate"]});
    json!({
        "key": FLAG, "version": version, "on": true, "variations": [7, tight], "offVariation": 0,
        "fallthrough": {"variation": 0}, "targets": [], "contextTargets": [], "prerequisites": [], "salt": "salt",
        "rules": [{"id": "rule", "clauses": [ours], "variation": 1, "trackEvents": false}],
        "clientSideAvailability": {"usingEnvironmentId": false, "usingMobileKey": false},
    })
}

fn event(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

#[derive(Default)]
struct Service {
    refuses: Option<u16>,
    version: u32,
    tight: Value,
    streams: Vec<UnboundedSender<Bytes>>,
    asked: Vec<Asked>,
}

impl Service {
    /// Tells everybody who follows.
    fn say(&mut self, tight: Value) {
        (self.tight, self.version) = (tight, self.version + 1);
        let patch = json!({"path": format!("/flags/{FLAG}"), "data": flag(self.version, &self.tight)});
        self.streams.retain(|stream| stream.send(event("patch", &patch)).is_ok());
    }

    fn answer(&mut self, asked: Asked) -> Response<Body> {
        let path = asked.path.clone();
        self.asked.push(asked);
        if let Some(code) = self.refuses {
            return status(code);
        }
        match path.as_str() {
            "/relay/all" => self.stream(),
            "/relay/bulk" => status(202),
            _ => status(404),
        }
    }

    fn stream(&mut self) -> Response<Body> {
        let (send, mut receive) = unbounded_channel();
        let data = json!({"flags": {FLAG: flag(self.version, &self.tight)}, "segments": {}});
        send.send(event("put", &json!({"path": "/", "data": data}))).expect("it is held here");
        self.streams.push(send);
        let chunks = futures_util::stream::poll_fn(move |cx| receive.poll_recv(cx))
            .map(|chunk| Ok(Frame::data(chunk)));
        let answer = Response::builder().header("content-type", "text/event-stream");
        answer.body(BodyExt::boxed(StreamBody::new(chunks))).expect("an answer")
    }

    /// How often a path was asked.
    fn count(&self, path: &str) -> usize {
        self.asked.iter().filter(|asked| asked.path == path).count()
    }
}

async fn service(tight: Value) -> (Arc<Mutex<Service>>, SocketAddr) {
    let service = Arc::new(Mutex::new(Service { tight, version: 1, ..Service::default() }));
    let shared = Arc::clone(&service);
    let address = serve(move |asked| shared.lock().expect("no panic").answer(asked)).await;
    (service, address)
}

async fn world(address: SocketAddr) -> World {
    World::build()
        .primary("a", Behaviour::Healthy)
        .env("MAX_UPSTREAM_IN_FLIGHT", "9")
        .env("HEADGATE_FLAGS_PROVIDER", "launchdarkly")
        .env("HEADGATE_LAUNCHDARKLY_SDK_KEY", KEY)
        .env("HEADGATE_LAUNCHDARKLY_RELAY_URL", &format!("http://{address}/relay"))
        .start()
        .await
}

/// Kills: a relay that is not used, a key that is not sent or that is logged, a context that differs from the one that is
/// documented, a change that does not arrive, a stream that broke and loosens a cap, events that are lost at the end.
#[tokio::test]
async fn a_stream_tightens_while_it_runs() {
    let (service, address) = service(json!(4)).await;
    let locked = || service.lock().expect("no panic");
    let world = world(address).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(4.0), "in force before the first client");
    assert_eq!(limit(&world.proxy, "upstream.main").await, Some(0.0));
    assert_eq!(locked().asked[0].headers["authorization"], KEY);
    locked().say(json!(2));
    until(async || limit(&world.proxy, "upstream").await == Some(2.0)).await;
    locked().say(json!("some"));
    until(async || limit(&world.proxy, "upstream").await == Some(9.0)).await;
    locked().say(json!(3));
    until(async || limit(&world.proxy, "upstream").await == Some(3.0)).await;
    let before = locked().count("/relay/all");
    locked().refuses = Some(503);
    locked().streams.clear();
    until(async || locked().count("/relay/all") > before).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(3.0), "a stream that broke");
    locked().refuses = None;
    locked().say(json!(5));
    until(async || limit(&world.proxy, "upstream").await == Some(5.0)).await;
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    let log = world.proxy.log();
    assert!(!log.contains(KEY), "the key is logged: {log}");
    assert!(!world.operator("/status").await.text().contains(KEY));
    world.proxy.signal("TERM");
    assert_eq!(world.proxy.ended().await, Some(0));
    let events = |asked: &Asked| String::from_utf8(asked.body.to_vec()).expect("text");
    let told: String =
        locked().asked.iter().filter(|asked| asked.path == "/relay/bulk").map(events).collect();
    assert!(told.contains(r#""kind":"headgate""#) && told.contains(r#""key":"headgate""#), "{told}");
}

/// Kills: a key that is refused and stops the start, and a service that never answers and holds it up, or the end.
#[tokio::test]
async fn without_the_service_everything_stands_at_its_ceiling() {
    let (refusing, refused) = service(json!(4)).await;
    refusing.lock().expect("no panic").refuses = Some(401);
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    for address in [refused, silent.local_addr().expect("bound")] {
        let world = world(address).await;
        assert_eq!(limit(&world.proxy, "upstream").await, Some(9.0));
        assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
        world.proxy.logged("flags cannot be read", 1).await;
        let log = world.proxy.log();
        assert!(
            !log.contains("launchdarkly_server_sdk") && !log.contains("eventsource_client"),
            "told twice: {log}"
        );
        let ready = "headgate_flags_ready{provider=\"launchdarkly\"} 0";
        assert!(world.operator("/metrics").await.text().contains(ready));
        world.proxy.signal("TERM");
        assert_eq!(world.proxy.ended().await, Some(0));
    }
}
