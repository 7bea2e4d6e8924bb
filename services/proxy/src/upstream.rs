//! The way to an endpoint: where it is, connections to it, and one request over one of them.
//!
//! Each worker has its own connections. Nothing here knows what an answer means.

mod connect;
mod pool;
mod socket;
mod target;

pub(crate) use connect::Connector;
pub(crate) use pool::{Connection, Failure, Pools};
pub(crate) use socket::{Heard, ask_over_socket};
pub(crate) use target::{BadTarget, Codings, Target};
