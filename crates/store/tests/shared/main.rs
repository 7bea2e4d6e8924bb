//! What the store promises, with one process and with several on one real Valkey.

mod limits;
mod outages;
mod records;
mod replica;
mod server;
mod tokens;
mod topology;
