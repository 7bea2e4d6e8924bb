//! The program `headgate-health-checker`: probes every endpoint once for any number of proxies, and tells them over
//! Valkey. A second one stands by and takes over.
//!
//! In reading order: the command line, the start, the running checker, what it answers, how it follows its files.

mod cli;
mod start;

mod checker;
mod pages;
mod reload;

fn main() -> std::process::ExitCode {
    // One TLS implementation for everything in the process; a second installation would be a bug of ours.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cli::run()
}
