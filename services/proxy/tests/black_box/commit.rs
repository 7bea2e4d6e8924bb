//! The commit point: before it a broken answer is replaced, after it the client's connection breaks too.

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use simulator::Behaviour;

use crate::harness::{World, soon};

const LONG: u64 = 1_000_000;

fn logs(bytes: u64) -> Bytes {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [{"bytes": bytes}]});
    call.to_string().into()
}

async fn world(behaviour: Behaviour) -> World {
    World::build_unwatched()
        .primary("a", behaviour)
        .fallback("b", Behaviour::Healthy)
        // What hangs is given up, and a machine that stands still for two seconds is not taken for it.
        .env("PROXY_TIMEOUT_PER_TRY", "3")
        .start()
        .await
}

/// Kills: a commit at the first byte.
#[tokio::test]
async fn before_the_commit_a_broken_answer_is_replaced() {
    for behaviour in [
        Behaviour::ResetMidBody { after_bytes: 30_000 },
        Behaviour::HangMidBody { after_bytes: 30_000 },
        Behaviour::ResetMidBody { after_bytes: 100 },
    ] {
        let text = format!("{behaviour:?}");
        let reply = world(behaviour).await.client.post(logs(LONG)).await;
        assert_eq!(
            reply.json()["result"],
            simulator::expected("eth_getLogs", &json!([{"bytes": LONG}])),
            "{text}"
        );
    }
    let small = world(Behaviour::Truncated).await.client.post(logs(50_000)).await;
    assert_eq!(small.json()["result"][0]["data"].as_str().map(str::len), Some(50_002));
}

/// Kills: a second answer appended to a first half, and a half that ends as if it were whole.
#[tokio::test]
async fn after_the_commit_the_client_sees_the_break() {
    for behaviour in [
        Behaviour::ResetMidBody { after_bytes: 300_000 },
        Behaviour::HangMidBody { after_bytes: 300_000 },
        Behaviour::Truncated,
    ] {
        let text = format!("{behaviour:?}");
        let world = world(behaviour).await;
        let request = Request::post("/main").body(logs(LONG)).expect("a request");
        let (response, _sender) = world.client.open(request).await.expect("a head");
        let (mut body, mut got, mut broken) = (response.into_body(), 0, false);
        while let Some(frame) = soon(body.frame()).await {
            match frame {
                Ok(frame) => got += frame.data_ref().map_or(0, Bytes::len),
                Err(_) => broken = true,
            }
            if broken {
                break;
            }
        }
        assert!(broken, "{text}: a clean end after {got} bytes");
        assert!(got <= 600_000, "{text}: {got} bytes are more than were sent");
        assert_eq!(world.asked("b"), 0, "{text}");
    }
}

/// Kills: an answer without announced length that breaks off and looks complete.
#[tokio::test]
async fn chunked_answers_arrive_whole() {
    let chunked = || Behaviour::chunked(10_000);
    for bytes in [0, 10, 60_000, 70_000, LONG] {
        let reply = world(chunked()).await.client.post(logs(bytes)).await;
        let length = reply.json()["result"][0]["data"].as_str().map(str::len);
        assert_eq!(length, Some(usize::try_from(bytes).expect("fits") + 2), "{bytes}");
    }
}

/// Kills: an unbounded queue between a fast provider and a slow client.
#[tokio::test]
async fn slow_readers_do_not_fill_memory() {
    let world = world(Behaviour::Healthy).await;
    world.client.post(logs(10_000_000)).await;
    let before = world.proxy.memory();
    let mut open = Vec::new();
    for _ in 0..16 {
        let request = Request::post("/main").body(logs(10_000_000)).expect("a request");
        open.push(world.client.open(request).await.expect("a head"));
    }
    // All heads are here, so every answer has passed its commit and is being held back by us.
    let grown = world.proxy.memory().saturating_sub(before);
    assert!(grown <= 16 << 20, "16 unread answers of 10 MB take {grown} bytes");
    for (response, _sender) in open {
        let body = response.into_body().collect().await.expect("a whole body").to_bytes();
        assert!(body.len() > 10_000_000);
    }
}

/// Kills: a verdict from the first kilobytes of an answer whose error comes after them.
#[tokio::test]
async fn an_error_behind_a_long_null_result_is_found() {
    let padding = " ".repeat(3_000);
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":null,{padding}"error":{{"code":-32005,"message":"rate limit exceeded"}}}}"#
    );
    let answer = simulator::Answer::json(200, body).echoing();
    let world = world(Behaviour::Answer(answer)).await;
    let reply: Value = world.client.post(logs(10)).await.json();
    assert_eq!(reply["result"][0]["data"].as_str().map(str::len), Some(12), "{reply}");
    assert_eq!(world.asked_together(), 2);
}

/// Kills: a connection that is lost with every answer above what is held, because whoever knows its length stops asking at the
/// last byte; and one that is given back while its answer still comes.
#[tokio::test]
async fn large_answers_leave_their_connection() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    for bytes in [70_000, 100_000, 1_000_000] {
        let before = world["a"].connections();
        for _ in 0..10 {
            let answer = world.client.post(logs(bytes)).await.json();
            let length = answer["result"][0]["data"].as_str().map(str::len);
            assert_eq!(length, usize::try_from(bytes + 2).ok(), "{bytes}");
        }
        let made = world["a"].connections() - before;
        // One for each of the two workers.
        assert!(made <= 2, "{made} connections for ten answers of {bytes} bytes");
    }
}
