//! The hub among simulated nodes, wires and clients, in simulated time.

mod chain;
mod client;
mod losses;
mod node;
mod rules;
mod seeds;
mod world;
