//! Several real proxies on one real Valkey: they behave as one, and go on when it is away.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

#[allow(dead_code, reason = "each test binary uses its part of it")]
#[path = "../../../../crates/store/tests/shared/server.rs"]
mod server;

mod chaos;
mod checker;
mod load;
mod outages;
mod sharing;
mod steady;
mod twins;
