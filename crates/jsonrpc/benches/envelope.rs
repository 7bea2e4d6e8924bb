//! What reading a request's envelope costs: `cargo bench -p jsonrpc`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use jsonrpc::{Envelope, parse};

fn main() {
    divan::main();
}

const MOST: usize = 1000;

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_call","params":[{{"to":"0x{id:040x}","data":"0x70a08231"}},"latest"]}}"#
    )
}

fn batch(calls: usize) -> String {
    format!("[{}]", (0..calls).map(call).collect::<Vec<_>>().join(","))
}

#[divan::bench]
fn single(bencher: Bencher<'_, '_>) {
    let body = call(1);
    bencher.counter(BytesCount::of_str(&body)).bench_local(|| parse(black_box(body.as_bytes()), MOST));
}

/// A contract's code, or a trace's options: what is inside of `params` is only stepped over.
#[divan::bench(args = [1_000, 100_000])]
fn large_params(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{{"data":"0x{}"}}]}}"#,
        "ab".repeat(bytes / 2)
    );
    bencher.counter(BytesCount::of_str(&body)).bench_local(|| parse(black_box(body.as_bytes()), MOST));
}

#[divan::bench(args = [1, 10, 100])]
fn calls_of_a_batch(bencher: Bencher<'_, '_>, calls: usize) {
    let body = batch(calls);
    bencher.counter(BytesCount::of_str(&body)).bench_local(|| parse(black_box(body.as_bytes()), MOST));
}

/// A part of a batch is sent with ids of our own.
#[divan::bench(args = [1, 10, 100])]
fn written_again(bencher: Bencher<'_, '_>, calls: usize) {
    let body = batch(calls);
    let Ok(Envelope::Batch(items)) = parse(body.as_bytes(), MOST) else { panic!("a batch") };
    let mut out = Vec::with_capacity(body.len());
    bencher.counter(BytesCount::of_str(&body)).bench_local(|| {
        out.clear();
        for (id, call) in items.iter().flatten().enumerate() {
            call.write(black_box(body.as_bytes()), Some(&id.to_string()), &mut out);
        }
        out.len()
    });
}
