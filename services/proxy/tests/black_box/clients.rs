//! Clients that are slow or go away: a clean end, and never a mark against an endpoint.

use simulator::Behaviour;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{World, call, soon};

/// Writes these bytes and reads what comes back until the first pause after something came.
pub(crate) async fn raw(world: &World, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(world.proxy.address).await.expect("connects");
    // The proxy may answer and close before it has read everything.
    let _ = stream.write_all(bytes).await;
    let mut answer = vec![0; 65_536];
    let read = soon(stream.read(&mut answer)).await;
    answer.truncate(read.unwrap_or(0));
    String::from_utf8_lossy(&answer).into_owned()
}

fn head_for(body: &str) -> String {
    format!(
        "POST /main HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
}

/// Kills: a read of the body without a deadline.
#[tokio::test]
async fn a_slow_client_is_let_go() {
    let world = World::build().primary("a", Behaviour::Healthy).env("PROXY_TIMEOUT", "500ms").start().await;
    let body = call(1).to_string();
    let half = head_for(&body) + &body[..10];
    let answer = raw(&world, half.as_bytes()).await;
    let ended = answer.is_empty() || answer.starts_with("HTTP/1.1 408") || answer.starts_with("HTTP/1.1 504");
    assert!(ended, "{answer}");
    assert_eq!(world.asked("a"), 0);
}

/// Kills: a disconnect that counts as the endpoint's failure (with a threshold of one it would be out).
#[tokio::test]
async fn a_vanishing_client_marks_nobody() {
    let world = World::build()
        .primary("a", Behaviour::Hang)
        .primary("b", Behaviour::Hang)
        .env("ENDPOINT_FAILURE_THRESHOLD", "1")
        .env("EPHEMERAL_CHECKS_INTERVAL", "3600")
        .env("PROXY_TIMEOUT_PER_TRY", "60")
        .env("PROXY_TIMEOUT", "120")
        .start()
        .await;
    let body = call(1).to_string();
    for _ in 0..10 {
        let mut stream = TcpStream::connect(world.proxy.address).await.expect("connects");
        stream.write_all((head_for(&body) + &body).as_bytes()).await.expect("writes");
        soon(async {
            tokio::select! { () = world["a"].in_flight(1) => {} () = world["b"].in_flight(1) => {} }
        })
        .await;
        drop(stream);
        // Its attempt is given up with it.
        soon(world["a"].in_flight(0)).await;
        soon(world["b"].in_flight(0)).await;
    }
    for provider in world.providers() {
        provider.set(Behaviour::Healthy).await.expect("recovers");
        provider.forget();
    }
    world.client.volley(0..60).await;
    for provider in world.providers() {
        assert!(provider.total() >= 10, "{provider:?} is out of rotation");
    }
}

/// Kills: a half of a request that is forwarded, or that is charged to an endpoint.
#[tokio::test]
async fn a_client_that_leaves_half_a_body_bothers_nobody() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let body = call(1).to_string();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(world.proxy.address).await.expect("connects");
        stream.write_all((head_for(&body) + &body[..20]).as_bytes()).await.expect("writes");
    }
    world.client.volley(1..10).await;
    assert_eq!(world.asked("a"), 9);
}

/// Kills: more than one request per connection mixed up.
#[tokio::test]
async fn requests_in_a_row_on_one_connection_are_answered_in_order() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let mut stream = TcpStream::connect(world.proxy.address).await.expect("connects");
    let requests: String =
        (1..=5).map(|id| call(id).to_string()).map(|body| head_for(&body) + &body).collect();
    stream.write_all(requests.as_bytes()).await.expect("writes");
    let (mut answer, mut piece) = (String::new(), [0; 4096]);
    while answer.matches("HTTP/1.1 200").count() < 5 {
        let read = soon(stream.read(&mut piece)).await.expect("reads");
        assert!(read > 0, "closed after {answer}");
        answer.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    let places: Vec<_> = (1..=5).map(|id| answer.find(&format!("\"id\":{id},"))).collect();
    assert!(places.is_sorted() && places.iter().all(Option::is_some), "{answer}");
}

/// Kills: an answer that is held back until the next request is complete.
#[tokio::test]
async fn an_answer_does_not_wait_for_the_next_request() {
    let world = World::build().primary("a", Behaviour::Healthy).start().await;
    let body = call(1).to_string();
    for more in ["", "\r\n", "POST /ma"] {
        let answer = raw(&world, (head_for(&body) + &body + more).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{more:?}: {answer}");
    }
}
