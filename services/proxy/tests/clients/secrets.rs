//! Keys are nowhere to be found.

use serde_json::json;
use simulator::Behaviour;

use crate::file::{ClientsFile, client, hashed, post};
use crate::harness::{Client, Reply, World, call};

/// What is put where keys go, and must not come out anywhere.
const KEYS: [&str; 4] = ["hunter2-known", "hunter2-unknown", "hunter2-limited", "hunter2-wrong-chain"];

/// What clients and operators are told about requests that carry the key in every way.
async fn told_of(key: &str, world: &World, operator: &Client) -> Vec<String> {
    let headers_of = |reply: &Reply| format!("{:?}", reply.headers);
    let (path, bearer, mut seen) = (format!("/main/{key}"), format!("Bearer {key}"), Vec::new());
    for (path, headers) in [
        (path.as_str(), &[][..]),
        (path.as_str(), &[]),
        ("/main", &[("authorization", bearer.as_str())]),
        ("/main", &[("x-api-key", key)]),
        (&format!("/nowhere/{key}"), &[]),
        (&format!("/main/{key}/more"), &[]),
    ] {
        let reply = post(&world.client, path, headers, &call(1)).await;
        let id = reply.header("x-request-id").unwrap_or_default();
        seen.push(operator.get(&format!("/status/why/{id}")).await.text().to_owned());
        seen.push(headers_of(&reply));
        seen.push(reply.text().to_owned());
    }
    seen.push(world.client.get(&path).await.text().to_owned());
    let options = world.client.with_method(http::Method::OPTIONS, &path).await;
    seen.push(format!("{}{}", options.text(), headers_of(&options)));
    seen
}

/// Kills: a URI, a header or a hash in a log line, an error, a metric, the status, a decision record.
#[tokio::test]
async fn keys_are_in_no_log_metric_error_status_or_record() {
    let file = ClientsFile::new(&json!({"clients": [
        client("a", KEYS[0], json!({})),
        client("b", KEYS[2], json!({"limits": {"rpd": 1, "concurrency": 1}})),
        client("c", KEYS[3], json!({"chains": ["other"]})),
    ]}));
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("CLIENTS_FILE", &file.path())
        .env("LOG_LEVEL", "trace")
        .env("EXPOSE_ROUTING", "true")
        .start()
        .await;
    let operator = Client::new(world.proxy.metrics);
    let mut seen: Vec<String> = Vec::new();
    for key in KEYS {
        seen.extend(told_of(key, &world, &operator).await);
    }
    for page in ["/metrics", "/status", "/"] {
        seen.push(operator.get(page).await.text().to_owned());
    }
    file.write("{");
    world.proxy.logged("endpoints not reloaded", 1).await;
    seen.push(world.proxy.log());
    for key in KEYS {
        let hash = hashed(key).replace("sha256:", "");
        for text in &seen {
            assert!(!text.contains(key) && !text.contains(&hash), "{key} in {text:.2000}");
        }
    }
    assert!(seen.iter().any(|text| text.contains("client_limit")), "the limit was met on the way");
}
