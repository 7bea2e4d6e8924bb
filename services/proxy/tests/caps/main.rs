//! Caps on concurrency: who is let through, who waits, who is shed, and how flags tighten them in real processes.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

#[allow(dead_code, reason = "each test binary uses its part of it")]
#[path = "../../../../crates/store/tests/shared/server.rs"]
mod server;

#[allow(dead_code, reason = "each test binary uses its part of it")]
#[path = "../shared/twins.rs"]
mod twins;

mod double;
mod gates;
mod launchdarkly;
mod ofrep;
mod providers;
mod seen;
mod valkey;
