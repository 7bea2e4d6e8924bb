//! Threads and sockets: one listener, one runtime per core, connections dealt to the least loaded.

mod body;
mod budget;
mod listener;

pub(crate) use body::{Body, BodyError, Relay};
pub(crate) use budget::{Budget, Purse, Reservation};
pub(crate) use listener::{Dealer, deal};
