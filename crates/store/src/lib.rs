//! Shared state of a fleet: use, parks and ceilings of accounts, by name.
//!
//! A request touches only the handles given out here, and none of their methods waits. With the memory backend
//! the handles are the truth; another backend keeps them in step in the background.

mod account;
mod health;
mod limits;
mod memory;
mod park;
mod queue;
mod valkey;

pub use account::Account;
pub use health::{Finding, News, subject};
pub use limits::{Charge, ClientLimits, Denial, Lost, Permit, Receipt, Subject};
pub use memory::{Memory, Rules, Sharing};
pub use park::{Change, Park, Proposal};
pub use queue::{Queue, Turn, Turns};
pub use valkey::{BadSetting, Failure, Named, Op, Target, Valkey};

/// Reads the wall clock: Unix milliseconds.
pub type Clock = fn() -> u64;
