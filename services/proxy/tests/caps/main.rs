//! Caps on concurrency: who is let through, who waits, who is shed, and how flags tighten them in real processes.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

mod gates;
mod providers;
mod seen;
