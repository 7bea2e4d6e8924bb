//! Sends at a fixed rate whatever comes back, and measures from when a request was due, not from when it could be sent: a
//! slow answer counts for every request that had to wait behind it. Checks that each answer carries its request's ids.
//! With `--rate 0` it sends the next request when the last is answered, which is good for counting, not for latency.
//!
//! One thread holds every connection and sleeps in the kernel until the next request is due or an answer came: what the
//! generator uses of a small machine is missing to the proxies that it measures.

mod answer;
mod crowd;
mod lane;
mod options;
mod request;

use std::time::Duration;

use bench::Histogram;
use clap::Parser;

use crowd::Crowd;
use options::Options;

/// What was seen of all requests.
#[derive(Default)]
struct Outcome {
    latencies: Histogram,
    errors: u64,
    first_error: Option<String>,
}

impl Outcome {
    fn record(&mut self, latency: Duration, result: anyhow::Result<()>) {
        self.latencies.record(latency);
        if let Err(error) = result {
            self.errors += 1;
            self.first_error.get_or_insert_with(|| format!("{error:#}"));
        }
    }
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let crowd = Crowd::connected(&options)?;
    let (outcome, took) = crowd.run()?;
    print_outcome(&outcome, took);
    Ok(())
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
