//! Ceilings and parks over real HTTP. What the issues ask for beside this is in `black_box`:
//! `capacity::one_limited_and_one_failing_of_three_lose_nothing` (150 of 150), `capacity::a_static_ceiling_is_exact`
//! (5 + 45, probes among the 5), `capacity::an_account_is_parked_as_a_whole` and
//! `capacity::a_falling_limit_is_felt_by_nobody`.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use simulator::{Behaviour, Limit, Script};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};

use crate::harness::{Client, GLANCE, Proxy, Reply, World, call, calls, right, soon};

/// A ceiling of so many calls in a day; probes use some of it.
fn a_day(most: u64) -> Value {
    json!({"max_requests": most, "window_seconds": 86_400})
}

async fn told(proxy: &Proxy, name: &str) -> Value {
    let status = Client::new(proxy.metrics).get("/status").await.json();
    status["chains"]["main"]["endpoints"][name].clone()
}

/// The wait that a client at a saturated chain is told.
fn retry_after(reply: &Reply) -> u64 {
    assert_eq!(reply.refusal(), (429, -32005, "saturated".to_owned()), "{reply:?}");
    reply.header("retry-after").and_then(|text| text.parse().ok()).expect("whole seconds")
}

/// Waits until the status page says so of an endpoint.
async fn tells(proxy: &Proxy, name: &str, so: impl Fn(&Value) -> bool) -> Value {
    soon(async {
        loop {
            let told = told(proxy, name).await;
            if so(&told) {
                return told;
            }
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await
}

/// Kills: a batch that is refused, or that overdraws a ceiling, because no account has room for all of it.
#[tokio::test]
async fn a_batch_that_fits_no_account_is_split() {
    let seven = json!({"capacity": a_day(7)});
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, seven.clone())
        .endpoint("b", Behaviour::Healthy, seven)
        .start()
        .await;
    let reply = world.client.post(calls(0..10)).await;
    assert_eq!((reply.status, reply.json()), (200, Value::from_iter((0..10).map(right))));
    for name in ["a", "b"] {
        let used = world[name].total() + world.asked_before(name);
        assert!(used <= 7 && world.asked(name) > 0, "{name} was asked {used} times");
    }
    assert_eq!(world.asked_together(), 10);
}

/// Kills: a ceiling per endpoint where the provider counts per account.
#[tokio::test]
async fn endpoints_of_one_account_share_its_ceiling() {
    let acme = json!({"account": "acme", "capacity": a_day(20)});
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, acme.clone())
        .endpoint("b", Behaviour::Healthy, acme)
        .fallback("c", Behaviour::Healthy)
        .start()
        .await;
    world.client.volley(1..10).await;
    world.client.volley(11..20).await;
    world.client.volley(21..30).await;
    let probes = world.asked_before("a") + world.asked_before("b");
    assert_eq!(world["a"].total() + world["b"].total() + probes, 20);
    assert!(world.asked("a") > 0 && world.asked("b") > 0, "one of the account's endpoints was never asked");
    assert_eq!(world.asked_together(), 27);
}

/// Kills: a switch that switches nothing: a ceiling that is kept although throttling is off.
#[tokio::test]
async fn throttling_can_be_turned_off() {
    for (on, asked) in [("true", 5), ("false", 30)] {
        let world = World::build()
            .endpoint("a", Behaviour::Healthy, json!({"capacity": a_day(5)}))
            .fallback("b", Behaviour::Healthy)
            .env("CAPACITY_THROTTLING_ENABLED", on)
            .start()
            .await;
        for id in 1..=30 {
            assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
        }
        let most = asked - world.asked_before("a");
        let right = if on == "true" { most } else { asked };
        assert_eq!(world.asked("a"), right, "CAPACITY_THROTTLING_ENABLED={on}");
    }
}

/// Kills: a switch that switches nothing, and a hit that teaches nothing.
#[tokio::test]
async fn learning_can_be_turned_off() {
    for (switches, learned) in [
        (vec![], true),
        (vec![("CAPACITY_LEARNING_ENABLED", "false")], false),
        (vec![("CAPACITY_THROTTLING_ENABLED", "false")], false),
    ] {
        let limit = Limit::Fixed { n: 40, window: Duration::from_secs(3600) };
        let world = World::build()
            .endpoint("a", Behaviour::limited(limit), json!({"capacity_learning": {"window_seconds": 3600}}))
            .fallback("b", Behaviour::Healthy);
        let world = switches.iter().fold(world, |world, (name, value)| world.env(name, value)).start().await;
        world.client.volley(0..100).await;
        assert!(world["a"].refused() > 0, "{switches:?}: the limit was never reached");
        let ceilings = told(&world.proxy, "a").await["ceilings"].clone();
        let kinds: Vec<&Value> = ceilings.as_array().into_iter().flatten().map(|own| &own["kind"]).collect();
        assert_eq!(kinds.contains(&&json!("learned")), learned, "{switches:?}: {ceilings}");
    }
}

/// Kills: a client refused on the strength of an estimate while the only provider would answer.
#[tokio::test]
async fn an_estimate_alone_refuses_nobody() {
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, json!({"capacity_learning": {"window_seconds": 3600}}))
        .start()
        .await;
    for id in 0..20 {
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
    }
    let once = Behaviour::sequence(vec![Behaviour::rate_limited(None), Behaviour::Healthy]);
    world["a"].set(once).await.expect("behaves");
    // The provider itself refuses this one, and there is nobody else.
    assert_eq!(retry_after(&world.client.post(call(20).to_string()).await), 1);
    for id in 21..60 {
        let reply = world.client.post(call(id).to_string()).await;
        assert_eq!((reply.status, reply.json()), (200, right(id)), "{:?}", reply.header("retry-after"));
    }
    let ceilings = told(&world.proxy, "a").await["ceilings"].clone();
    let above = |own: &Value| own["kind"] == "learned" && own["used"].as_u64() > own["limit"].as_u64();
    assert!(ceilings.as_array().is_some_and(|all| all.iter().any(above)), "nothing was shown: {ceilings}");
}

/// Kills: a saturated archive taken for a missing one, or its requests sent to nodes that have pruned the state.
#[tokio::test]
async fn a_saturated_archive_is_told_as_such() {
    let fields = json!({"type": "archive", "capacity": a_day(5)});
    let world = World::build()
        .node("archive", Script::archive, fields)
        .primary("full", Behaviour::Healthy)
        .env("SATURATION_WAIT_MS", "0")
        .start()
        .await;
    let free = 5 - world.asked_before("archive");
    for id in 1..=10 {
        let reply = world.client.post_to("/main?archive=true", call(id).to_string()).await;
        if id <= free as u64 {
            assert_eq!((reply.status, reply.json()), (200, right(id)));
        } else {
            assert!((1..=86_400).contains(&retry_after(&reply)), "{reply:?}");
        }
    }
    assert_eq!((world.asked("archive"), world.asked("full")), (free, 0));
    assert_eq!(world.client.post(call(11).to_string()).await.json(), right(11));
}

/// A node with nothing but a WebSocket: handshakes are refused with 429 while `limited` says so.
async fn socket_node(limited: watch::Receiver<bool>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("binds");
    let url = format!("ws://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_socket(stream, *limited.borrow()));
        }
    });
    url
}

async fn serve_socket(stream: TcpStream, limited: bool) {
    #[allow(clippy::result_large_err, reason = "the library's own signature")]
    let judge = |_: &Request, response: Response| -> Result<Response, ErrorResponse> {
        if !limited {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(Some("too many requests".to_owned()));
        *refusal.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
        Err(refusal)
    };
    // A refused or abandoned handshake is the test's doing.
    let Ok(mut socket) = accept_hdr_async(stream, judge).await else { return };
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let question: Value = serde_json::from_str(&text).expect("JSON");
        let result = if question["method"] == "eth_syncing" { json!(false) } else { json!("0x10") };
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
        if socket.send(Message::text(answer.to_string())).await.is_err() {
            return;
        }
    }
}

/// Kills: an endpoint without HTTP that is parked for ever, because recovery asks over HTTP alone.
#[tokio::test]
async fn an_endpoint_without_http_comes_back_too() {
    let (limit, limited) = watch::channel(false);
    let url = socket_node(limited).await;
    let file = json!({"main": {"a": {"provider": "x", "role": "primary", "ws_url": url}}});
    let proxy = Proxy::before(&file, &[("HEALTH_CHECK_INTERVAL", "1")]).await;
    tells(&proxy, "a", |told| told["healthy"]["ws"] == true && told["block"] == 16).await;
    limit.send_replace(true);
    let parked = tells(&proxy, "a", |told| !told["parked_until"].is_null()).await;
    assert_eq!(parked["healthy"]["ws"], true, "throttled is not dead: {parked}");
    limit.send_replace(false);
    let back = tells(&proxy, "a", |told| told["parked_until"].is_null()).await;
    assert_eq!(back["healthy"]["ws"], true, "{back}");
}
