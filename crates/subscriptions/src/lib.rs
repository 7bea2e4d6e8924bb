//! What becomes of clients' subscriptions when providers come and go: who shares an upstream subscription, where it
//! is made again after a loss, how the gap is filled, and when a client must be told to start anew.
//!
//! Pure. A [`Hub`] takes an [`Event`] at a time and gives [`Action`]s as data; sockets, calls and clocks are the
//! caller's. One hub serves one chain in one process.

mod action;
mod block;
mod chain;
mod endpoints;
mod event;
mod fetches;
mod frame;
mod group;
mod heads;
mod hub;
mod ids;
mod log;
mod logs;
mod socket;
mod stall;
mod topic;

pub use action::{Action, Fetch, Member, Payload, Reason, Refusal};
pub use event::{Allowance, Answer, Blame, Candidate, End, Event, Grant};
pub use frame::{Incoming, Notification};
pub use hub::{Hub, Settings};
pub use ids::{CallId, ClientId, EndpointId, FetchId, SocketId, SubscriptionId};
