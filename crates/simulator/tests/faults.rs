//! Every behaviour, seen from a socket.

use std::io::{self, Read};
use std::time::Duration;

use serde_json::{Value, json};
use simulator::{
    Answer, Behaviour, Chain, Coding, ItemFault, Limit, Provider, Refusal, RpcError, Script, expected,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Everything a provider sent on one connection, and how the connection ended.
#[derive(Debug)]
struct Talk {
    bytes: Vec<u8>,
    end: End,
}

#[derive(Debug, PartialEq)]
enum End {
    Closed,
    Reset,
    Refused,
    /// Nothing more came for a while.
    Silence,
}

async fn provider(behaviour: Behaviour) -> Provider {
    Provider::start(Script::new(&Chain::new(7)).behaving(behaviour)).await.expect("starts")
}

/// Who has said nothing for so long says nothing: longer than a busy machine takes to answer.
const SILENCE: Duration = Duration::from_secs(2);

/// Posts one body, asks for the connection to be closed after it, and listens until it is.
async fn talk(provider: &Provider, body: &str) -> Talk {
    let Ok(mut stream) = TcpStream::connect(provider.address()).await else {
        return Talk { bytes: Vec::new(), end: End::Refused };
    };
    let head = format!(
        "POST /key?x=1 HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).await.expect("writes");
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    let end = match tokio::time::timeout(SILENCE, reading).await {
        Err(_) => End::Silence,
        Ok(Ok(_)) => End::Closed,
        Ok(Err(err)) if err.kind() == io::ErrorKind::ConnectionReset => End::Reset,
        Ok(Err(err)) => panic!("{err}"),
    };
    Talk { bytes, end }
}

impl Talk {
    fn head(&self) -> String {
        let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        String::from_utf8_lossy(&self.bytes[..end]).to_lowercase()
    }

    fn status(&self) -> u16 {
        self.head()[9..12].parse().expect("a status")
    }

    fn body(&self) -> &[u8] {
        let end = self.bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        &self.bytes[end + 4..]
    }

    fn json(&self) -> Value {
        serde_json::from_slice(self.body()).expect("JSON")
    }
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "eth_call", "params": [{"to": "0x1", "data": id}, "latest"]})
}

fn right(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": expected("eth_call", &call(id)["params"])})
}

#[tokio::test]
async fn a_healthy_provider_answers_and_remembers() {
    let provider = provider(Behaviour::Healthy).await;
    let talk = talk(&provider, &call(5).to_string()).await;
    assert_eq!((talk.status(), talk.json(), talk.end), (200, right(5), End::Closed));
    let seen = provider.seen();
    assert_eq!((seen.len(), provider.count("eth_call"), provider.connections()), (1, 1, 1));
    assert_eq!((&seen[0].id, seen[0].target.as_str()), (&json!(5), "/key?x=1"));
}

#[tokio::test]
async fn batches_are_answered_item_by_item() {
    let provider = provider(Behaviour::Healthy).await;
    let notification = json!({"jsonrpc": "2.0", "method": "eth_chainId"});
    let answer = talk(&provider, &json!([call(1), notification, 7, call(2)]).to_string()).await.json();
    assert_eq!((&answer[0], &answer[2]), (&right(1), &right(2)));
    assert_eq!((&answer[1]["error"]["code"], answer.as_array().map(Vec::len)), (&json!(-32600), Some(3)));
    assert_eq!(talk(&provider, &json!([notification]).to_string()).await.status(), 204);
    assert_eq!(talk(&provider, "[]").await.json()["error"]["code"], -32600);
    assert_eq!(talk(&provider, "{").await.status(), 400);
}

#[tokio::test]
async fn connections_end_as_scripted() {
    let one = json!({"id": 1, "method": "eth_getLogs", "params": [{"bytes": 200_000}]}).to_string();
    let check = async |behaviour: Behaviour, body_bytes: Option<u64>, end: End| {
        let text = format!("{behaviour:?}");
        let talk = talk(&provider(behaviour).await, &one).await;
        let got = (!talk.bytes.is_empty()).then(|| talk.body().len() as u64);
        assert_eq!((got, talk.end), (body_bytes, end), "{text}");
    };
    let whole =
        200_000 + json!({"jsonrpc": "2.0", "id": 1, "result": [{"data": "0x"}]}).to_string().len() as u64;
    check(Behaviour::Healthy, Some(whole), End::Closed).await;
    check(Behaviour::Hang, None, End::Silence).await;
    check(Behaviour::Swallow, None, End::Silence).await;
    check(Behaviour::HangMidBody { after_bytes: 70_000 }, Some(70_000), End::Silence).await;
    check(Behaviour::ResetBeforeAnswer, None, End::Reset).await;
    check(Behaviour::ResetMidBody { after_bytes: 0 }, Some(0), End::Reset).await;
    check(Behaviour::ResetMidBody { after_bytes: 70_000 }, Some(70_000), End::Reset).await;
    check(Behaviour::Truncated, Some(whole / 2), End::Closed).await;
    check(Behaviour::CloseConnection, None, End::Closed).await;
    check(Behaviour::RefuseConnections, None, End::Refused).await;
}

#[tokio::test]
async fn a_provider_refuses_and_comes_back_on_the_same_port() {
    let provider = provider(Behaviour::Healthy).await;
    for _ in 0..3 {
        provider.set(Behaviour::RefuseConnections).await.expect("stops listening");
        assert_eq!(talk(&provider, "").await.end, End::Refused);
        provider.set(Behaviour::Healthy).await.expect("listens again");
        assert_eq!(talk(&provider, &call(1).to_string()).await.json(), right(1));
    }
}

#[tokio::test]
async fn answers_of_every_kind_come_as_scripted() {
    let check = async |behaviour: Behaviour, status: u16, header: &str, body: &[u8]| {
        let text = format!("{behaviour:?}");
        let talk = talk(&provider(behaviour).await, &call(1).to_string()).await;
        assert_eq!((talk.status(), talk.body()), (status, body), "{text}");
        assert!(talk.head().contains(header), "{text}: {}", talk.head());
    };
    check(Behaviour::status(503), 503, "content-length: 10", b"status 503").await;
    check(Behaviour::empty(), 200, "content-length: 0", b"").await;
    check(Behaviour::redirect(307, "http://x/"), 307, "location: http://x/", b"").await;
    check(Behaviour::garbage(), 200, "application/json", br#"{"jsonrpc":"2.0","id":1,"resu"#).await;
    let recorded =
        Answer::recorded(r#"{"http_status":402,"headers":{"x-a":"b"},"body":"pay"}"#).expect("a recording");
    check(Behaviour::Answer(recorded), 402, "x-a: b", b"pay").await;
    let limited = talk(&provider(Behaviour::rate_limited(Some(7))).await, &call(1).to_string()).await;
    assert!(limited.status() == 429 && limited.head().contains("retry-after: 7"), "{limited:?}");
    let html = talk(&provider(Behaviour::html()).await, &call(1).to_string()).await;
    assert!(html.head().contains("text/html"), "{html:?}");
    let bytes = talk(&provider(Behaviour::invalid_utf8()).await, &call(1).to_string()).await;
    assert!(std::str::from_utf8(bytes.body()).is_err());
    let embedded =
        talk(&provider(Behaviour::embedded_limit()).await, &json!([call(1), call(2)]).to_string()).await;
    assert_eq!((embedded.status(), &embedded.json()[1]["error"]["code"]), (200, &json!(-32005)));
}

#[tokio::test]
async fn chunks_and_codings_carry_the_same_answer() {
    let chunked = talk(&provider(Behaviour::chunked(10)).await, &call(1).to_string()).await;
    assert!(chunked.head().contains("transfer-encoding: chunked"), "{chunked:?}");
    assert!(chunked.body().starts_with(b"A\r\n{\"jsonrpc\"\r\n"), "{chunked:?}");
    let gzip = talk(&provider(Behaviour::encoded(Coding::Gzip)).await, &call(1).to_string()).await;
    assert!(gzip.head().contains("content-encoding: gzip"), "{gzip:?}");
    let mut text = String::new();
    flate2::read::GzDecoder::new(gzip.body()).read_to_string(&mut text).expect("gzip");
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), right(1));
}

#[tokio::test]
async fn items_fail_alone() {
    let batch = json!([call(1), call(2), call(3), call(4)]).to_string();
    let refused = Behaviour::Items { one_in: 2, fault: ItemFault::Error(RpcError::new(-32005, "slow down")) };
    let answer = talk(&provider(refused).await, &batch).await.json();
    assert_eq!((&answer[0], &answer[2]), (&right(1), &right(3)));
    assert_eq!((&answer[1]["error"]["code"], &answer[3]["id"]), (&json!(-32005), &json!(4)));
    let missing = Behaviour::Items { one_in: 3, fault: ItemFault::Missing };
    assert_eq!(talk(&provider(missing).await, &batch).await.json(), json!([right(1), right(2), right(4)]));
    let reversed = talk(&provider(Behaviour::Reversed).await, &batch).await.json();
    assert_eq!(reversed, json!([right(4), right(3), right(2), right(1)]));
}

#[tokio::test]
async fn turns_and_methods_choose() {
    let steps = vec![Behaviour::status(500), Behaviour::status(502), Behaviour::Healthy];
    let turns = provider(Behaviour::sequence(steps)).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(talk(&turns, &call(1).to_string()).await.status());
    }
    assert_eq!(statuses, [500, 502, 200, 200]);
    let every_second = provider(Behaviour::fraction(2, Behaviour::status(500))).await;
    let first = talk(&every_second, &call(1).to_string()).await.status();
    assert_eq!((first, talk(&every_second, &call(1).to_string()).await.status()), (200, 500));
    let method = provider(Behaviour::on_method("eth_getLogs", Behaviour::status(500))).await;
    assert_eq!(talk(&method, &call(1).to_string()).await.status(), 200);
    assert_eq!(talk(&method, r#"{"id":1,"method":"eth_getLogs"}"#).await.status(), 500);
}

/// An hour-long window: no test run sees two of them turn.
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_limit_is_enforced_for_real() {
    let provider = provider(Behaviour::limited(Limit::Rolling { n: 3, window: HOUR })).await;
    let two = json!([call(1), call(2)]).to_string();
    assert_eq!(talk(&provider, &two).await.status(), 200);
    let refused = talk(&provider, &two).await;
    assert!(refused.status() == 429 && refused.head().contains("retry-after: 3600"), "{refused:?}");
    assert_eq!(talk(&provider, &call(3).to_string()).await.status(), 200);
    let century = provider.admitted_per_window(HOUR * 24 * 365 * 100);
    assert_eq!((century.into_values().collect::<Vec<_>>(), provider.refused()), (vec![3], 2));
    provider.change_limit(Limit::Rolling { n: 4, window: HOUR });
    assert_eq!(talk(&provider, &call(3).to_string()).await.status(), 200);
}

#[tokio::test]
async fn a_limit_may_refuse_single_items() {
    let refusal = Refusal::Embedded(RpcError::new(-32005, "slow down"));
    let limited = Behaviour::limited_by(Limit::Rolling { n: 1, window: HOUR }, refusal);
    let answer = talk(&provider(limited).await, &json!([call(1), call(2)]).to_string()).await.json();
    assert_eq!((&answer[0], &answer[1]["error"]["code"]), (&right(1), &json!(-32005)));
}

#[tokio::test]
async fn a_swallowed_transaction_has_happened() {
    let chain = Chain::new(7);
    let provider = Provider::start(Script::new(&chain).behaving(Behaviour::Swallow)).await.expect("starts");
    let params = json!(["0x02f870"]);
    let send = json!({"id": 1, "method": "eth_sendRawTransaction", "params": params});
    assert_eq!(talk(&provider, &send.to_string()).await.end, End::Silence);
    let hash = expected("eth_sendRawTransaction", &params);
    assert_eq!(chain.received(hash.as_str().expect("a hash")), 1);
}

#[tokio::test]
async fn a_stopped_provider_refuses() {
    let provider = provider(Behaviour::Healthy).await;
    let address = provider.address();
    provider.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn requests_in_flight_are_known() {
    let provider = provider(Behaviour::Hang).await;
    let asking = talk(&provider, "{\"id\":1,\"method\":\"eth_chainId\"}");
    let (talk, ()) = tokio::join!(asking, provider.in_flight(1));
    assert_eq!(talk.end, End::Silence);
    provider.in_flight(0).await;
}
