//! What each kind of answer leads to: passed on, asked elsewhere, or an error of ours that says why.

use serde_json::{Value, json};
use simulator::{Answer, Behaviour, Chain, Provider, RpcError, Script};

use crate::harness::{Builder, World, call, right};

fn two(first: Behaviour, second: Behaviour) -> Builder {
    World::build_unwatched().primary("a", first).fallback("b", second)
}

fn error(code: i64, message: &str) -> Behaviour {
    Behaviour::Error(RpcError::new(code, message))
}

/// Kills: a 400 passed on at once, made into a 502, or asked of everybody.
#[tokio::test]
async fn an_undecided_400_gets_a_second_opinion() {
    let bad =
        |text: &'static str| Behaviour::Answer(Answer::new(400, text).header("content-type", "text/plain"));
    let other = two(bad("first"), Behaviour::Healthy).start().await;
    assert_eq!(other.client.post(call(1).to_string()).await.json(), right(1));

    let page = "<html><head><title>400 Bad Request</title></head><body>nginx</body></html>";
    let other = two(bad(page), Behaviour::Healthy).start().await;
    assert_eq!(other.client.post(call(1).to_string()).await.json(), right(1), "the status's name decided");

    let both = two(bad("first"), bad("second")).fallback("c", Behaviour::Healthy).start().await;
    let reply = both.client.post(call(1).to_string()).await;
    let asked = both.asked_together();
    match reply.status {
        // Which of two equal fallbacks is the second opinion is left to chance.
        200 => assert_eq!((reply.json(), asked, both.asked("b")), (right(1), 2, 0)),
        status => assert_eq!((status, reply.text(), asked), (400, "second", 2)),
    }

    let alone = World::build_unwatched().primary("a", bad("first")).start().await;
    let reply = alone.client.post(call(1).to_string()).await;
    assert_eq!((reply.status, reply.text()), (400, "first"));
}

/// Kills: a client's own error asked again elsewhere, or rewritten.
#[tokio::test]
async fn a_clients_own_error_is_its_answer() {
    let check = async |code: i64, message: &str| {
        let world = two(error(code, message), Behaviour::Healthy).start().await;
        let reply = world.client.post(call(1).to_string()).await;
        let expected = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}});
        assert_eq!((reply.status, reply.json(), world.asked("b")), (200, expected, 0), "{message}");
        assert_eq!(world.asked("a"), 1, "{message}");
    };
    check(3, "execution reverted: rate limit exceeded").await;
    check(-32000, "execution reverted").await;
    check(-32602, "invalid argument 0: hex string without 0x prefix").await;
    check(-32005, "query returned more than 10000 results").await;
    check(-32000, "nonce too low").await;
    check(-32000, "insufficient funds for gas * price + value").await;
}

/// Kills: a client fault that counts against an endpoint (with a threshold of one it would be out).
#[tokio::test]
async fn a_clients_own_errors_mark_nobody() {
    let faulty = || Behaviour::on_method("eth_call", error(-32602, "invalid argument"));
    let world = World::build()
        .primary("a", faulty())
        .primary("b", faulty())
        .env("ENDPOINT_FAILURE_THRESHOLD", "1")
        .start()
        .await;
    for id in 0..20 {
        world.client.post(call(id).to_string()).await;
    }
    assert!(world.asked("a") >= 5 && world.asked("b") >= 5, "one is out of rotation");
}

/// Kills: a capability refusal that ends the request while somebody else can, and one that becomes a 502.
#[tokio::test]
async fn capability_refusals_move_on_and_then_pass() {
    for (code, message) in [
        (-32601, "the method eth_call does not exist/is not available"),
        (-32000, "missing trie node 5ab0 (path ) state is not available"),
        (-32602, "block range is too wide, limited to 1000 blocks"),
    ] {
        let some = two(error(code, message), Behaviour::Healthy).start().await;
        assert_eq!(some.client.post(call(1).to_string()).await.json(), right(1), "{message}");

        let nobody = two(error(code, message), error(code, "the second refusal: block range is too wide"))
            .start()
            .await;
        let reply = nobody.client.post(call(1).to_string()).await;
        let expected = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}});
        assert_eq!((reply.status, reply.json()), (200, expected));
        assert!(nobody.asked("a") == 1 && nobody.asked("b") <= 1, "{message}: asked more than once");
    }
}

/// Kills: a redirect that is followed, with our payload, to an address nobody configured.
#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Provider::start(Script::new(&Chain::new(1))).await.expect("starts");
    for status in [301, 302, 303, 307, 308] {
        let redirect = Behaviour::redirect(status, &elsewhere.url());
        let world = two(redirect.clone(), Behaviour::Healthy).start().await;
        assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1), "{status}");
        let alone = World::build_unwatched().primary("a", redirect).start().await;
        let refusal = alone.client.post(call(1).to_string()).await.refusal();
        assert_eq!(refusal, (502, -32603, "all_attempts_failed".to_owned()), "{status}");
    }
    assert_eq!(elsewhere.connections(), 0);
}

/// Kills: an error of ours with another status or code, without the id, or one that tells where we asked.
#[tokio::test]
async fn failures_have_a_name() {
    let check = async |behaviour: Behaviour, expected: (u16, i64, &str)| {
        let text = format!("{behaviour:?}");
        // Who is to answer in time has all the time that a busy machine may take.
        let deadline = if expected.0 == 504 { "1" } else { "50" };
        let world = two(behaviour.clone(), behaviour)
            .env("PROXY_TIMEOUT", deadline)
            .env("PROXY_TIMEOUT_PER_TRY", "20")
            .start()
            .await;
        let reply = world.client.post(call(77).to_string()).await;
        let (status, code, reason) = expected;
        assert_eq!(reply.refusal(), (status, code, reason.to_owned()), "{text}");
        assert_eq!(reply.json()["id"], 77, "{text}");
        for provider in world.providers() {
            let port = provider.address().port().to_string();
            assert!(!reply.text().contains(&port), "{text} tells an address: {}", reply.text());
        }
        let id = reply.header("x-request-id").expect("X-Request-Id");
        assert!(reply.text().contains(id), "{text}");
    };
    let failed = (502, -32603, "all_attempts_failed");
    for status in [500, 502, 503, 404, 401, 403, 407, 520] {
        check(Behaviour::status(status), failed).await;
    }
    check(Behaviour::RefuseConnections, failed).await;
    check(Behaviour::ResetBeforeAnswer, failed).await;
    check(Behaviour::CloseConnection, failed).await;
    check(Behaviour::Truncated, failed).await;
    check(Behaviour::html(), failed).await;
    check(Behaviour::empty(), failed).await;
    check(Behaviour::garbage(), failed).await;
    check(Behaviour::Hang, (504, -32603, "deadline")).await;
    check(Behaviour::HangMidBody { after_bytes: 10 }, (504, -32603, "deadline")).await;
    check(Behaviour::rate_limited(Some(60)), (429, -32005, "saturated")).await;
    check(Behaviour::status(402), (429, -32005, "saturated")).await;
}

/// Kills: an archive request that a full node gets.
#[tokio::test]
async fn archive_requests_need_an_archive_node() {
    let world = two(Behaviour::Healthy, Behaviour::Healthy).start().await;
    let reply = world.client.post_to("/main?archive=true", call(1).to_string()).await;
    assert_eq!(reply.refusal(), (503, -32603, "no_live_endpoint".to_owned()));
    assert_eq!(world.asked_together(), 0);

    let archive = two(Behaviour::Healthy, Behaviour::Healthy)
        .node("c", Script::archive, json!({"role": "public", "type": "archive"}))
        .start()
        .await;
    for id in 0..5 {
        assert_eq!(
            archive.client.post_to("/main?archive=true", call(id).to_string()).await.json(),
            right(id)
        );
    }
    assert_eq!((archive.asked("a"), archive.asked("c")), (0, 5));
}

/// Kills: attempts that are not counted, or that are counted for refused connections.
#[tokio::test]
async fn attempts_are_bounded() {
    let mut world = World::build_unwatched().env("PROXY_MAX_RETRIES", "2");
    for name in ["a", "b", "c", "d"] {
        world = world.primary(name, Behaviour::status(500));
    }
    let world = world.start().await;
    assert_eq!(world.client.post(call(1).to_string()).await.status, 502);
    assert_eq!(world.asked_together(), 2);

    let mut world = World::build_unwatched().env("PROXY_MAX_RETRIES", "1");
    for name in ["a", "b", "c", "d"] {
        world = world.primary(name, Behaviour::RefuseConnections);
    }
    let world = world.fallback("e", Behaviour::Healthy).start().await;
    // By the worker that the next request takes: by then it has seen that its connections are closed.
    assert_eq!(world.client.get("/health").await.status, 200);
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
}

/// Kills: tiers asked out of order.
#[tokio::test]
async fn tiers_are_asked_in_order() {
    let tiers = || {
        World::build_unwatched()
            .endpoint("p", Behaviour::Healthy, json!({"role": "public"}))
            .endpoint("f", Behaviour::Healthy, json!({"role": "fallback"}))
            .endpoint("a", Behaviour::Healthy, json!({"role": "primary"}))
    };
    let world = tiers().start().await;
    world.client.volley(1..20).await;
    assert_eq!((world.asked("f"), world.asked("p")), (0, 0));
    let public = tiers().env("PUBLIC_FIRST", "true").start().await;
    assert_eq!(public.client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!((public.asked("p"), public.asked("a")), (1, 0));
}

/// Kills: a null result taken for a failure, and an error next to a null result taken for success.
#[tokio::test]
async fn null_results_are_results() {
    let answer = |body: Value| Behaviour::Answer(Answer::json(200, body.to_string()).echoing());
    let null = json!({"jsonrpc": "2.0", "id": 1, "result": null});
    let world = two(answer(null.clone()), Behaviour::Healthy).start().await;
    assert_eq!((world.client.post(call(1).to_string()).await.json(), world.asked("b")), (null, 0));
    let both = json!({"jsonrpc": "2.0", "id": 1, "result": null, "error": {"code": -32005, "message": "rate limit exceeded"}});
    let world = two(answer(both), Behaviour::Healthy).start().await;
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    let ok = json!({"jsonrpc": "2.0", "id": 1, "result": "0x1", "error": null});
    let world = two(answer(ok.clone()), Behaviour::Healthy).start().await;
    assert_eq!(world.client.post(call(1).to_string()).await.json(), ok);
}
