//! Valkey away in every way there is: no request is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::json;
use simulator::Behaviour;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{World, call, right};
use crate::server::{Server, free_port};
use crate::twins::{Twin, degraded, on, sharing, until};

/// A world in which somebody can always serve: a ceiling that is soon used up, and one behind it.
async fn world(server: &Server) -> World {
    let capacity = json!({"capacity": [{"max_requests": 40, "window_seconds": 1}]});
    sharing(server)
        .endpoint("a", Behaviour::Healthy, capacity)
        .primary("free", Behaviour::Healthy)
        .start()
        .await
}

/// Kills: a request that waits for, or fails with, a store that was killed; an outage that never ends.
#[tokio::test]
async fn killed_and_back_empty() {
    let mut server = Server::start(&[]);
    let world = world(&server).await;
    let twin = Twin::of(&world, on(&server)).await;
    tokio::join!(world.client.volley(0..200), twin.client.volley(1_000..1_200));
    server.kill();
    tokio::join!(world.client.volley(2_000..2_300), twin.client.volley(3_000..3_300));
    until(async || degraded(&world.proxy).await && degraded(&twin.proxy).await).await;
    let ready = world.client.get("/ready").await;
    assert_eq!((ready.status, ready.json()["degraded"].clone()), (200, json!(["store"])));
    world.client.volley(4_000..4_200).await;
    server.restart();
    until(async || !degraded(&world.proxy).await && !degraded(&twin.proxy).await).await;
    tokio::join!(world.client.volley(5_000..5_200), twin.client.volley(6_000..6_200));
}

/// Kills: waiting for a server that accepts and never answers.
#[tokio::test]
async fn frozen_and_thawed() {
    let server = Server::start(&[]);
    let world = world(&server).await;
    world.client.volley(0..100).await;
    server.freeze();
    world.client.volley(1_000..1_300).await;
    until(async || degraded(&world.proxy).await).await;
    world.client.volley(2_000..2_200).await;
    server.thaw();
    until(async || !degraded(&world.proxy).await).await;
    world.client.volley(3_000..3_100).await;
}

/// Kills: a start that ends, or never becomes ready, without the store.
#[tokio::test]
async fn unreachable_at_the_start() {
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("VALKEY_URL", &format!("valkey://127.0.0.1:{}", free_port()))
        .env("STANDALONE_HEALTH_CHECKS", "false")
        .start()
        .await;
    let ready = world.client.get("/ready").await;
    assert_eq!((ready.status, ready.json()["degraded"].clone()), (200, json!(["store"])));
    assert_eq!(world.client.post(call(1).to_string()).await.json(), right(1));
}

/// Kills: a wrong password that ends the process, or is told to a client.
#[tokio::test]
async fn a_wrong_password() {
    let server = Server::start(&["--requirepass", "right"]);
    let world = sharing(&server).primary("a", Behaviour::Healthy).env("VALKEY_PASS", "wrong").start().await;
    assert!(degraded(&world.proxy).await);
    world.client.volley(0..50).await;
    let mut env = on(&server);
    env.push(("VALKEY_PASS".to_owned(), "right".to_owned()));
    let twin = Twin::of(&world, env).await;
    until(async || !degraded(&twin.proxy).await).await;
}

/// A way to the server on which everything that the server says takes as many milliseconds longer as are set.
async fn slow_way(server: &Server) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (own, to, delay) =
        (listener.local_addr().expect("bound").port(), server.port, Arc::<AtomicU64>::default());
    let set = Arc::clone(&delay);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", to)).await.expect("connects");
            let ((asks, told), (answers, asked)) = (client.into_split(), server.into_split());
            tokio::spawn(pass(asks, asked, Arc::default()));
            tokio::spawn(pass(answers, told, Arc::clone(&set)));
        }
    });
    (own, delay)
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Arc<AtomicU64>) {
    let mut held = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut held).await {
        tokio::time::sleep(Duration::from_millis(delay.load(Relaxed))).await;
        if to.write_all(&held[..read]).await.is_err() {
            return;
        }
    }
}

/// Kills: a store that is taken for well although its tokens come too late, and requests that wait for it.
#[tokio::test]
async fn slower_than_half_a_window() {
    let server = Server::start(&[]);
    let (port, delay) = slow_way(&server).await;
    let capacity = json!({"capacity": {"max_requests": 40, "window_seconds": 1}});
    let world = sharing(&server)
        .endpoint("a", Behaviour::Healthy, capacity)
        .primary("free", Behaviour::Healthy)
        .env("VALKEY_PORT", &port.to_string())
        .start()
        .await;
    until(async || !degraded(&world.proxy).await).await;
    delay.store(650, Relaxed);
    until(async || {
        world.client.volley(0..40).await;
        degraded(&world.proxy).await
    })
    .await;
    assert_eq!(world.client.get("/ready").await.json()["degraded"], json!(["store"]));
    delay.store(0, Relaxed);
    until(async || {
        world.client.volley(0..40).await;
        !degraded(&world.proxy).await
    })
    .await;
}
