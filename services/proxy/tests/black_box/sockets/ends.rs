//! How sockets end: with the right code, and never for somebody else's fault.

use std::time::Duration;

use serde_json::json;
use simulator::Behaviour;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::harness::{GLANCE, Socket, World, call, right, soon};

async fn closes(world: &World, reason: &str) -> bool {
    let line = format!(r#"headgate_websocket_closes_total{{chain="main",reason="{reason}"}} 1"#);
    let open = r#"headgate_websocket_connections{chain="main"} 0"#;
    let metrics = world.operator("/metrics").await;
    metrics.text().contains(&line) && metrics.text().contains(open)
}

async fn counted(world: &World, reason: &str) {
    let told = async {
        while !closes(world, reason).await {
            tokio::time::sleep(GLANCE).await;
        }
    };
    soon(told).await;
}

/// Kills: sockets that are cut at the end of the process, and calls in flight that are dropped with them.
#[tokio::test]
async fn told_to_go_it_answers_and_closes_with_1001() {
    let slow = Behaviour::delayed(Duration::from_millis(300), Behaviour::Healthy);
    let world = World::build().primary("a", slow).start().await;
    let mut idle = Socket::open(world.proxy.address).await;
    let mut busy = Socket::open(world.proxy.address).await;
    busy.send(call(1)).await;
    while world.asked("a") == 0 {
        tokio::time::sleep(GLANCE).await;
    }
    world.proxy.signal("TERM");
    assert_eq!(idle.closed().await.map(|(code, _)| code), Some(1001));
    assert_eq!(busy.hear().await, right(1));
    assert_eq!(busy.closed().await.map(|(code, _)| code), Some(1001));
    assert_eq!(world.proxy.ended().await, Some(0));
}

/// Kills: a close that is answered with another code, or with one that may not be sent.
#[tokio::test]
async fn a_clients_close_is_echoed() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    for (code, expected) in [(Some(1000), 1000), (Some(4321), 4321), (None, 0)] {
        let mut socket = Socket::open(world.proxy.address).await;
        let frame = code.map(|code| CloseFrame { code: CloseCode::from(code), reason: "bye".into() });
        socket.stream.close(frame).await.expect("is sent");
        assert_eq!(socket.closed().await.map(|(code, _)| code), Some(expected), "{code:?}");
    }
}

/// Kills: sockets whose other end is long gone.
#[tokio::test]
async fn who_does_not_answer_pings_is_closed_and_who_does_is_not() {
    let world = World::build().primary("a", Behaviour::Healthy).env("WS_PING_INTERVAL", "2").start().await;
    let mut alive = Socket::open(world.proxy.address).await;
    let mut silent = Socket::open(world.proxy.address).await;
    // It reads, but as a bare connection: no ping is answered.
    let mut heard = Vec::new();
    let reading = silent.stream.get_mut().read_to_end(&mut heard);
    let ended = async { soon(reading).await.expect("ends well") };
    // The one that lives answers pings while it waits for what never comes.
    tokio::select! {
        _ = ended => {}
        closed = alive.closed() => panic!("closed: {closed:?}"),
    }
    // The last frame is the close: 1008.
    let close = heard.windows(4).rev().find(|window| window[0] == 0x88).expect("a close");
    assert_eq!(u16::from_be_bytes([close[2], close[3]]), 1008, "{heard:?}");
    assert_eq!(alive.ask(call(1)).await, right(1));
}

/// Kills: answers that pile up without a bound for who does not read them, and a slow client that is not told apart.
#[tokio::test]
async fn who_takes_nothing_is_cut_off_with_1013() {
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("WS_QUEUE_BYTES", "1MiB")
        .env("WS_PING_INTERVAL", "500ms")
        .start()
        .await;
    let mut socket = Socket::open(world.proxy.address).await;
    let large = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "eth_getLogs", "params": [{"bytes": 3_000_000}]});
    for id in 0..20 {
        socket.send(large(id)).await;
    }
    counted(&world, "slow").await;
    assert!(world.proxy.memory() < 150 << 20, "{} bytes", world.proxy.memory());
    // What was on its way comes, then the close, unless the connection was cut before this client read on.
    if let Some((code, _)) = socket.closed().await {
        assert_eq!(code, 1013);
    }
}

/// Kills: one large answer that is taken for a slow client, or that is broken on its way.
#[tokio::test]
async fn an_answer_larger_than_the_queue_arrives_whole() {
    let world = World::build().primary("a", Behaviour::Healthy).env("WS_QUEUE_BYTES", "64KiB").start().await;
    let mut socket = Socket::open(world.proxy.address).await;
    for id in 0..3 {
        let large =
            json!({"jsonrpc": "2.0", "id": id, "method": "eth_getLogs", "params": [{"bytes": 2_000_000}]});
        let answer = socket.ask(large).await;
        assert_eq!(answer["id"], id);
        assert!(answer["result"].to_string().len() > 2_000_000);
    }
}
