//! An installation of the predecessor, unchanged: every field of its endpoints file and every variable start and serve.

use serde_json::{Value, json};
use simulator::{Chain, Provider, Script};

use crate::harness::{Client, Proxy, call, right};
use crate::predecessor::{endpoints, ready};

/// Every field of the predecessor's endpoints file.
fn every_field(url: &str) -> Value {
    let full = json!({
        "provider": "Infura", "role": "primary", "type": "archive", "HTTP_URL": format!("{url}?key=${{KEY}}"),
        "ws_url": "", "skip_sync_check": true,
        "rate_limit_recovery": {"backoff_multiplier": 2.5, "initial_backoff": 30, "max_backoff": 300,
            "max_retries": 10, "required_successes": 3, "reset_after": 3600},
        "capacity": {"max_requests": 1000, "window_seconds": 60},
        "unknown_field": {"is": "ignored"},
    });
    let learning = json!({
        "provider": "alchemy", "role": "fallback", "type": "full", "http_url": format!("{url}$PATH_PART"),
        "rate_limit_recovery": null, "capacity": null,
        "capacity_learning":
            {"decrease_factor": 0.5, "increase_interval": 60, "min_estimate": 1, "window_seconds": 60},
    });
    let bare = json!({"role": "public", "http_url": url});
    let unusable =
        json!({"role": "PRIMRY", "http_url": url, "capacity": {"max_requests": 0, "window_seconds": -5}});
    json!({
        "main": {"full": full, "learning": learning, "bare": bare, "unusable": unusable},
        "empty": {}, "nothing": null,
    })
}

/// The predecessor's variables, each with a value of its own kind. `VALKEY_*` is left to the tests of shared state.
const EVERY_VARIABLE: [(&str, &str); 30] = [
    ("CORS_HEADERS", "Accept, Authorization, Content-Type, Origin, X-Requested-With"),
    ("CORS_METHODS", "GET, POST, OPTIONS"),
    ("CORS_ORIGIN", "*"),
    ("ENDPOINT_FAILURE_THRESHOLD", "2"),
    ("ENDPOINT_SUCCESS_THRESHOLD", "2"),
    ("EPHEMERAL_CHECKS_ENABLED", "t"),
    ("EPHEMERAL_CHECKS_HEALTHY_THRESHOLD", "3"),
    ("EPHEMERAL_CHECKS_INTERVAL", "30"),
    ("HEALTH_CACHE_TTL", "10"),
    ("HEALTH_CHECK_CONCURRENCY", "20"),
    ("HEALTH_CHECK_INTERVAL", "2.5"),
    ("HEALTH_CHECK_SYNC_STATUS", "TRUE"),
    ("HEALTH_CHECKER_GRACE_PERIOD", "60"),
    ("HEALTH_CHECKER_SERVER_PORT", "8080"),
    ("HEALTH_CHECKER_SERVICE_URL", "http://aetherlay-hc:8080"),
    ("LOG_LEVEL", "loud"),
    ("METRICS_ENABLED", "True"),
    ("PROXY_MAX_RETRIES", "3"),
    ("PROXY_TIMEOUT", "15"),
    ("PROXY_TIMEOUT_PER_TRY", "5"),
    ("PUBLIC_FIRST", "f"),
    ("PUBLIC_FIRST_ATTEMPTS", ""),
    ("STANDALONE_HEALTH_CHECKS", "yes"),
    ("VALKEY_PASS", ""),
    ("VALKEY_USE_TLS", "false"),
    ("VALKEY_SKIP_TLS_CHECK", "false"),
    ("CAPACITY_THROTTLING_ENABLED", "true"),
    ("CAPACITY_LEARNING_ENABLED", "1"),
    ("KEY", "from-the-environment"),
    ("PATH_PART", "/v2"),
];

/// Kills a drop-in that stops at a field, a variable or a value that the predecessor took.
#[tokio::test]
async fn an_unchanged_configuration_starts_and_serves() {
    let node = Provider::start(Script::new(&Chain::new(1337))).await.expect("a provider starts");
    let url = node.url();
    let proxy = Proxy::before(&every_field(url.trim_end_matches('/')), &EVERY_VARIABLE).await;
    let client = Client::new(proxy.address);
    ready(&client).await;
    assert_eq!(client.post(call(1).to_string()).await.json(), right(1));
    assert_eq!(client.post_to("/main?archive=true", call(2).to_string()).await.json(), right(2));
    let asked: Vec<String> =
        node.seen().into_iter().filter(|seen| seen.method == "eth_call").map(|seen| seen.target).collect();
    assert_eq!(asked, ["/?key=from-the-environment"; 2]);
    let told = endpoints(&proxy, "main").await;
    for name in ["full", "learning", "bare"] {
        assert_eq!(told[name]["healthy"]["http"], true, "{name}: {told}");
    }
    assert_eq!(told["full"]["ceilings"][0]["limit"], 1000, "{told}");
    assert!(proxy.log().contains("main.unusable.role"), "an unknown role is not told about");
}
