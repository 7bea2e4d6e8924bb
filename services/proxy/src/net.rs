//! Threads and sockets: one listener, one runtime per core, connections dealt to the least loaded.

mod body;
mod budget;
mod listener;
mod peers;

pub(crate) use body::{Body, BodyError, Relay, Sent};
pub(crate) use budget::{Budget, Purse, Reservation};
pub(crate) use listener::{Dealer, deal};
pub(crate) use peers::{Peer, Peers, Told};
