//! What clients and operators see of `headgate-proxy`: the real binary in front of scripted providers.

#[allow(dead_code, unused_imports, reason = "each test binary uses its part of the harness")]
#[path = "../harness/mod.rs"]
mod harness;

mod bad_input;
mod batches;
mod capacity;
mod clients;
mod commit;
mod connections;
mod headers;
mod health;
mod operators;
mod programs;
mod queueing;
mod sockets;
mod state;
mod subscriptions;
mod transactions;
mod verdicts;
