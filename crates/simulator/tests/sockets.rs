//! The WebSockets of a provider, seen from a socket.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use simulator::{Answer, Behaviour, Chain, Provider, RpcError, Script};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

async fn provider() -> (Arc<Chain>, Provider) {
    let chain = Chain::new(7);
    let provider = Provider::start(Script::new(&chain)).await.expect("starts");
    (chain, provider)
}

async fn connect(provider: &Provider) -> Socket {
    connect_async(provider.ws_url()).await.expect("a socket").0
}

async fn next(socket: &mut Socket) -> Value {
    let message =
        tokio::time::timeout(LONG, socket.next()).await.expect("in time").expect("open").expect("a message");
    serde_json::from_str(message.to_text().expect("text")).expect("JSON")
}

async fn ask(socket: &mut Socket, method: &str, params: Value) -> Value {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    socket.send(Message::text(call.to_string())).await.expect("sends");
    next(socket).await
}

// Kills: heads that differ from the blocks, logs that differ from the list, subscriptions that nobody counts.
#[tokio::test]
async fn what_is_told_is_what_can_be_asked() {
    let (chain, provider) = provider().await;
    let mut socket = connect(&provider).await;
    let heads = ask(&mut socket, "eth_subscribe", json!(["newHeads"])).await["result"].clone();
    let logs = ask(&mut socket, "eth_subscribe", json!(["logs", {}])).await["result"].clone();
    chain.advance();
    let (head, log) = (next(&mut socket).await, next(&mut socket).await);
    assert_eq!((&head["params"]["subscription"], &log["params"]["subscription"]), (&heads, &logs));
    let block = ask(&mut socket, "eth_getBlockByNumber", json!(["latest", false])).await["result"].clone();
    for (member, value) in head["params"]["result"].as_object().expect("a head") {
        assert_eq!(&block[member], value);
    }
    assert_eq!(
        ask(&mut socket, "eth_getLogs", json!([{}])).await["result"],
        json!([log["params"]["result"]])
    );
    assert_eq!((provider.sockets(), provider.subscriptions(), provider.count("eth_subscribe")), (1, 2, 2));
    assert_eq!(ask(&mut socket, "eth_unsubscribe", json!([heads])).await["result"], true);
    assert_eq!(provider.subscriptions(), 1);
}

// Kills: a code or reason that is lost, a reset that is a clean end, a limit that takes one more.
#[tokio::test]
async fn sockets_end_and_refuse_as_told() {
    let (_, provider) = provider().await;
    let mut socket = connect(&provider).await;
    provider.limit_subscriptions(1, RpcError::new(-32005, "too many subscriptions"));
    ask(&mut socket, "eth_subscribe", json!(["newHeads"])).await;
    assert_eq!(ask(&mut socket, "eth_subscribe", json!(["logs"])).await["error"]["code"], -32005);
    provider.close_sockets(4008, "enough");
    let Some(Ok(Message::Close(Some(close)))) = socket.next().await else { panic!("a close") };
    assert_eq!((u16::from(close.code), close.reason.as_str()), (4008, "enough"));
    let mut socket = connect(&provider).await;
    ask(&mut socket, "eth_chainId", json!([])).await;
    provider.reset_sockets();
    let end = tokio::time::timeout(LONG, socket.next()).await.expect("in time");
    assert!(matches!(end, Some(Err(Error::Io(_) | Error::Protocol(_)))), "{end:?}");
    provider.refuse_sockets(Some(Answer::rate_limited(Some(3))));
    let Err(Error::Http(answer)) = connect_async(provider.ws_url()).await else { panic!("refused") };
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].as_bytes()), (429, &b"3"[..]));
}

// Kills: a silent socket that still answers pings, and one that stays silent.
#[tokio::test]
async fn a_silent_socket_answers_not_even_pings() {
    let (chain, provider) = provider().await;
    let mut socket = connect(&provider).await;
    ask(&mut socket, "eth_subscribe", json!(["newHeads"])).await;
    provider.silence(true);
    socket.send(Message::Ping("x".into())).await.expect("sends");
    chain.advance();
    assert!(tokio::time::timeout(SHORT, socket.next()).await.is_err(), "silent");
    provider.silence(false);
    let mut both = [false; 2];
    for _ in 0..2 {
        let message = tokio::time::timeout(LONG, socket.next()).await.expect("in time").expect("open");
        both[usize::from(message.expect("a message").is_pong())] = true;
    }
    assert_eq!(both, [true, true]);
}

// Kills: behaviours that do not reach calls on sockets, a clock that sockets do not follow.
#[tokio::test]
async fn behaviours_and_the_clock_reach_sockets() {
    let chain = Chain::ticking(7, Duration::from_millis(20));
    let provider = Provider::start(Script::new(&chain)).await.expect("starts");
    let mut socket = connect(&provider).await;
    ask(&mut socket, "eth_subscribe", json!(["newHeads"])).await;
    let (one, two) = (next(&mut socket).await, next(&mut socket).await);
    assert_eq!(one["params"]["result"]["hash"], two["params"]["result"]["parentHash"]);
    let mut socket = connect(&provider).await;
    provider.set(Behaviour::embedded_limit()).await.expect("set");
    assert_eq!(ask(&mut socket, "eth_chainId", json!([])).await["error"]["code"], -32005);
    provider.set(Behaviour::RefuseConnections).await.expect("set");
    assert!(!matches!(socket.next().await, Some(Ok(_))), "closed with the listener");
    assert_eq!(provider.sockets(), 0);
}
