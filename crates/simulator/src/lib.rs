//! Scripted JSON-RPC providers with true limits.
//!
//! A [`Provider`] is one listening HTTP and WebSocket server that plays a node of a [`Chain`] the way its [`Behaviour`]
//! says: well, slowly, wrongly, or not at all. Tests, the demo and the benchmark stand on it. It never
//! decides anything about the proxy: it only gives answers and remembers what it was asked.

mod answer;
mod behaviour;
mod chain;
pub mod convergence;
pub mod demo;
mod encode;
mod limit;
mod memory;
pub mod mortals;
mod node;
mod perform;
mod provider;
mod request;
mod serve;
mod sockets;
pub mod stage;
mod wire;

pub use answer::{Answer, BadRecording};
pub use behaviour::{Behaviour, ItemFault, Refusal};
pub use chain::{Chain, keccak_hex};
pub use encode::Coding;
pub use limit::{Limit, Meter};
pub use memory::Seen;
pub use node::{REVERTING, RpcError, expected, revert};
pub use provider::{Provider, Script};
