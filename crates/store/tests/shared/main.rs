//! What the store promises, with one process and with several on one real Valkey.

mod counter;
mod failover;
mod limits;
mod outages;
mod partition;
mod records;
mod replica;
mod secure;
mod server;
mod slots;
mod tokens;
mod topology;
