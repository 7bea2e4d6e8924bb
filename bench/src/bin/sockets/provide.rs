//! A provider on one port of the loopback address that tells a head at a fixed rhythm to whoever subscribed, and answers calls.
//! A head says when it was sent, to the nanosecond.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio::task::{LocalSet, spawn_local};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config};

/// The head before the first one that is told; `upstream` names it as well.
const BEFORE: u64 = 20_000_000;
/// Heads that a slow connection may be behind.
const BEHIND: usize = 64;

#[derive(Args)]
pub(crate) struct Options {
    #[arg(long)]
    port: u16,
    /// Bytes of a head.
    #[arg(long, default_value_t = 600)]
    head_bytes: usize,
    /// Milliseconds between heads.
    #[arg(long, default_value_t = 100)]
    every_ms: u64,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, serve(options))
}

async fn serve(options: &Options) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", options.port)).await.context("listening")?;
    let (heads, _) = broadcast::channel(BEHIND);
    let mut rhythm = tokio::time::interval(Duration::from_millis(options.every_ms));
    let newest = Rc::new(Cell::new(BEFORE));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted.context("accepting")?;
                // A peer that goes away ends its own connection and nothing else.
                let (heads, newest) = (Sender::clone(&heads), Rc::clone(&newest));
                spawn_local(async move { drop(talk(stream, &heads, &newest).await) });
            }
            _ = rhythm.tick() => {
                newest.set(newest.get() + 1);
                // Without a subscriber nobody misses it.
                let _ = heads.send(head(newest.get(), options.head_bytes));
            }
        }
    }
}

async fn talk(stream: TcpStream, heads: &Sender<Utf8Bytes>, newest: &Cell<u64>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let config = WebSocketConfig::default().read_buffer_size(4096).write_buffer_size(0);
    let mut socket = accept_async_with_config(stream, Some(config)).await?;
    let mut told: Option<Receiver<Utf8Bytes>> = None;
    loop {
        let head = async {
            match &mut told {
                Some(told) => told.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            head = head => socket.send(Message::Text(head?)).await?,
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    if answer(&mut socket, &text, newest.get()).await? {
                        told = Some(heads.subscribe());
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Ok(()),
            },
        }
    }
}

/// Answers a call; true if it subscribes.
async fn answer(socket: &mut WebSocketStream<TcpStream>, text: &str, newest: u64) -> anyhow::Result<bool> {
    let call: Call = serde_json::from_str(text)?;
    let result = match call.method {
        "eth_subscribe" => r#""0x1""#.to_owned(),
        "eth_syncing" => "false".to_owned(),
        _ => format!("\"{newest:#x}\""),
    };
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call.id);
    socket.send(Message::text(answer)).await?;
    Ok(call.method == "eth_subscribe")
}

/// The notification of a head of `bytes` bytes, sent now.
fn head(number: u64, bytes: usize) -> Utf8Bytes {
    let (hash, parent) = (format!("0x{number:064x}"), format!("0x{:064x}", number - 1));
    let mut head = format!(
        r#"{{"number":"{number:#x}","hash":"{hash}","parentHash":"{parent}","sent":{},"extraData":"0x"#,
        crate::now_ns()
    );
    head.push_str(&"0".repeat(bytes.saturating_sub(head.len() + 2)));
    head.push_str("\"}");
    let before = r#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":"#;
    format!("{before}{head}}}}}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: a head of another size than asked, or one that is no JSON.
    #[test]
    fn a_head_has_the_size_asked_for() {
        let text = head(BEFORE + 1, 600);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["params"]["result"]["number"], "0x1312d01");
        let result: &RawValue = {
            #[derive(Deserialize)]
            struct Params<'a> {
                #[serde(borrow)]
                result: &'a RawValue,
            }
            #[derive(Deserialize)]
            struct Notification<'a> {
                #[serde(borrow)]
                params: Params<'a>,
            }
            serde_json::from_str::<Notification>(&text).expect("a notification").params.result
        };
        assert_eq!(result.get().len(), 600);
    }
}
