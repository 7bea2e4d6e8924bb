//! What the store promises, with one process and with several on one real Valkey.

mod limits;
mod outages;
mod partition;
mod records;
mod replica;
mod secure;
mod server;
mod tokens;
mod topology;
