//! `headgate-proxy`: clients on one side, providers on the other. The program is [`run`]; what else is public is for
//! benchmarks.
//!
//! In reading order: the command line and the start; threads and sockets; one request from its head to its answer;
//! the endpoints behind it; subscriptions and the providers' sockets behind them; what operators see.

mod cli;
mod start;

mod app;
mod net;
mod worker;

mod batch;
mod call;
mod caller;
mod cors;
mod decode;
mod exchange;
mod front;
mod hunt;
mod pages;
mod record;
mod reply;
mod request;
mod retry;
mod route;
mod rpc;
mod select;
mod socket;

mod checker;
mod flags;
mod reload;

mod hub;
mod line;

mod metrics;
mod operator;
mod why;

pub use select::benchmark;

pub(crate) use ::fleet::{self, clock, gates, tables};
pub(crate) use ::upstream;

/// Does what the command line asks for, and ends with its exit code.
pub fn run() -> std::process::ExitCode {
    // One TLS implementation for everything in the process; a second installation would be a bug of ours.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::run()
}
