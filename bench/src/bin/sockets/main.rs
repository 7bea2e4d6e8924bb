//! WebSockets for the benchmark: a provider that tells heads, clients that follow them, and clients that make calls, on a
//! socket or over HTTP. It measures when heads arrive and counts calls; what a proxy used for them is asked elsewhere.

mod call;
mod client;
mod follow;
mod frames;
mod provide;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Tell heads to whoever subscribes.
    Provide(provide::Options),
    /// Follow heads with many clients.
    Follow(follow::Options),
    /// Make calls, one after the other on each connection.
    Call(call::Options),
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Provide(options) => provide::run(&options),
        Command::Follow(options) => follow::run(&options),
        Command::Call(options) => call::run(&options),
    }
}

/// Nanoseconds since 1970: the programs of a machine share this clock.
fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
