//! Keys, permissions, and a clients file that changes.

use serde_json::{Value, json};
use simulator::Behaviour;

use crate::file::{ClientsFile, client, hashed, post, post_as};
use crate::harness::{GLANCE, World, call, right, run, soon};
use crate::twins::{Twin, until};

async fn world(file: &ClientsFile) -> World {
    World::build().primary("a", Behaviour::Healthy).env("CLIENTS_FILE", &file.path()).start().await
}

fn unauthorized() -> (u16, i64, String) {
    (401, -32001, "unauthorized".to_owned())
}

fn forbidden() -> (u16, i64, String) {
    (403, -32001, "forbidden".to_owned())
}

/// Kills: a way to carry the key that does not work, a wrong key served as anonymous, a refusal that reaches a provider,
/// or that forgets the calls' ids.
#[tokio::test]
async fn a_key_opens_the_door_in_each_of_three_ways() {
    let file = ClientsFile::new(&json!({"clients": [client("acme", "secret-1", json!({}))]}));
    let world = world(&file).await;
    for (path, headers) in [
        ("/main", &[("authorization", "Bearer secret-1")][..]),
        ("/main", &[("x-api-key", "secret-1")]),
        ("/main/secret-1", &[]),
        ("/main/secret-1?archive=false", &[]),
    ] {
        let reply = post(&world.client, path, headers, &call(1)).await;
        assert_eq!((reply.status, reply.json()), (200, right(1)), "{path} {headers:?}");
    }
    let asked = world.asked("a");
    for (path, headers) in [
        ("/main", &[][..]),
        ("/main/", &[]),
        ("/main/secret-2", &[]),
        ("/main", &[("authorization", "Bearer secret-1x")]),
        ("/main", &[("authorization", "Basic secret-1")]),
        ("/main", &[("x-api-key", "")]),
        ("/main/secret-1", &[("x-api-key", "secret-2")]),
    ] {
        let reply = post(&world.client, path, headers, &call(1)).await;
        assert_eq!(reply.refusal(), unauthorized(), "{path} {headers:?}");
        assert_eq!((&reply.json()["id"], reply.header("www-authenticate")), (&json!(1), Some("Bearer")));
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    }
    let both = post(&world.client, "/main", &[], &json!([call(7), call(8)])).await;
    let ids: Vec<Value> =
        both.json().as_array().expect("one for each").iter().map(|e| e["id"].clone()).collect();
    assert_eq!((both.status, ids), (401, vec![json!(7), json!(8)]));
    assert_eq!(world.asked("a"), asked, "a provider was asked for somebody unknown");
}

/// Kills: a body that is read before it is known who asks.
#[tokio::test]
async fn who_is_unknown_is_refused_before_the_body_is_read() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let file = ClientsFile::new(&json!({"clients": [client("acme", "secret-1", json!({}))]}));
    let world = world(&file).await;
    let mut socket = tokio::net::TcpStream::connect(world.proxy.address).await.expect("connects");
    let head = "POST /main HTTP/1.1\r\nhost: h\r\nx-api-key: nobody\r\ncontent-length: 1000000\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.expect("sent");
    let mut answer = vec![0; 12];
    soon(socket.read_exact(&mut answer)).await.expect("an answer");
    assert_eq!(answer, b"HTTP/1.1 401");
}

/// Kills: permissions that are not looked at, a batch of which the allowed part is carried out.
#[tokio::test]
async fn chains_methods_and_dates_bind_a_client() {
    let file = ClientsFile::new(&json!({
        "anonymous": {"methods": {"allow": ["eth_chainId"]}},
        "clients": [
            client("reader", "k-reader", json!({"methods": {"allow": ["eth_*"], "deny": ["eth_send*"]}})),
            client("elsewhere", "k-elsewhere", json!({"chains": ["other"]})),
            client("late", "k-late", json!({"expires": "2020-01-01T00:00:00Z"})),
        ],
    }));
    let world = world(&file).await;
    let asks = |method: &str| json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": []});
    assert_eq!(post_as(&world.client, "k-reader", &call(1)).await.json(), right(1));
    let asked = world.asked("a");
    for method in ["eth_sendRawTransaction", "debug_traceCall"] {
        let refused = post_as(&world.client, "k-reader", &asks(method)).await;
        assert_eq!((refused.refusal(), &refused.json()["id"]), (forbidden(), &json!("x")), "{method}");
    }
    let batch = json!([call(1), asks("debug_traceCall"), call(2)]);
    let refused = post_as(&world.client, "k-reader", &batch).await;
    let reasons: Vec<Value> = refused
        .json()
        .as_array()
        .expect("a batch")
        .iter()
        .map(|item| json!([item["id"], item["error"]["data"]["reason"]]))
        .collect();
    assert_eq!(refused.status, 403);
    assert_eq!(reasons, [json!([1, "forbidden"]), json!(["x", "forbidden"]), json!([2, "forbidden"])]);
    assert_eq!(post_as(&world.client, "k-elsewhere", &call(1)).await.refusal(), forbidden());
    assert_eq!(post_as(&world.client, "k-late", &call(1)).await.refusal(), unauthorized());
    assert_eq!(world.client.post(call(1).to_string()).await.refusal(), forbidden(), "anonymous");
    assert_eq!(world.asked("a"), asked);
    assert_eq!(world.client.post(asks("eth_chainId").to_string()).await.status, 200, "anonymous");
}

/// Kills: a key that is only forgotten at the next start, a bad file that opens or closes anything.
#[tokio::test]
async fn a_leaked_key_is_out_within_seconds_and_a_bad_file_changes_nothing() {
    let two = json!({"clients": [client("a", "leaked", json!({})), client("b", "kept", json!({}))]});
    let file = ClientsFile::new(&two);
    let world = world(&file).await;
    assert_eq!(post_as(&world.client, "leaked", &call(1)).await.status, 200);
    file.write(r#"{"clients": [{"id": "a", "keys": ["leaked-in-plain-text"], "plam": "x"}]}"#);
    world.proxy.logged("endpoints not reloaded", 2).await;
    assert_eq!(post_as(&world.client, "leaked", &call(1)).await.status, 200, "the clients in use stay");
    assert!(!world.proxy.log().contains("leaked-in-plain-text"));
    file.write(&json!({"clients": [client("b", "kept", json!({}))]}).to_string());
    soon(async {
        while post_as(&world.client, "leaked", &call(1)).await.status != 401 {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
    assert_eq!(post_as(&world.client, "kept", &call(2)).await.json(), right(2));
}

/// Kills: a key that only one of several proxies forgets, or only with a restart.
#[tokio::test]
async fn a_leaked_key_is_out_on_every_proxy() {
    let two = json!({"clients": [client("a", "leaked", json!({})), client("b", "kept", json!({}))]});
    let file = ClientsFile::new(&two);
    let world = world(&file).await;
    let twin = Twin::of(&world, vec![("CLIENTS_FILE".to_owned(), file.path())]).await;
    let proxies = [&world.client, &twin.client];
    for proxy in proxies {
        assert_eq!(post_as(proxy, "leaked", &call(1)).await.status, 200);
    }
    file.write(&json!({"clients": [client("b", "kept", json!({}))]}).to_string());
    for proxy in proxies {
        until(async || post_as(proxy, "leaked", &call(1)).await.status == 401).await;
        assert_eq!(post_as(proxy, "leaked", &call(1)).await.refusal(), unauthorized());
        assert_eq!(post_as(proxy, "kept", &call(2)).await.json(), right(2));
    }
}

/// Kills: a start with a file that cannot be used, which would open the gate; a message without a place, or with a key.
#[tokio::test]
async fn a_file_that_cannot_be_used_stops_the_start() {
    let endpoints =
        ClientsFile::new(&json!({"main": {"a": {"role": "primary", "http_url": "http://127.0.0.1:1"}}}));
    let config = endpoints.path();
    let dir = std::env::temp_dir();
    let bad = ClientsFile::new(&json!({
        "plans": {"basic": {"limits": {"rpm": 0}}},
        "clients": [{"id": "a", "keys": ["plain-text-key"], "plan": "basik"}],
    }));
    let ran = run(&dir, &[], &[("CONFIG_FILE", &config), ("CLIENTS_FILE", &bad.path())]).await;
    assert_eq!(ran.code, Some(64), "{ran:?}");
    for part in ["plans.basic.limits.rpm", "clients.a.keys[0]", "did you mean \"basic\"?"] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("plain-text-key"), "{}", ran.stderr);
    let none = run(&dir, &[], &[("CONFIG_FILE", &config), ("CLIENTS_FILE", "/none.json")]).await;
    assert!(none.code == Some(64) && none.stderr.contains("CLIENTS_FILE"), "{none:?}");
}

/// Kills: a key that does not open, an entry that is refused, a key printed where it can be missed.
#[tokio::test]
async fn a_new_client_is_made_on_the_command_line() {
    let ran = run(&std::env::temp_dir(), &["client", "new", "--id", "acme"], &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (first, rest) = ran.stdout.split_once('\n').expect("two lines");
    let key = first.strip_prefix("key: ").expect("the key").to_owned();
    let entry: Value = serde_json::from_str(rest).expect("the entry");
    assert_eq!(entry, json!({"id": "acme", "keys": [hashed(&key)]}));
    let again = run(&std::env::temp_dir(), &["client", "new", "--id", "acme"], &[]).await;
    assert!(!again.stdout.contains(&key), "kills: a key that is always the same");
    let file = ClientsFile::new(&json!({"clients": [entry]}));
    let world = world(&file).await;
    assert_eq!(post_as(&world.client, &key, &call(1)).await.json(), right(1));
}

/// Kills: YAML that is read as JSON, or not followed.
#[tokio::test]
async fn yaml_is_as_good_as_json() {
    let yaml = format!("clients:\n  - id: acme\n    keys:\n      - \"{}\"\n", hashed("k"));
    let file = ClientsFile::new(&json!({}));
    let path = format!("{}.yaml", file.path());
    std::fs::write(&path, yaml).expect("a file");
    let world = World::build().primary("a", Behaviour::Healthy).env("CLIENTS_FILE", &path).start().await;
    assert_eq!(post_as(&world.client, "k", &call(1)).await.json(), right(1));
    assert_eq!(post_as(&world.client, "x", &call(1)).await.refusal(), unauthorized());
    std::fs::remove_file(&path).expect("our own file");
}
