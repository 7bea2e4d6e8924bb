//! The predecessor's faults, by their numbers, and the test that fails if one comes back.
//!
//! | fault | test (`black_box` where no file is named; `config`, `ledger`, `health` are the crates' own) |
//! |---|---|
//! | W-01 two bodies in one answer | `commit::before_the_commit_a_broken_answer_is_replaced`, `commit::after_the_commit_the_client_sees_the_break` |
//! | W-02 a disconnect or a deadline marks endpoints | `clients::a_vanishing_client_marks_nobody`, `health::a_poison_request_hurts_nobody` |
//! | W-03 a client's 4xx ejects endpoints | `a_request_that_everybody_refuses_marks_nobody` here, `verdicts::a_clients_own_errors_mark_nobody` |
//! | W-04 a shutdown that cuts requests and exits 1 | `programs::sigterm_finishes_what_is_in_flight` and its neighbours |
//! | W-05 a dropped connection instead of 504; a longer `PROXY_TIMEOUT` without effect | `a_deadline_is_an_answer`, `a_long_timeout_is_waited` here |
//! | W-06 a single 400 becomes 502 | `verdicts::an_undecided_400_gets_a_second_opinion` |
//! | W-12 the 24-hour count never ages; a cold start floods; in-flight requests are not seen | `ledger` `usage::an_hour_leaves_after_a_day`; `coverage` `reload::a_newcomer_draws_no_flood`; `requests_in_flight_count` here |
//! | W-13 zeros that hang or crash | `zeros_do_not_hang` here, `health::the_proxy_becomes_ready` |
//! | W-15 an unsynchronised map | the compiler: no `unsafe` (`workspace.lints`), `Send` and `Sync` decide |
//! | W-16 a flag equal to its default loses to the environment | `a_flag_wins_also_when_it_is_the_default` here, `config` `the_predecessors_booleans_lose_to_a_flag_that_is_given` |
//! | W-17 the wrong endpoint is marked when URLs repeat | `equal_urls_are_marked_apart` here |
//! | W-18 unsafe calls sent twice | `transactions::unsafe_calls_are_never_sent_twice` |
//! | W-19 swapped CORS values of `/metrics` | `metrics_have_no_swapped_cors` here |
//! | W-31 a client waits for the store after its answer | `shared` `outages::frozen_and_thawed` |
//! | W-32, W-37 keys in logs, and what redacting them costs | `no_secret_is_told` here |
//! | W-33 one lock for everything | `ledger` `tests/threads.rs`; the benchmark |
//! | W-34 two kept connections per provider | `many_connections_are_kept` here, `connections::connections_to_providers_are_kept` |
//! | W-35 bodies without a limit | `bad_input::bad_bodies_are_answered_here`, `bad_input::a_body_without_announced_length_is_limited_too`, `soak` `large_requests_stay_within_the_budget` |
//! | W-36 a client's secrets sent on, a provider's cookies sent back | `headers::a_provider_sees_no_headers_but_its_own`, `headers::a_client_sees_content_headers_alone` |

use std::fs;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use http::Request;
use serde_json::{Value, json};
use simulator::{Answer, Behaviour, Chain, Provider, Script};

use crate::harness::{Client, GLANCE, Proxy, World, call, entry, right, run, soon};

pub(crate) async fn ready(client: &Client) {
    soon(async {
        while client.get("/ready").await.status != 200 {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}

pub(crate) async fn endpoints(proxy: &Proxy, chain: &str) -> Value {
    Client::new(proxy.metrics).get("/status").await.json()["chains"][chain]["endpoints"].clone()
}

/// Kills W-03: a mark for what the client did: with a threshold of one, everybody would be out.
#[tokio::test]
async fn a_request_that_everybody_refuses_marks_nobody() {
    for status in [400, 403, 404, 413] {
        let refusing = || Behaviour::on_method("eth_call", Behaviour::status(status));
        let world = World::build()
            .primary("a", refusing())
            .primary("b", refusing())
            .env("ENDPOINT_FAILURE_THRESHOLD", "1")
            .env("EPHEMERAL_CHECKS_INTERVAL", "3600")
            .start()
            .await;
        for id in 0..10 {
            assert_ne!(world.client.post(call(id).to_string()).await.status, 200);
        }
        let told = endpoints(&world.proxy, "main").await;
        for name in ["a", "b"] {
            assert_eq!(told[name]["healthy"]["http"], true, "{status} took {name} out of service: {told}");
        }
    }
}

/// Kills W-05: a connection that is dropped at the deadline. It is answered, and stays.
#[tokio::test]
async fn a_deadline_is_an_answer() {
    let world = World::build_unwatched()
        .primary("a", Behaviour::on_method("eth_call", Behaviour::Hang))
        .env("PROXY_TIMEOUT", "1")
        .env("PROXY_TIMEOUT_PER_TRY", "1")
        .start()
        .await;
    let request = Request::post("/main").body(call(7).to_string().into()).expect("a request");
    let (response, mut connection) = soon(world.client.open(request)).await.expect("an answer");
    assert_eq!(response.status(), 504);
    drop(response);
    soon(connection.ready()).await.expect("the connection stays");
}

/// Kills W-05: a bound on answers that lies below `PROXY_TIMEOUT` (the predecessor's was 15 seconds).
#[tokio::test]
async fn a_long_timeout_is_waited() {
    let slow = Behaviour::delayed(Duration::from_millis(15_500), Behaviour::Healthy);
    let world = World::build_unwatched()
        .primary("a", slow)
        .env("PROXY_TIMEOUT", "60")
        .env("PROXY_TIMEOUT_PER_TRY", "60")
        .start()
        .await;
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!(world.asked("a"), 1);
}

/// Kills W-12: a choice by what has ended, which sends all that come at once to one endpoint.
#[tokio::test]
async fn requests_in_flight_count() {
    let slow = || Behaviour::delayed(Duration::from_millis(500), Behaviour::Healthy);
    let world = World::build_unwatched().primary("a", slow()).primary("b", slow()).start().await;
    let ask = async |id: u64| world.client.post(call(id).to_string()).await.json();
    let answers = join_all((0..50).map(ask)).await;
    assert_eq!(answers, (0..50).map(right).collect::<Vec<_>>());
    let (a, b) = (world.asked("a"), world.asked("b"));
    assert!(a.abs_diff(b) <= 16, "{a} and {b} of 50 at once");
}

/// Kills W-13: a zero that deadlocks the first pass, or that stops the process.
#[tokio::test]
async fn zeros_do_not_hang() {
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("HEALTH_CHECK_CONCURRENCY", "0")
        .env("EPHEMERAL_CHECKS_INTERVAL", "0")
        .env("HEALTH_CACHE_TTL", "0")
        .start()
        .await;
    world.client.volley(1..10).await;
}

/// Kills W-16: a flag that is taken for not given because its value is the default.
#[tokio::test]
async fn a_flag_wins_also_when_it_is_the_default() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("flag-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    let node = Provider::start(Script::new(&Chain::new(1337))).await.expect("a provider starts");
    let file = json!({"main": {"a": entry(&node, &json!({}))}});
    fs::write(dir.join("endpoints.json"), file.to_string()).expect("a file");
    let env = [("CONFIG_FILE", "endpoints.json"), ("CORS_ORIGIN", "https://other.example")];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let proxy = Proxy::start(dir, &["--cors-origin", "*"], &env).await;
    let reply = Client::new(proxy.address).post(call(1).to_string()).await;
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
}

/// Kills W-17: an endpoint looked up by its URL.
#[tokio::test]
async fn equal_urls_are_marked_apart() {
    let chain = Chain::new(1337);
    let [bad, good] = [(); 2].map(|()| Script::new(&chain));
    let (bad, good) =
        (Provider::start(bad).await.expect("starts"), Provider::start(good).await.expect("starts"));
    let other = entry(&good, &json!({"role": "fallback"}));
    let one = json!({"a": entry(&bad, &json!({})), "b": other});
    let file = json!({"one": one, "two": one, "three": one});
    let env = [
        ("HEALTH_CHECK_INTERVAL", "0"),
        ("EPHEMERAL_CHECKS_INTERVAL", "3600"),
        ("ENDPOINT_FAILURE_THRESHOLD", "1"),
    ];
    let proxy = Proxy::before(&file, &env).await;
    let client = Client::new(proxy.address);
    ready(&client).await;
    bad.set(Behaviour::on_method("eth_call", Behaviour::status(500))).await.expect("breaks");
    assert_eq!(client.post_to("/two", call(1).to_string()).await.json(), right(1));
    for (chain, healthy) in [("one", true), ("two", false), ("three", true)] {
        let told = endpoints(&proxy, chain).await;
        assert_eq!(told["a"]["healthy"]["http"], healthy, "{chain}: {told}");
    }
}

/// Kills W-19: the list of headers sent as the origin.
#[tokio::test]
async fn metrics_have_no_swapped_cors() {
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("CORS_ORIGIN", "https://dapp.example")
        .env("CORS_HEADERS", "X-Mine")
        .start()
        .await;
    let reply = world.operator("/metrics").await;
    assert_eq!(reply.status, 200);
    let may = |name: &str, own: &str| reply.header(name).is_none_or(|value| value == own);
    assert!(may("access-control-allow-origin", "https://dapp.example"), "{:?}", reply.headers);
    assert!(may("access-control-allow-headers", "X-Mine"), "{:?}", reply.headers);
}

/// Kills W-34: connections that are closed as soon as there are more than a few.
#[tokio::test]
async fn many_connections_are_kept() {
    let slow = Behaviour::delayed(Duration::from_millis(100), Behaviour::Healthy);
    let world = World::build().primary("a", slow).start().await;
    let ask = async |id: u64| world.client.post(call(id).to_string()).await.json();
    let before = world["a"].connections();
    for _ in 0..5 {
        assert_eq!(join_all((0..20).map(ask)).await, (0..20).map(right).collect::<Vec<_>>());
    }
    // Which worker takes a client's connection is settled at once; a few more are no harm.
    let made = world["a"].connections() - before;
    assert!(made <= 40, "{made} connections for 20 calls at a time");
}

const SECRET: &str = "s3cr3tKEYvalue0123456789";
/// The secret as it is sent for a URL with a user.
const BASIC: &str = "dXNlcjpzM2NyM3RLRVl2YWx1ZTAxMjM0NTY3ODk";

/// Endpoints that carry the secret in every place where one can be, and that fail in every way.
fn secretive(nodes: &[Provider]) -> Value {
    let at = |number: usize, path: &str| format!("{}/{path}", nodes[number].url().trim_end_matches('/'));
    let with_user = at(4, "").replace("http://", &format!("http://user:{SECRET}@"));
    let primary = |url: String| json!({"provider": "x", "role": "primary", "http_url": url});
    let mut headed = primary(at(3, "rpc"));
    headed["headers"] = json!({"X-Provider-Key": SECRET, "Authorization": "Bearer ${PROVIDER_KEY}"});
    let mut socket = primary(at(5, &format!("v3/{SECRET}")));
    socket["ws_url"] =
        json!(format!("{}/ws/{SECRET}?dkey={SECRET}", nodes[5].ws_url().trim_end_matches('/')));
    let mut lost = primary(at(5, &format!("v4/{SECRET}")));
    lost["ws_url"] = json!(format!("ws://127.0.0.1:1/ws/{SECRET}?dkey={SECRET}"));
    json!({"main": {
        "path": primary(at(0, &format!("v2/{SECRET}"))),
        "query": primary(at(1, &format!("rpc?dkey={SECRET}&apikey={SECRET}"))),
        "variable": primary(at(2, "${PROVIDER_KEY}/rpc")),
        "headers": headed,
        "user": primary(with_user),
        "socket": socket,
        "lost-socket": lost,
        "nowhere": primary(format!("http://127.0.0.1:1/{SECRET}")),
        "no-such-name": primary(format!("https://no-such-name.invalid/{SECRET}")),
        "bad-role": {"provider": "x", "role": "primry", "http_url": at(0, SECRET)},
        "bad-url": primary(format!("ftp://127.0.0.1/{SECRET}")),
        "bad-port": primary(format!("http://127.0.0.1:99999/{SECRET}")),
    }})
}

/// What clients and operators are told when the endpoints fail in every way.
async fn told_of_failures(client: &Client, operator: &Client, nodes: &[Provider]) -> Vec<String> {
    let mut told = Vec::new();
    for behaviour in [
        Behaviour::Healthy,
        Behaviour::status(500),
        Behaviour::status(401),
        Behaviour::rate_limited(None),
        Behaviour::redirect(307, &format!("http://127.0.0.1:1/{SECRET}")),
        Behaviour::Answer(Answer::json(403, format!(r#"{{"error":"invalid key {SECRET}"}}"#))),
        Behaviour::RefuseConnections,
    ] {
        for node in nodes {
            node.set(behaviour.clone()).await.expect("behaves");
        }
        let reply = client.post(call(1).to_string()).await;
        let id = reply.header("x-request-id").expect("an id");
        told.push(format!("{:?} {}", reply.headers, reply.text()));
        told.push(operator.get(&format!("/status/why/{id}")).await.text().to_owned());
    }
    told
}

/// Kills W-32, W-37 (hosts are shown; they name the provider): a key in a log line, a page, a metric, an error, a header or a record, whatever its place in
/// the configuration, whatever goes wrong, at the highest log level; libraries that tell requests there; lines that are no JSON.
#[tokio::test]
async fn no_secret_is_told() {
    let chain = Chain::new(1337);
    let start = |_| Provider::start(Script::new(&chain));
    let nodes: Vec<Provider> =
        join_all((0..6).map(start)).await.into_iter().map(|node| node.expect("a provider starts")).collect();
    let file = secretive(&nodes);
    let env = [
        ("LOG_LEVEL", "trace"),
        ("PROVIDER_KEY", SECRET),
        ("HEALTH_CHECK_INTERVAL", "1"),
        ("PROXY_MAX_RETRIES", "20"),
        ("EXPOSE_ROUTING", "true"),
    ];
    let proxy = Proxy::before(&file, &env).await;
    let (client, operator) = (Client::new(proxy.address), Client::new(proxy.metrics));
    let mut told = told_of_failures(&client, &operator, &nodes).await;
    told.push(client.post_to(&format!("/{SECRET}x"), "{}").await.text().replace(SECRET, ""));
    fs::write(proxy.file(), file.to_string().replace("\"bad-role\"", "\"bad-role\": 7, \"b\""))
        .expect("a file");
    proxy.logged("reloaded", 1).await;
    for page in ["/status", "/metrics", "/"] {
        told.push(operator.get(page).await.text().to_owned());
    }
    told.push(proxy.log());
    let tells = |line: &&str| {
        line.to_ascii_lowercase().contains(&SECRET.to_ascii_lowercase()) || line.contains(BASIC)
    };
    for text in &told {
        assert_eq!(text.lines().find(tells), None);
    }
    let log = proxy.log();
    assert!(log.contains("\"DEBUG\""), "nothing was shown: the log is not at a high level");
    let of_libraries = |line: &&str| line.contains("tungstenite") || line.contains("\"target\":\"rustls");
    assert_eq!(log.lines().find(of_libraries), None);
    assert_eq!(log.lines().find(|line| !line.starts_with("{\"timestamp\"")), None);
    let asked = nodes[4].seen().into_iter().any(|seen| {
        seen.headers
            .get("authorization")
            .is_some_and(|value| value.as_bytes().starts_with(format!("Basic {BASIC}").as_bytes()))
    });
    assert!(asked, "nothing was shown: the URL's user was not sent");
    let check = run(&proxy.dir, &["--check"], &[("CONFIG_FILE", "endpoints.json")]).await;
    assert!(!(check.stdout + &check.stderr).contains(SECRET), "--check tells it");
}
