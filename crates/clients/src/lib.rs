//! Who may ask, and how much.
//!
//! Decides whom a key belongs to, what that client may call, whom an anonymous request is counted for, and whether
//! limits in eight dimensions admit one more request. Nothing here reads a clock, a file or a socket: times are Unix
//! milliseconds and come in as arguments.

mod access;
mod address;
mod key;
mod limits;
mod registry;
mod tag;

mod breaker;
mod dry;
mod lease;
mod standing;
mod windows;

pub use access::{Access, Methods};
pub use address::{asker, network_of};
pub use breaker::{Breaker, Mode, Outage, Probe};
pub use dry::Dry;
pub use key::{BadKey, KeyHash};
pub use lease::{Credit, Grant, Lease, Taken, Wish};
pub use limits::{DIMENSIONS, EXACT_BELOW, Limits, WINDOWS, Window};
pub use registry::{Client, Definition, Registry, Who};
pub use standing::{Refusal, Standing, Used, judge, standing};
pub use tag::Tag;
pub use windows::Windows;
