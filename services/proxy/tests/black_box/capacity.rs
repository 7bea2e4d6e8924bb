//! Limits: honoured, learned, counted exactly, and told to clients truthfully.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use simulator::{Answer, Behaviour, Limit};

use crate::harness::{Reply, World, call, calls, right};

const HOUR: Duration = Duration::from_secs(3600);

/// Kills: failover that runs out of attempts, and limits that reach a client while another has room.
#[tokio::test]
async fn one_limited_and_one_failing_of_three_lose_nothing() {
    for unwatched in [true, false] {
        let world = if unwatched { World::build_unwatched() } else { World::build() };
        let world = world
            .primary("limited", Behaviour::rate_limited(None))
            .primary("failing", Behaviour::status(500))
            .primary("healthy", Behaviour::Healthy)
            .start()
            .await;
        for id in 0..150 {
            let reply = world.client.post(call(id).to_string()).await;
            assert_eq!((reply.status, reply.json()), (200, right(id)));
        }
    }
}

fn hour() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / HOUR.as_secs()
}

/// Kills: a ceiling off by one, counted per worker, or not charged for batches.
#[tokio::test]
async fn a_static_ceiling_is_exact() {
    let capacity = json!({"capacity": {"max_requests": 5, "window_seconds": 3600}});
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, capacity)
        .fallback("b", Behaviour::Healthy)
        .start()
        .await;
    let before = hour();
    world.client.volley(1_001..1_010).await;
    world.client.volley(1_011..1_020).await;
    assert_eq!(world.client.post(calls(0..32)).await.json(), Value::from_iter((0..32).map(right)));
    let windows = usize::try_from(hour() - before).expect("small") + 1;
    // Probes count as use.
    let first = world["a"].total() + world.asked_before("a");
    assert!(first == 5 || (windows > 1 && first <= 5 * windows), "{first} calls in {windows} windows");
    assert_eq!(world.asked("a") + world.asked("b"), 50);
}

fn retry_after(reply: &Reply) -> u64 {
    assert_eq!(reply.refusal(), (429, -32005, "saturated".to_owned()), "{reply:?}");
    reply.header("retry-after").and_then(|seconds| seconds.parse().ok()).expect("whole seconds")
}

/// Kills: a saturated provider that is asked all the same, a made-up `Retry-After`, a lost id.
#[tokio::test]
async fn saturation_is_told_truthfully() {
    let capacity = json!({"capacity": {"max_requests": 2, "window_seconds": 4}});
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, capacity)
        .env("SATURATION_WAIT_MS", "0")
        .start()
        .await;
    let (mut told, mut refused_at) = (0, Instant::now());
    for id in 0..5 {
        let reply = world.client.post(call(id).to_string()).await;
        if reply.status != 200 {
            (told, refused_at) = (retry_after(&reply), Instant::now());
            assert_eq!(reply.json()["id"], id);
            break;
        }
    }
    assert!((1..=5).contains(&told), "{told} s of a window of 4");
    tokio::time::sleep_until((refused_at + Duration::from_secs(told)).into()).await;
    assert_eq!(
        world.client.post(call(9).to_string()).await.json(),
        right(9),
        "refused at the announced second"
    );
}

/// Kills: no waiting, or waiting past the opening.
#[tokio::test]
async fn a_short_wait_for_capacity_is_waited() {
    let capacity = json!({"capacity": {"max_requests": 3, "window_seconds": 1}});
    let world = World::build()
        .endpoint("a", Behaviour::Healthy, capacity)
        .env("SATURATION_WAIT_MS", "10000")
        .env("PROXY_TIMEOUT", "20")
        .start()
        .await;
    world.client.volley(1..10).await;
    let at: Vec<Instant> = world["a"].seen().iter().map(|seen| seen.at).collect();
    assert_eq!(at.len(), 9);
    // Three windows of a second: the first and the last of them have a whole one between, less what a call was on its way.
    assert!(at[8] - at[0] >= Duration::from_millis(500), "nine calls within {:?}", at[8] - at[0]);
}

/// Kills: an explicit wait that is not honoured: the provider is asked once and then left alone.
#[tokio::test]
async fn explicit_waits_are_honoured() {
    let overloaded = Answer::new(503, "overloaded").header("retry-after", "60");
    for limited in [Behaviour::rate_limited(Some(60)), Behaviour::Answer(overloaded)] {
        let text = format!("{limited:?}");
        let world =
            World::build().primary("a", limited.clone()).fallback("b", Behaviour::Healthy).start().await;
        world.client.volley(1..10).await;
        assert!(world.asked("a") <= 9 && world.asked("a") > 0, "{text}");
        let asked = world.asked("a");
        world.client.volley(11..20).await;
        assert_eq!(world.asked("a"), asked, "{text}: asked while parked");

        let alone = World::build().primary("a", limited).start().await;
        let told = retry_after(&alone.client.post(call(1).to_string()).await);
        assert!((55..=61).contains(&told), "{text}: {told}");
        let again = retry_after(&alone.client.post(call(2).to_string()).await);
        assert!(again <= told && alone.asked("a") == 1, "{text}: asked while parked");
    }
}

/// Kills: a quota taken for a burst of seconds.
#[tokio::test]
async fn quotas_park_until_they_reset() {
    let quota = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"daily request count exceeded, request rate limited"}}"#;
    let world = World::build().primary("a", Behaviour::Answer(Answer::json(429, quota))).start().await;
    let told = retry_after(&world.client.post(call(1).to_string()).await);
    let midnight =
        86_400 - SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() % 86_400;
    assert!(told <= midnight + 5 && told + 5 >= midnight.min(3_600), "{told} s, {midnight} s to midnight");
}

/// Kills: endpoints of one account that count apart.
#[tokio::test]
async fn an_account_is_parked_as_a_whole() {
    let shared = json!({"account": "acme"});
    let world = World::build()
        .endpoint("a", Behaviour::rate_limited(Some(60)), shared.clone())
        .endpoint("b", Behaviour::rate_limited(Some(60)), shared)
        .fallback("c", Behaviour::Healthy)
        .start()
        .await;
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!(world.asked("a") + world.asked("b"), 1, "both endpoints of a parked account were asked");
}

/// Kills: an account that never returns once its provider is free.
#[tokio::test]
async fn a_parked_account_comes_back() {
    let burst = Behaviour::sequence(vec![Behaviour::rate_limited(None), Behaviour::Healthy]);
    let world = World::build().primary("a", burst).fallback("b", Behaviour::Healthy).start().await;
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut id = 0;
    while world["a"].count("eth_call") < 3 {
        id += 1;
        assert_eq!(world.client.post(call(id).to_string()).await.json(), right(id));
        assert!(Instant::now() < deadline, "not back after a minute; asked {} times", world.asked("a"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills: a limit that falls while traffic runs and that a client gets to feel.
#[tokio::test]
async fn a_falling_limit_is_felt_by_nobody() {
    let limit = |n| Limit::Fixed { n, window: Duration::from_secs(1) };
    let world = World::build()
        .primary("a", Behaviour::limited(limit(60)))
        .fallback("b", Behaviour::Healthy)
        .start()
        .await;
    world.client.volley(0..300).await;
    world["a"].change_limit(limit(20));
    world.client.volley(300..600).await;
    let refused = world["a"].refused();
    assert!(refused > 0, "the limit was never reached, so nothing was shown");
    assert!(refused <= 150, "hit {refused} times: nothing was learned");
    assert!(world.asked("b") > 0);
}

/// Kills: a limit on one method that stops all others.
#[tokio::test]
async fn a_refused_method_stops_no_other() {
    let unknown = Behaviour::Error(simulator::RpcError::new(-32601, "the method eth_getLogs does not exist"));
    let world = World::build()
        .primary("a", Behaviour::on_method("eth_getLogs", unknown))
        .fallback("b", Behaviour::Healthy)
        .start()
        .await;
    let logs = json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getLogs", "params": [{}]}).to_string();
    for _ in 0..5 {
        assert_eq!(world.client.post(logs.clone()).await.json()["result"], json!([]));
    }
    world.client.volley(1..10).await;
    assert_eq!((world["a"].count("eth_getLogs"), world["a"].count("eth_call")), (1, 9));
    assert_eq!(world.asked_together(), 15);
}

/// Kills: a provider that is asked anew, each time, for what it has just said that it does not have; an answer from
/// memory with the id of the call that was asked.
#[tokio::test]
async fn what_a_provider_does_not_have_is_remembered() {
    let without = |method: &str| {
        let message = format!("the method {method} does not exist/is not available");
        Behaviour::on_method(method, Behaviour::Error(simulator::RpcError::new(-32601, &message)))
    };
    for method in ["debug_traceTransaction", "eth_sendUserOperation", "getProgramAccounts"] {
        let world = World::build().primary("a", without(method)).start().await;
        for id in 1..4 {
            let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": []});
            let answer = world.client.post(call.to_string()).await.json();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32601)), "{method}");
        }
        assert_eq!(world["a"].count(method), 1, "{method}");
    }
}

/// Kills: a call that is told to come back for an opening that never comes, because it costs more compute units than the
/// ceiling has; one that nobody else is asked for; a batch that falls with it.
#[tokio::test]
async fn what_never_fits_under_a_ceiling_is_not_told_to_wait() {
    let small = json!({"capacity": {"max_compute_units": 25, "window_seconds": 1}});
    let alone = World::build().endpoint("small", Behaviour::Healthy, small.clone()).start().await;
    let refused = alone.client.post(call(1).to_string()).await;
    assert_eq!(refused.refusal(), (503, -32603, "no_live_endpoint".into()));
    assert_eq!(refused.header("retry-after"), None);
    let cheap = json!({"jsonrpc": "2.0", "id": 2, "method": "eth_chainId", "params": []});
    let batch = alone.client.post(json!([call(1), cheap]).to_string()).await.json();
    assert_eq!(
        (&batch[0]["error"]["data"]["reason"], &batch[1]["id"]),
        (&json!("no_live_endpoint"), &json!(2))
    );
    assert!(batch[1]["result"].is_string(), "{batch}");

    let helped = World::build()
        .endpoint("small", Behaviour::Healthy, small)
        .fallback("large", Behaviour::Healthy)
        .start()
        .await;
    assert_eq!(helped.client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!(helped.asked("small"), 0);
}
