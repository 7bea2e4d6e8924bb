//! Limits counted by one process alone.

use std::time::Duration;

use serde_json::{Value, json};
use simulator::Behaviour;

use crate::file::{ClientsFile, client, post, post_as};
use crate::harness::{GLANCE, Reply, World, call, calls, right, soon};

async fn world(content: &Value, behaviour: Behaviour) -> (World, ClientsFile) {
    let file = ClientsFile::new(content);
    let world = World::build()
        .primary("a", behaviour)
        .env("CLIENTS_FILE", &file.path())
        .env("TRUSTED_PROXIES", "127.0.0.0/8")
        .start()
        .await;
    (world, file)
}

fn limited() -> (u16, i64, String) {
    (429, -32005, "client_limit".to_owned())
}

fn number(reply: &Reply, header: &str) -> u64 {
    let text = reply.header(header).unwrap_or_else(|| panic!("{header} in {reply:?}"));
    text.parse().unwrap_or_else(|_| panic!("{header}: {text}"))
}

/// Kills: a limit that is not kept, headers that are missing or not true, a refusal without when.
#[tokio::test]
async fn the_second_of_one_per_minute_is_told_when_to_come_back() {
    let (world, _file) = world(
        &json!({"clients": [client("a", "k", json!({"limits": {"rpm": 1}})), client("b", "free", json!({}))]}),
        Behaviour::Healthy,
    )
    .await;
    // Not across the turn of a minute.
    let first = soon(async {
        loop {
            let reply = post_as(&world.client, "k", &call(1)).await;
            if reply.status == 200 && number(&reply, "ratelimit-reset") > 5 {
                break reply;
            }
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    assert_eq!((number(&first, "ratelimit-limit"), number(&first, "ratelimit-remaining")), (1, 0));
    let asked = world.asked("a");
    let second = post_as(&world.client, "k", &call(2)).await;
    assert_eq!((second.refusal(), &second.json()["id"]), (limited(), &json!(2)));
    let wait = number(&second, "retry-after");
    assert!((1..=60).contains(&wait) && number(&second, "ratelimit-reset") == wait);
    assert_eq!((number(&second, "ratelimit-limit"), number(&second, "ratelimit-remaining")), (1, 0));
    let millis = second.json()["error"]["data"]["retry_after_ms"].as_u64().expect("a number");
    assert!(millis.div_ceil(1000) == wait, "{millis} {wait}");
    let exposed = second.header("access-control-expose-headers").unwrap_or_default();
    assert!(
        ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After"]
            .iter()
            .all(|h| exposed.contains(h))
    );
    assert_eq!(world.asked("a"), asked, "a refused request reached a provider");
    let free = post_as(&world.client, "free", &call(3)).await;
    assert_eq!((free.json(), free.header("ratelimit-limit")), (right(3), None));
}

/// Kills: a Retry-After that is a second early.
#[tokio::test]
async fn who_comes_back_when_told_is_admitted() {
    let (world, _file) =
        world(&json!({"clients": [client("a", "k", json!({"limits": {"rps": 1}}))]}), Behaviour::Healthy)
            .await;
    for _ in 0..3 {
        let refused = soon(async {
            loop {
                let reply = post_as(&world.client, "k", &call(1)).await;
                if reply.status == 429 {
                    break reply;
                }
            }
        })
        .await;
        tokio::time::sleep(Duration::from_secs(number(&refused, "retry-after"))).await;
        assert_eq!(post_as(&world.client, "k", &call(2)).await.status, 200);
    }
}

/// Kills: a batch charged as one, one that is carried out in part, a cost that can never pass answered with a wait.
#[tokio::test]
async fn a_batch_costs_its_sum_and_is_all_or_nothing() {
    let limits = json!({"rpd": 5, "cu_per_day": 1_000_000});
    let (world, _file) =
        world(&json!({"clients": [client("a", "k", json!({"limits": limits}))]}), Behaviour::Healthy).await;
    let batch = |ids| serde_json::from_str::<Value>(&calls(ids)).expect("JSON");
    assert_eq!(post_as(&world.client, "k", &batch(0..3)).await.status, 200);
    let asked = world.asked("a");
    let refused = post_as(&world.client, "k", &batch(0..3)).await;
    assert_eq!((refused.status, refused.json().as_array().map(Vec::len)), (429, Some(3)));
    let never = post_as(&world.client, "k", &batch(0..6)).await;
    assert_eq!((never.status, never.header("retry-after")), (400, None));
    let error = &never.json()[0]["error"];
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32600), &json!("cost_exceeds_limit")));
    assert_eq!(world.asked("a"), asked);
    assert_eq!(post_as(&world.client, "k", &batch(0..2)).await.status, 200, "the refused took nothing");
    assert_eq!(post_as(&world.client, "k", &call(1)).await.refusal(), limited());
}

/// Kills: a client that pays for what was never sent, or for what is no call, or pays once per attempt.
#[tokio::test]
async fn only_what_is_dispatched_is_charged_and_only_once() {
    let content = json!({"clients": [client("a", "k", json!({"limits": {"rpd": 2}, "methods": {"deny": ["debug_*"]}}))]});
    let file = ClientsFile::new(&content);
    let world = World::build_unwatched()
        .primary("a", Behaviour::status(500))
        .primary("b", Behaviour::status(500))
        .fallback("c", Behaviour::Healthy)
        .env("CLIENTS_FILE", &file.path())
        .start()
        .await;
    for body in [json!([]), json!({"id": 1}), json!({"id": 1, "method": "debug_x"}), json!("text")] {
        assert!([400, 403].contains(&post_as(&world.client, "k", &body).await.status), "{body}");
    }
    for _ in 0..3 {
        // Nobody has old state: nothing is sent.
        let none = post(&world.client, "/main?archive=true", &[("x-api-key", "k")], &call(1)).await;
        assert_eq!(none.refusal().2, "no_live_endpoint");
    }
    let three_attempts = post_as(&world.client, "k", &call(1)).await;
    assert_eq!((three_attempts.json(), number(&three_attempts, "ratelimit-remaining")), (right(1), 1));
    assert_eq!(post_as(&world.client, "k", &call(2)).await.json(), right(2));
    assert_eq!(post_as(&world.client, "k", &call(3)).await.refusal(), limited());
}

/// Kills: methods that all cost the same.
#[tokio::test]
async fn compute_units_are_of_the_method() {
    let file =
        ClientsFile::new(&json!({"clients": [client("a", "k", json!({"limits": {"cu_per_day": 100}}))]}));
    let costs = ClientsFile::new(&json!({"eth_call": 60, "eth_chainId": 1}));
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("CLIENTS_FILE", &file.path())
        .env("METHOD_COSTS_FILE", &costs.path())
        .start()
        .await;
    let first = post_as(&world.client, "k", &call(1)).await;
    assert_eq!((first.status, number(&first, "ratelimit-remaining")), (200, 40));
    assert_eq!(post_as(&world.client, "k", &call(2)).await.refusal(), limited());
    let cheap = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []});
    assert_eq!(number(&post_as(&world.client, "k", &cheap).await, "ratelimit-remaining"), 39);
}

/// Kills: one count for everybody, a header that anybody may write, a customer's addresses counted one by one.
#[tokio::test]
async fn anonymous_requests_are_counted_by_address() {
    let (world, _file) = world(&json!({"anonymous": {"limits": {"rpd": 1}}}), Behaviour::Healthy).await;
    for (from, expected) in [
        ("9.9.9.9", 200),
        ("9.9.9.9", 429),
        ("6.6.6.6, 9.9.9.9", 429),
        ("9.9.9.8", 200),
        ("2001:db8:1:2::1", 200),
        ("2001:db8:1:2:ffff::9", 429),
        ("2001:db8:1:3::1", 200),
    ] {
        let reply = post(&world.client, "/main", &[("x-forwarded-for", from)], &call(1)).await;
        assert_eq!(reply.status, expected, "{from}");
    }
    assert_eq!(world.client.post(call(1).to_string()).await.status, 200, "by the connection's own address");
    assert_eq!(world.client.post(call(1).to_string()).await.refusal(), limited());
}

/// Kills: a slot that is held for ever, or only until the answer's head; clients of a shared plan that each have it all.
#[tokio::test]
async fn a_slot_lasts_as_long_as_its_request() {
    let plan = json!({"team": {"shared": true, "limits": {"concurrency": 1}}});
    let clients = [client("a", "ka", json!({"plan": "team"})), client("b", "kb", json!({"plan": "team"}))];
    let (world, _file) = world(&json!({"plans": plan, "clients": clients}), Behaviour::Hang).await;
    let slow = {
        let client = world.client.clone();
        tokio::spawn(async move { post_as(&client, "ka", &call(1)).await })
    };
    soon(world["a"].in_flight(1)).await;
    let refused = post_as(&world.client, "kb", &call(2)).await;
    assert_eq!((refused.refusal(), number(&refused, "retry-after")), (limited(), 1));
    slow.abort();
    world["a"].set(Behaviour::Healthy).await.expect("behaves");
    soon(async {
        while post_as(&world.client, "kb", &call(2)).await.status != 200 {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    for id in 10..60 {
        assert_eq!(post_as(&world.client, "kb", &call(id)).await.json(), right(id), "one after the other");
    }
}
