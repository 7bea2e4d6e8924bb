//! What the store promises, as its own tests have it, on a Valkey in a container. Only the server differs: a container
//! is stopped, paused and started again where those signal a process.

#[path = "../../crates/store/tests/shared/counter.rs"]
mod counter;
#[path = "../../crates/store/tests/shared/limits.rs"]
mod limits;
#[path = "../../crates/store/tests/shared/outages.rs"]
mod outages;
#[path = "../../crates/store/tests/shared/records.rs"]
mod records;
#[allow(dead_code, reason = "not every test of the store is here")]
#[path = "../../crates/store/tests/shared/replica.rs"]
mod replica;
mod server;
#[path = "../../crates/store/tests/shared/tokens.rs"]
mod tokens;
