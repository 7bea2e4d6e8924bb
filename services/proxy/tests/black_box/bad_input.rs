//! Requests that are none: a clear JSON-RPC error, and no provider is bothered.

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};
use simulator::Behaviour;

use crate::harness::{Reply, World, call, calls, right, soon};

async fn world() -> World {
    World::build()
        .primary("a", Behaviour::Healthy)
        .env("MAX_BATCH", "5")
        .env("MAX_BODY_BYTES", "10000")
        .start()
        .await
}

/// The error is one of ours: it names the reason and the request, and the request's id where there is one.
fn check(input: &str, reply: &Reply, status: u16, code: i64, id: &Value) {
    let (got, error) = (reply.json(), reply.json()["error"].clone());
    assert_eq!((reply.status, &error["code"], &got["id"]), (status, &json!(code), id), "{input:.80}: {got}");
    assert_eq!(
        (&got["jsonrpc"], reply.header("content-type")),
        (&json!("2.0"), Some("application/json")),
        "{input:.80}"
    );
    assert!(error["data"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{input:.80}: {got}");
    let request_id = reply.header("x-request-id").expect("X-Request-Id");
    assert!(reply.text().contains(request_id), "{input:.80}: {got} does not tell {request_id}");
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{input:.80}");
}

/// Kills: bad input passed on to a provider, an id that is not echoed, an error without reason or CORS.
#[tokio::test]
async fn bad_bodies_are_answered_here() {
    let world = world().await;
    let (long, deep) = ("x".repeat(10_001), "[".repeat(9_000));
    let deep_params =
        format!(r#"{{"id":1,"method":"eth_call","params":{}{}}}"#, "[".repeat(4_000), "]".repeat(4_000));
    let six = calls(0..6);
    let rows: &[(&str, u16, i64, Value)] = &[
        ("", 400, -32700, Value::Null),
        ("  \n", 400, -32700, Value::Null),
        ("hello", 400, -32700, Value::Null),
        ("{", 400, -32700, Value::Null),
        (r#"{"id":1,"method":"eth_call"} x"#, 400, -32700, Value::Null),
        ("[1,", 400, -32700, Value::Null),
        ("[]", 400, -32600, Value::Null),
        ("7", 400, -32600, Value::Null),
        ("null", 400, -32600, Value::Null),
        (r#""eth_call""#, 400, -32600, Value::Null),
        (r#"{"id":3}"#, 400, -32600, json!(3)),
        (r#"{"id":"x","method":5}"#, 400, -32600, json!("x")),
        (r#"{"id":{},"method":"eth_call"}"#, 400, -32600, Value::Null),
        (r#"{"id":true,"method":"eth_call"}"#, 400, -32600, Value::Null),
        (&long, 413, -32600, Value::Null),
        (&deep_params, 400, -32600, Value::Null),
        (&deep, 400, -32600, Value::Null),
    ];
    for (body, status, code, id) in rows {
        check(body, &world.client.post((*body).to_owned()).await, *status, *code, id);
    }
    let batch = world.client.post(six.clone()).await;
    assert!([400, 413].contains(&batch.status), "{batch:?}");
    check(&six, &batch, batch.status, -32600, &Value::Null);
    let invalid = world.client.post(Bytes::from_static(b"{\"id\":1,\"method\":\"\xff\"}")).await;
    assert_eq!(invalid.status, 400, "{invalid:?}");
    assert_eq!(world.asked("a"), 0, "a provider was asked");
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
}

/// Kills: a length limit that only looks at `Content-Length`.
#[tokio::test]
async fn a_body_without_announced_length_is_limited_too() {
    let world = world().await;
    let mut body = b"POST /main HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..20 {
        body.extend_from_slice(b"400\r\n");
        body.extend_from_slice(&[b' '; 0x400]);
        body.extend_from_slice(b"\r\n");
    }
    let answer = crate::clients::raw(&world, &body).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert_eq!(world.asked("a"), 0);
}

/// Kills: a connection that is closed, and so reset, while the client still sends what is refused already: it would
/// get the reset instead of its answer.
#[tokio::test]
async fn who_still_sends_what_is_refused_gets_to_read_why() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let world = world().await;
    for (path, status) in [("/main", "413"), ("/nowhere", "404")] {
        let mut stream = tokio::net::TcpStream::connect(world.proxy.address).await.expect("connects");
        let length = 20 << 20;
        let head = format!("POST {path} HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("sent");
        soon(stream.write_all(&vec![b' '; length])).await.expect("all of it is sent");
        let mut answer = vec![0; 12];
        soon(stream.read_exact(&mut answer)).await.expect("an answer");
        assert_eq!(String::from_utf8_lossy(&answer), format!("HTTP/1.1 {status}"));
    }
}

#[tokio::test]
async fn a_bad_item_fails_alone() {
    let world = world().await;
    let answer = world.client.post(json!([call(1), 7, {"id": 9}, call(2)]).to_string()).await;
    let items = answer.json();
    assert_eq!((answer.status, &items[0], &items[3]), (200, &right(1), &right(2)));
    assert_eq!((&items[1]["error"]["code"], &items[1]["id"]), (&json!(-32600), &Value::Null));
    assert_eq!((&items[2]["error"]["code"], &items[2]["id"]), (&json!(-32600), &json!(9)));
    assert_eq!(world.asked("a"), 2, "the bad items were sent on");
}

/// Kills: routes that answer anything but what the page of the interface says.
#[tokio::test]
async fn paths_and_methods_are_judged() {
    let world = world().await;
    let check = async |method: Method, path: &str, status: u16| {
        let reply = world.client.with_method(method.clone(), path).await;
        assert_eq!(reply.status, status, "{method} {path}: {reply:?}");
    };
    check(Method::GET, "/main", 400).await;
    check(Method::PUT, "/main", 405).await;
    check(Method::DELETE, "/health", 405).await;
    check(Method::GET, "/health", 200).await;
    check(Method::POST, "/health", 405).await;
    check(Method::POST, "/ready", 405).await;
    let unknown = world.client.post_to("/nowhere", call(4).to_string()).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!(-32601)));
    assert_eq!(unknown.header("access-control-allow-origin"), Some("*"));
    assert_eq!(unknown.json()["id"], 4, "its id is not echoed");
    for (path, status) in [("/main", 400), ("/nowhere", 404), ("/a/b/c", 404)] {
        let reply = world.client.get(path).await;
        let id = reply.header("x-request-id").expect("X-Request-Id");
        assert_eq!(
            (reply.status, &reply.json()["error"]["data"]["request_id"]),
            (status, &json!(id)),
            "{path}"
        );
    }
    assert_eq!(world.client.post_to("/main/", call(4).to_string()).await.json(), right(4));
    assert_eq!(world.client.post_to("/main?x=y", call(4).to_string()).await.json(), right(4));
}

/// Kills: an answer that depends on how the request calls its content.
#[tokio::test]
async fn content_types_do_not_matter() {
    let world = world().await;
    for content_type in ["text/plain", "application/json; charset=utf-8", "nonsense"] {
        let request =
            Request::post("/main").header("content-type", content_type).body(call(1).to_string().into());
        let reply = world.client.send(request.expect("a request")).await.expect("an answer");
        assert_eq!(reply.json(), right(1), "{content_type}");
    }
}
