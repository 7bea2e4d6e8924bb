//! A request's bytes, and whether an answer's are the ones it asked for.

use std::fmt::Write as _;

use anyhow::ensure;
use memchr::memmem;

use crate::options::Options;

/// The whole request with this number, ready to be written.
pub(crate) fn request(options: &Options, number: u64) -> Vec<u8> {
    let calls: Vec<String> = ids(options, number).map(call).collect();
    let body = if options.batch == 1 { calls.concat() } else { format!("[{}]", calls.join(",")) };
    let path = options.path.replace('%', &(number % options.chains).to_string());
    let mut bytes = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
    // Writing to a string cannot fail.
    let _ = write!(bytes, "content-length: {}\r\n\r\n{body}", body.len());
    bytes.into_bytes()
}

/// Whether the body answers every call of the request with this number.
pub(crate) fn check(options: &Options, number: u64, status: u16, body: &[u8]) -> anyhow::Result<()> {
    ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&body[..body.len().min(200)]));
    for id in ids(options, number) {
        ensure!(answers(body, id), "no result for id {id}");
    }
    Ok(())
}

fn ids(options: &Options, number: u64) -> impl Iterator<Item = u64> {
    let first = 1_000_000_000 + number * options.batch;
    first..first + options.batch
}

fn call(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_getBalance","params":["0x{id:040x}","latest"]}}"#)
}

/// Whether the upstream's answer to the call is in the body. It writes the members in this order, and proxies pass its bytes on.
fn answers(body: &[u8], id: u64) -> bool {
    memmem::find(body, format!(r#""id":{id},"result":"0x"#).as_bytes()).is_some()
}
