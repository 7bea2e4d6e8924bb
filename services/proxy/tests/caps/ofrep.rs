//! Flags over OpenFeature's remote evaluation protocol, from a double of such a service.

use crate::double::{Asked, body, serve, status};
use crate::harness::{Client, Proxy, World, call, right};
use crate::seen::{limit, until};
use crate::server::free_port;
use http::Response;
use serde_json::{Value, json};
use simulator::Behaviour;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

const FLAG: &str = "headgate.concurrency.upstream";

/// What the service says, and what it was asked.
#[derive(Default)]
struct Service {
    value: Value,
    version: u32,
    refuses: Option<u16>,
    asked: Vec<Asked>,
    unchanged: usize,
}

impl Service {
    fn say(&mut self, value: Value) {
        self.value = value;
        self.version += 1;
    }

    fn answer(&mut self, asked: Asked) -> Response<crate::double::Body> {
        let tag = format!("\"{}\"", self.version);
        let known = asked.headers.get("if-none-match").is_some_and(|known| known == tag.as_str());
        self.asked.push(asked);
        if let Some(code) = self.refuses {
            return status(code);
        }
        if known {
            self.unchanged += 1;
            return status(304);
        }
        let flags = json!({"flags": [
            {"key": FLAG, "value": self.value, "reason": "STATIC", "variant": "tight"},
            {"key": "headgate.concurrency.websocket", "errorCode": "GENERAL", "errorDetails": "no"},
            {"key": "somebody.elses", "value": "yes"},
        ]});
        let answer = Response::builder().header("etag", tag).header("content-type", "application/json");
        answer.body(body(flags.to_string())).expect("an answer")
    }
}

async fn world(url: &str) -> World {
    World::build()
        .primary("a", Behaviour::Healthy)
        .env("MAX_UPSTREAM_IN_FLIGHT", "9")
        .env("HEADGATE_FLAGS_PROVIDER", "ofrep")
        .env("HEADGATE_OFREP_URL", url)
        .start()
        .await
}

/// Kills: another path, method or context than the protocol's, credentials that are lost or logged, a tag that is not sent
/// back, an answer "not modified" that is taken for no flags, a refusal that loosens a cap.
#[tokio::test]
async fn a_service_is_asked_for_all_flags() {
    let service = Arc::new(Mutex::new(Service::default()));
    service.lock().expect("no panic").say(json!(4));
    let shared = Arc::clone(&service);
    let address = serve(move |asked| shared.lock().expect("no panic").answer(asked)).await;
    let world = world(&format!("http://user:hush-hush@{address}/team/")).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(4.0), "in force before the first client");
    assert_eq!(limit(&world.proxy, "websocket").await, Some(0.0));
    let asked = service.lock().expect("no panic").asked[0].clone();
    assert_eq!(asked.path, "/team/ofrep/v1/evaluate/flags");
    assert_eq!(asked.headers["authorization"], "Basic dXNlcjpodXNoLWh1c2g=");
    assert_eq!(asked.headers["content-type"], "application/json");
    let context: Value = serde_json::from_slice(&asked.body).expect("JSON");
    assert_eq!(context["context"]["targetingKey"], "headgate");
    until(async || service.lock().expect("no panic").unchanged > 0).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(4.0), "not modified");
    service.lock().expect("no panic").say(json!(2.0));
    until(async || limit(&world.proxy, "upstream").await == Some(2.0)).await;
    service.lock().expect("no panic").refuses = Some(503);
    world.proxy.logged("flags cannot be read", 1).await;
    assert_eq!(limit(&world.proxy, "upstream").await, Some(2.0));
    service.lock().expect("no panic").refuses = None;
    service.lock().expect("no panic").say(json!("many"));
    until(async || limit(&world.proxy, "upstream").await == Some(9.0)).await;
    assert!(!world.proxy.log().contains("hush-hush"), "the password is logged");
}

/// Kills: a start that a service which is away, or never answers, stops or holds up.
#[tokio::test]
async fn the_start_does_not_hang_on_a_service() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let silent = silent.local_addr().expect("bound").port();
    for port in [free_port(), silent] {
        let world = world(&format!("http://127.0.0.1:{port}")).await;
        assert_eq!(limit(&world.proxy, "upstream").await, Some(9.0));
        assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
        let ready = |proxy: &Proxy| Client::new(proxy.metrics);
        let text = ready(&world.proxy).get("/metrics").await;
        assert!(text.text().contains("headgate_flags_ready{provider=\"ofrep\"} 0"), "{}", text.text());
    }
}
