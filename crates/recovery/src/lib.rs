//! When a parked account is back. Pure: values in, values out; the time and the chance are arguments.
//!
//! An account that was refused for its limit is kept out of selection ("parked") until a probe at the end of
//! the wait finds the provider willing again. This crate decides how long the wait is, when the next probe is
//! due, and what its answer means. It never reads a clock, never sends anything and keeps no state of its own:
//! the [`Record`] is written by compare-and-set wherever the caller keeps it.
//!
//! What holds, whatever the events and whatever a stored record says:
//! - a parked account always has a next probe, at most [`Policy::longest_wait_ms`] away;
//! - enough clean probes in a row end the episode;
//! - a second hit never shortens or restarts an episode;
//! - answers of probes that were not due (another process was first) change nothing.

mod codec;
mod hit;
mod policy;
mod probe;
mod record;

pub use codec::DecodeError;
pub use hit::{Hit, Kind, hit};
pub use policy::{Block, Policy};
pub use probe::{Probe, probe_due, probed};
pub use record::{Reason, Record, parked, parked_through, retry_after};
