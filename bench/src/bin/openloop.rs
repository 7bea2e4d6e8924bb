//! Sends at a fixed rate whatever comes back, and measures from when a request was due, not from when it could be sent: a
//! slow answer counts for every request that had to wait behind it. Checks that each answer carries its request's ids.
//! With `--rate 0` it sends the next request when the last is answered, which is good for counting, not for latency.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bench::Histogram;
use bytes::Bytes;
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use memchr::memmem;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

/// An open-loop load generator for JSON-RPC over HTTP/1.1.
#[derive(Parser, Clone)]
struct Options {
    /// Where to send.
    #[arg(long)]
    address: SocketAddr,
    /// The chain's path. A `%` in it becomes the request's number modulo `--chains`.
    #[arg(long, default_value = "/main")]
    path: String,
    /// How many chains the requests go to in turn.
    #[arg(long, default_value_t = 1)]
    chains: u64,
    /// Connections, a thread each.
    #[arg(long, default_value_t = 32)]
    connections: u64,
    /// Requests in all.
    #[arg(long)]
    requests: u64,
    /// Requests per second over all connections.
    #[arg(long)]
    rate: f64,
    /// Calls per request; above one they are a batch.
    #[arg(long, default_value_t = 1)]
    batch: u64,
    /// A new connection for every request.
    #[arg(long)]
    close: bool,
}

#[derive(Default)]
struct Outcome {
    latencies: Histogram,
    errors: u64,
    first_error: Option<String>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    // Every thread has started by then, and connects before.
    let start = Instant::now() + Duration::from_millis(100);
    let threads: Vec<_> = (0..options.connections)
        .map(|lane| {
            let options = options.clone();
            thread::spawn(move || run_lane(&options, lane, start))
        })
        .collect();
    let mut all = Outcome::default();
    for thread in threads {
        let outcome = thread.join().expect("a lane does not panic")?;
        all.latencies.merge(&outcome.latencies);
        all.errors += outcome.errors;
        all.first_error = all.first_error.or(outcome.first_error);
    }
    print_outcome(&all, start.elapsed());
    Ok(())
}

/// One connection's share: the requests `lane`, `lane + connections`, … each due at its own time.
fn run_lane(options: &Options, lane: u64, start: Instant) -> anyhow::Result<Outcome> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut connection: Option<Connection> = None;
    let mut outcome = Outcome::default();
    for number in (lane..options.requests).step_by(usize::try_from(options.connections)?) {
        let due = wait_until_due(options, number, start);
        if options.close {
            connection = None;
        }
        let sent = ensure_open(&runtime, options, &mut connection)
            .and_then(|connection| runtime.block_on(send(options, connection, number)));
        outcome.latencies.record(due.elapsed());
        if let Err(error) = sent {
            outcome.errors += 1;
            outcome.first_error.get_or_insert(format!("{error:#}"));
        }
    }
    Ok(outcome)
}

/// Sleeps until the request is due and returns the time to measure from. Waking late from the sleep is our own delay, so
/// then it is now; having been busy with the request before is the proxy's, so then it is when the request was due.
fn wait_until_due(options: &Options, number: u64, start: Instant) -> Instant {
    if options.rate == 0.0 {
        return Instant::now();
    }
    let due = start + Duration::from_secs_f64(number as f64 / options.rate);
    let early = due.saturating_duration_since(Instant::now());
    if early.is_zero() {
        return due;
    }
    thread::sleep(early);
    Instant::now()
}

type Connection = SendRequest<Full<Bytes>>;

fn ensure_open<'a>(
    runtime: &Runtime,
    options: &Options,
    connection: &'a mut Option<Connection>,
) -> anyhow::Result<&'a mut Connection> {
    if connection.as_ref().is_none_or(SendRequest::is_closed) {
        *connection = Some(runtime.block_on(connect(options.address))?);
    }
    connection.as_mut().context("just opened")
}

async fn connect(address: SocketAddr) -> anyhow::Result<Connection> {
    let socket = TcpStream::connect(address).await.context("connecting")?;
    socket.set_nodelay(true)?;
    let (connection, driver) = handshake(TokioIo::new(socket)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

async fn send(options: &Options, connection: &mut Connection, number: u64) -> anyhow::Result<()> {
    connection.ready().await.context("waiting for the connection")?;
    let response = connection.send_request(request(options, number)?).await.context("sending")?;
    let status = response.status();
    let body = response.into_body().collect().await.context("reading the answer")?.to_bytes();
    ensure!(
        status == StatusCode::OK,
        "status {status}: {}",
        String::from_utf8_lossy(&body[..body.len().min(200)])
    );
    for id in ids(options, number) {
        ensure!(answers(&body, id), "no result for id {id}");
    }
    Ok(())
}

fn ids(options: &Options, number: u64) -> impl Iterator<Item = u64> {
    let first = 1_000_000_000 + number * options.batch;
    first..first + options.batch
}

fn request(options: &Options, number: u64) -> anyhow::Result<Request<Full<Bytes>>> {
    let calls: Vec<String> = ids(options, number).map(call).collect();
    let body = if options.batch == 1 { calls.concat() } else { format!("[{}]", calls.join(",")) };
    let path = options.path.replace('%', &(number % options.chains).to_string());
    let request = Request::post(path).header(HOST, "localhost").header(CONTENT_TYPE, "application/json");
    Ok(request.body(Full::new(body.into()))?)
}

fn call(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getBalance","params":["0x{id:040x}","latest"]}}"#)
}

/// Whether the upstream's answer to the call is in the body. It writes the members in this order, and proxies pass its bytes on.
fn answers(body: &[u8], id: u64) -> bool {
    memmem::find(body, format!(r#""id":{id},"result":"0x"#).as_bytes()).is_some()
}

fn print_outcome(all: &Outcome, took: Duration) {
    let micros = |per_mille| all.latencies.quantile(per_mille).as_secs_f64() * 1e6;
    let report = serde_json::json!({
        "requests": all.latencies.total(),
        "rate": all.latencies.total() as f64 / took.as_secs_f64(),
        "errors": all.errors,
        "first_error": all.first_error,
        "p50_us": micros(500),
        "p90_us": micros(900),
        "p99_us": micros(990),
        "p999_us": micros(999),
        "max_us": micros(1000),
    });
    println!("{report}");
}
