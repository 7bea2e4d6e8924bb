//! Clients: who is let in, what they may call, how much, and what they are told when it was too much.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

#[allow(dead_code, reason = "each test binary uses its part of it")]
#[path = "../../../../crates/store/tests/shared/server.rs"]
mod server;

#[allow(dead_code, reason = "each test binary uses its part of it")]
#[path = "../shared/twins.rs"]
mod twins;

mod file;

mod access;
mod limits;
mod secrets;
mod sockets;
mod together;
mod upgrades;
