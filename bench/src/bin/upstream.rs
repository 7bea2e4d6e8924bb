//! The provider that every measured proxy stands before. It answers any JSON-RPC call with a result of the wanted size and
//! echoes the id; it keeps no state of a chain. On the last of its ports it can refuse a share of the requests.

use std::cell::Cell;
use std::net::TcpListener;
use std::rc::Rc;
use std::thread;

use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use clap::Parser;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A JSON-RPC provider that answers everything.
#[derive(Parser, Clone)]
struct Options {
    /// Ports on the loopback address, one thread each.
    #[arg(long, value_delimiter = ',', required = true)]
    ports: Vec<u16>,
    /// Bytes of a result.
    #[arg(long, default_value_t = 200)]
    answer_bytes: usize,
    /// Refuse every n-th request on the last port with a 429. 0 refuses none.
    #[arg(long, default_value_t = 0)]
    limited_every: u64,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: &'a str,
}

/// A short head of its own, and the result, which all answers share.
type Answer = Full<Chain<Bytes, Bytes>>;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let result = Bytes::from(format!("\"0x{}\"}}", "5".repeat(options.answer_bytes)));
    let last = options.ports.len() - 1;
    let mut threads = Vec::new();
    for (index, port) in options.ports.iter().enumerate() {
        let listener = TcpListener::bind(("127.0.0.1", *port))?;
        let limited_every = if index == last { options.limited_every } else { 0 };
        let result = result.clone();
        threads.push(thread::spawn(move || {
            bench::serve(&listener, 1, move || {
                let (result, count) = (result.clone(), Rc::new(Cell::new(0)));
                move |request| answer(request, result.clone(), is_limited(&count, limited_every))
            })
        }));
    }
    threads.into_iter().try_for_each(|thread| thread.join().expect("a server does not panic"))?;
    Ok(())
}

fn is_limited(count: &Cell<u64>, every: u64) -> bool {
    count.set(count.get() + 1);
    every > 0 && count.get().is_multiple_of(every)
}

async fn answer(
    request: Request<Incoming>,
    result: Bytes,
    limited: bool,
) -> anyhow::Result<Response<Answer>> {
    let body = request.into_body().collect().await?.to_bytes();
    let response = Response::builder().header(CONTENT_TYPE, "application/json");
    if limited {
        let refusal =
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit exceeded"}}"#;
        let response = response.status(StatusCode::TOO_MANY_REQUESTS).header(RETRY_AFTER, "1");
        return Ok(response.body(whole(Bytes::from_static(refusal.as_bytes())))?);
    }
    let answer = if body.first() == Some(&b'[') {
        let calls: Vec<Call> = serde_json::from_slice(&body)?;
        whole(batch_answer(&calls, &result))
    } else {
        single_answer(&serde_json::from_slice(&body)?, result)
    };
    Ok(response.body(answer)?)
}

fn whole(body: Bytes) -> Answer {
    Full::new(body.chain(Bytes::new()))
}

fn head(call: &Call) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":", call.id)
}

/// Health probes want to hear of a node in step; everything else gets the sized result.
fn tail(call: &Call, result: Bytes) -> Bytes {
    match call.method {
        "eth_syncing" => Bytes::from_static(b"false}"),
        "eth_blockNumber" => Bytes::from_static(b"\"0x1312d00\"}"),
        _ => result,
    }
}

fn single_answer(call: &Call, result: Bytes) -> Answer {
    Full::new(Bytes::from(head(call)).chain(tail(call, result)))
}

fn batch_answer(calls: &[Call], result: &Bytes) -> Bytes {
    let mut body = Vec::with_capacity(calls.len() * (result.len() + 64) + 2);
    for call in calls {
        body.push(if body.is_empty() { b'[' } else { b',' });
        body.extend_from_slice(head(call).as_bytes());
        body.extend_from_slice(&tail(call, result.clone()));
    }
    body.push(b']');
    body.into()
}
