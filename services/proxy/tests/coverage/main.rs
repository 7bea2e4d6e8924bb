//! What the issues' lists promise one by one: reloads, start at scale, every recorded limit, TLS, learning, connections
//! that close, and the predecessor's faults that must not come back. The real binary in front of scripted providers.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

mod closing;
mod collection;
mod drop_in;
mod learning;
mod origins;
mod predecessor;
mod raw;
mod reload;
mod scale;
mod tls;
mod upstream;
