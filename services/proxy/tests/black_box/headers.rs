//! Headers and content codings, both ways.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use simulator::{Answer, Behaviour, Coding};

use crate::harness::{Reply, World, call, calls, right};

async fn ask(world: &World, headers: &[(&str, &str)], body: String) -> Reply {
    let mut request = Request::post("/main");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    world.client.send(request.body(body.into()).expect("a request")).await.expect("an answer")
}

/// Kills: a client's secrets or whereabouts told to a provider.
#[tokio::test]
async fn a_provider_sees_no_headers_but_its_own() {
    let fields = json!({"headers": {"X-Provider-Key": "k", "Authorization": "Bearer configured"}});
    let world = World::build().endpoint("a", Behaviour::Healthy, fields).start().await;
    let private = [
        ("authorization", "Bearer secret"),
        ("cookie", "session=secret"),
        ("proxy-authorization", "Basic secret"),
        ("x-api-key", "secret"),
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-host", "secret.example"),
        ("x-real-ip", "203.0.113.7"),
        ("forwarded", "for=203.0.113.7"),
        ("te", "trailers"),
        ("connection", "keep-alive, x-hop"),
        ("x-hop", "secret"),
        ("origin", "https://secret.example"),
        ("user-agent", "secret"),
    ];
    assert_eq!(ask(&world, &private, call(1).to_string()).await.json(), right(1));
    let seen = &world["a"].seen()[0];
    let told = format!("{:?}", seen.headers);
    assert!(!told.contains("secret") && !told.contains("203.0.113.7"), "{told}");
    assert_eq!(seen.headers["x-provider-key"], "k");
    assert_eq!(seen.headers["authorization"], "Bearer configured");
    assert_eq!(seen.headers["content-type"], "application/json");
    assert_eq!(seen.headers["host"], world["a"].address().to_string());
}

/// Kills: a provider's cookies, CORS or limits told to a client.
#[tokio::test]
async fn a_client_sees_content_headers_alone() {
    let body = right(1).to_string();
    let answer = Answer::json(200, body)
        .header("set-cookie", "session=secret")
        .header("access-control-allow-origin", "https://other.example")
        .header("x-ratelimit-remaining", "3")
        .header("ratelimit-reset", "3")
        .header("server", "provider")
        .header("x-powered-by", "provider");
    let world = World::build().primary("a", Behaviour::Answer(answer)).start().await;
    let reply = ask(&world, &[], call(1).to_string()).await;
    assert_eq!((reply.json(), reply.header("content-type")), (right(1), Some("application/json")));
    for name in ["set-cookie", "x-ratelimit-remaining", "ratelimit-reset", "server", "x-powered-by"] {
        assert_eq!(reply.header(name), None, "{name}");
    }
    let origins: Vec<_> = reply.headers.get_all("access-control-allow-origin").iter().collect();
    assert_eq!(origins, ["*"]);
}

/// Kills: request ids that repeat, and preflights that a browser would refuse.
#[tokio::test]
async fn every_answer_has_an_id_and_cors() {
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("CORS_ORIGIN", "https://dapp.example")
        .start()
        .await;
    let mut ids = std::collections::HashSet::new();
    for id in 0..50 {
        let reply = ask(&world, &[("origin", "https://dapp.example")], call(id).to_string()).await;
        assert!(ids.insert(reply.header("x-request-id").expect("an id").to_owned()), "{reply:?}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://dapp.example"));
    }
    let preflight = world.client.with_method(Method::OPTIONS, "/main").await;
    assert_eq!((preflight.status, preflight.body), (200, Bytes::new()));
    assert_eq!(preflight.headers["access-control-allow-methods"], "GET, POST, OPTIONS");
    assert_eq!(
        preflight.headers["access-control-allow-headers"],
        "Accept, Authorization, Content-Type, Origin, X-Requested-With"
    );
    assert_eq!(world.asked("a"), 50);
}

/// Kills: routing told to everybody, to nobody, or not of batches.
#[tokio::test]
async fn routing_is_told_only_on_demand() {
    let quiet = World::build().primary("a", Behaviour::Healthy).start().await;
    assert_eq!(ask(&quiet, &[], call(1).to_string()).await.header("x-headgate-endpoint"), None);
    let open = World::build_unwatched()
        .primary("a", Behaviour::status(500))
        .fallback("b", Behaviour::Healthy)
        .env("EXPOSE_ROUTING", "true")
        .start()
        .await;
    let reply = ask(&open, &[], call(1).to_string()).await;
    assert_eq!(
        (reply.header("x-headgate-endpoint"), reply.header("x-headgate-attempts")),
        (Some("b"), Some("2"))
    );
    let reads = ask(&open, &[], json!([call(1), call(2)]).to_string()).await;
    assert_eq!(
        (reads.header("x-headgate-endpoint"), reads.header("x-headgate-attempts")),
        (Some("b"), Some("2")),
        "a batch's, asked as one"
    );
}

fn decoded(reply: &Reply) -> Value {
    use std::io::Read;
    let mut text = String::new();
    match reply.header("content-encoding") {
        None | Some("identity") => reply.text().clone_into(&mut text),
        Some("gzip") => {
            flate2::read::GzDecoder::new(&reply.body[..]).read_to_string(&mut text).expect("gzip");
        }
        Some("br") => {
            brotli::Decompressor::new(&reply.body[..], 4096).read_to_string(&mut text).expect("brotli");
        }
        Some("zstd") => {
            zstd::Decoder::new(&reply.body[..]).expect("zstd").read_to_string(&mut text).expect("zstd");
        }
        Some("deflate") => {
            flate2::read::ZlibDecoder::new(&reply.body[..]).read_to_string(&mut text).expect("deflate");
        }
        Some(other) => panic!("{other}"),
    }
    serde_json::from_str(&text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

/// Kills: a coding that the client did not offer, and one offered to providers that the client cannot read.
#[tokio::test]
async fn clients_get_only_codings_they_offered() {
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
        let world = World::build().primary("a", Behaviour::encoded(coding)).start().await;
        for offered in ["", "identity", "gzip", "gzip, deflate, br, zstd"] {
            let headers = [("accept-encoding", offered)];
            let headers = if offered.is_empty() { &headers[..0] } else { &headers[..] };
            let reply = ask(&world, headers, call(1).to_string()).await;
            assert_eq!(decoded(&reply), right(1), "{coding:?} for {offered:?}");
            let got = reply.header("content-encoding").unwrap_or("identity");
            assert!(got == "identity" || offered.contains(got), "{coding:?}: {got} for {offered:?}");
            let batch = ask(&world, headers, calls(0..3)).await;
            assert_eq!(decoded(&batch), Value::from_iter((0..3).map(right)), "{coding:?} for {offered:?}");
        }
        for seen in world["a"].seen() {
            let offered =
                seen.headers.get("accept-encoding").map_or("", |value| value.to_str().expect("text"));
            let batch = seen.body.starts_with(b"[");
            assert!(!batch || offered.is_empty() || offered == "identity", "{offered} for a batch");
        }
    }
}

/// Kills: detection that looks at compressed bytes.
#[tokio::test]
async fn a_limit_behind_a_coding_is_seen() {
    for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
        let limited = Behaviour::Encoded { coding, inner: Box::new(Behaviour::embedded_limit()) };
        let world = World::build().primary("a", limited).fallback("b", Behaviour::Healthy).start().await;
        let reply = ask(&world, &[("accept-encoding", "gzip, deflate, br, zstd")], call(1).to_string()).await;
        assert_eq!(decoded(&reply), right(1), "{coding:?}");
    }
}
