//! What a gate costs a request.

use divan::{Bencher, black_box};
use ledger::{Cost, Evidence, Gate, Limit, Sender, Take, Unit};

fn main() {
    divan::main();
}

const ONE: Cost = Cost { requests: 1, units: 0 };

fn limited() -> Gate {
    let limit = Limit { amount: u32::MAX, unit: Unit::Requests, window_ms: 3_600_000, smooth: false };
    Gate::new(vec![limit], None)
}

fn learned() -> Gate {
    let gate = Gate::new(Vec::new(), Some(aimd::Params::default()));
    (0..1000).for_each(|_| gate.charge(ONE, Sender::Client, 5_000));
    gate.served(5_000, 5_000);
    gate.refused(&Evidence::client(5_000), 5_000);
    gate
}

#[divan::bench]
fn open(bencher: Bencher) {
    let gate = Gate::new(Vec::new(), Some(aimd::Params::default()));
    bencher.bench_local(|| black_box(&gate).open());
}

#[divan::bench]
fn open_charge(bencher: Bencher) {
    let gate = Gate::new(Vec::new(), Some(aimd::Params::default()));
    bencher.bench_local(|| black_box(&gate).charge(ONE, Sender::Client, black_box(5_000)));
}

#[divan::bench]
fn open_served(bencher: Bencher) {
    let gate = Gate::new(Vec::new(), Some(aimd::Params::default()));
    gate.charge(ONE, Sender::Client, 5_000);
    bencher.bench_local(|| black_box(&gate).served(black_box(5_000), 5_001));
}

fn pass(gate: &Gate, now: u64) -> bool {
    match gate.try_take(ONE, now) {
        Take::Granted(ticket) => gate.sent(ticket, now),
        Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => false,
    }
}

#[divan::bench(threads = [1, 2])]
fn fixed_take_and_send(bencher: Bencher) {
    let gate = limited();
    bencher.bench(|| pass(black_box(&gate), black_box(5_000)));
}

#[divan::bench]
fn learned_take_and_give_back(bencher: Bencher) {
    let gate = learned();
    bencher.bench_local(|| {
        if let Take::Granted(ticket) = black_box(&gate).try_take(ONE, black_box(7_000)) {
            gate.give_back(ticket);
        }
    });
}
