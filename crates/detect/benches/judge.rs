//! What judging costs: goals are 200 ns for a success of 200 bytes, 5 µs for an error of 500 bytes, 1 GB/s
//! for a batch of successes of 10 MB, and no allocation for a success.

use detect::{Head, Judgement, Protocol, Rules};
use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use http::HeaderMap;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// As the proxy does: a stream per answer.
fn stream(rules: &Rules, head: &Head<'_>, body: &[u8]) -> Judgement {
    let mut stream = rules.stream();
    stream.push(rules, head, body);
    stream.finish(rules, head)
}

fn bench(bencher: Bencher<'_, '_>, body: &[u8]) {
    let rules = Rules::builtin();
    let headers = HeaderMap::new();
    let head = Head {
        status: Some(200),
        method: Some("eth_getBlockByNumber"),
        ..Head::new(Protocol::Http, &headers, 0)
    };
    bencher.counter(BytesCount::of_slice(body)).bench_local(|| stream(&rules, &head, black_box(body)));
}

#[divan::bench]
fn success_of_200_bytes(bencher: Bencher<'_, '_>) {
    let body = format!(r#"{{"jsonrpc":"2.0","id":12345,"result":"0x{}"}}"#, "0".repeat(158));
    bench(bencher, body.as_bytes());
}

#[divan::bench(args = [4096, 65_536])]
fn success_of(bencher: Bencher<'_, '_>, len: usize) {
    bench(bencher, receipt(1, len).as_bytes());
}

#[divan::bench]
fn revert_of_500_bytes(bencher: Bencher<'_, '_>) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":12345,"error":{{"code":3,"message":"execution reverted: ERC20: transfer amount exceeds balance","data":"0x08c379a0{}"}}}}"#,
        "00".repeat(180)
    );
    bench(bencher, body.as_bytes());
}

#[divan::bench]
fn prose_of_500_bytes(bencher: Bencher<'_, '_>) {
    let prose =
        "we looked at what came back and cannot tell you anything about it, sorry for that. ".repeat(5);
    bench(
        bencher,
        format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":"{prose}"}}}}"#).as_bytes(),
    );
}

#[divan::bench]
fn limit_of_300_bytes(bencher: Bencher<'_, '_>) {
    let body = br#"{"jsonrpc":"2.0","id":474,"error":{"code":429,"message":"Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message. If not, check out https://docs.example/reference/throughput"}}"#;
    bench(bencher, body);
}

/// 1000 answers of 10 kB, and 50,000 of 200 bytes.
#[divan::bench(args = [10_000, 200])]
fn batch_of_10_mb(bencher: Bencher<'_, '_>, len: usize) {
    let items: Vec<String> = (0..10_000_000 / len).map(|id| receipt(id, len)).collect();
    bench(bencher, format!("[{}]", items.join(",")).as_bytes());
}

/// An answer of about `len` bytes with logs as nodes send them.
fn receipt(id: usize, len: usize) -> String {
    let hash = "ab".repeat(32);
    let log = format!(
        r#"{{"address":"0x{}","topics":["0x{hash}","0x{hash}"],"data":"0x{hash}","blockNumber":"0x11a6e0c","removed":false}}"#,
        &hash[..40]
    );
    let logs = vec![log; (len / 400).max(1)];
    if len < 400 {
        return format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":"0x{}"}}"#,
            &"0".repeat(len.saturating_sub(45))
        );
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"logs":[{}],"status":"0x1"}}}}"#, logs.join(","))
}
