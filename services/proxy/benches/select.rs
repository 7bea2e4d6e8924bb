//! What choosing an endpoint costs, use counted: `cargo bench -p headgate-proxy`.

use headgate_proxy::benchmark::Choosing;

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 3, 30, 300])]
fn choose(bencher: divan::Bencher<'_, '_>, endpoints: usize) {
    let mut choosing = Choosing::among(endpoints);
    bencher.bench_local(|| choosing.choose());
}
