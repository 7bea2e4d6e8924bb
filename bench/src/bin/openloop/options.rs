//! What the command line says.

use std::net::SocketAddr;
use std::num::NonZeroU64;

use clap::Parser;

/// An open-loop load generator for JSON-RPC over HTTP/1.1.
#[derive(Parser)]
pub(crate) struct Options {
    /// Where to send.
    #[arg(long)]
    pub(crate) address: SocketAddr,
    /// The chain's path. A `%` in it becomes the request's number modulo `--chains`.
    #[arg(long, default_value = "/main")]
    pub(crate) path: String,
    /// How many chains the requests go to in turn.
    #[arg(long, default_value = "1")]
    pub(crate) chains: NonZeroU64,
    /// Connections, with one request at a time on each.
    #[arg(long, default_value = "32")]
    pub(crate) connections: NonZeroU64,
    /// Requests in all.
    #[arg(long)]
    pub(crate) requests: u64,
    /// Requests per second over all connections.
    #[arg(long)]
    pub(crate) rate: f64,
    /// Calls per request; above one they are a batch.
    #[arg(long, default_value_t = 1)]
    pub(crate) batch: u64,
    /// A new connection for every request.
    #[arg(long)]
    pub(crate) close: bool,
}
