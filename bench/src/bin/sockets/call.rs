//! Clients that make one call after the other, on a WebSocket or over HTTP: the same calls, so that what differs is the way.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::{Args, ValueEnum};
use memchr::memmem;
use tokio::task::{JoinSet, LocalSet};

use crate::client::Client;

#[derive(Args, Clone)]
pub(crate) struct Options {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long, default_value = "/main")]
    path: String,
    #[arg(long)]
    over: Way,
    #[arg(long, default_value_t = 32)]
    connections: u64,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Socket,
    Http,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let options = options.clone();
    // One thread beside those of the proxy and the provider.
    let calls = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, all(&options))
    });
    let calls = calls.join().expect("it does not panic")?;
    println!("{}", serde_json::json!({"calls": calls}));
    Ok(())
}

async fn all(options: &Options) -> anyhow::Result<u64> {
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    let mut lanes = JoinSet::new();
    for lane in 0..options.connections {
        let options = options.clone();
        lanes.spawn_local(async move { one(&options, lane, until).await });
    }
    let mut calls = 0;
    while let Some(lane) = lanes.join_next().await {
        calls += lane??;
    }
    Ok(calls)
}

/// The calls of one connection.
async fn one(options: &Options, lane: u64, until: Instant) -> anyhow::Result<u64> {
    let mut client = match options.over {
        Way::Socket => Client::open(options.address, &options.path).await?,
        Way::Http => Client::connect(options.address).await?,
    };
    let mut calls = 0;
    while Instant::now() < until {
        let id = 1_000_000_000 + calls * options.connections + lane;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getBalance","params":["0x{id:040x}","latest"]}}"#
        );
        let expected = format!(r#""id":{id},"result":"0x"#);
        let answers = |text: &[u8]| memmem::find(text, expected.as_bytes()).is_some();
        let answered = match options.over {
            Way::Socket => {
                client.send(&call).await?;
                client.hear(answers).await?
            }
            Way::Http => client.post(&post(options, &call), answers).await?,
        };
        ensure!(answered, "no result for id {id}");
        calls += 1;
    }
    Ok(calls)
}

fn post(options: &Options, call: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{call}",
        options.path,
        options.address,
        call.len()
    )
}
