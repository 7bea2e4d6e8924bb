//! May one more request be dispatched to an account, and if not, when again.
//!
//! [`Gate`] is what a proxy holds per account: all its ceilings at once, static or learned, with the use that
//! stands against them. Below it lie the parts, each usable alone: trailing use in slots, a store's ledger of
//! windows, the blocks that a replica leases from it, and the rule for requests above an estimate.
//!
//! Nothing here reads a clock, sleeps, or talks to a store. Times are milliseconds and come in as arguments: of
//! the store's clock ([`StoreMs`]) where replicas must agree, of the process's own monotonic clock ([`LocalMs`])
//! where a bound must hold without clock agreement.

mod block;
mod calendar;
mod demand;
mod evidence;
mod fixed;
mod footprint;
mod gate;
mod learned;
mod lease;
mod leased;
mod overflow;
mod plan;
mod portion;
mod presence;
mod several;
mod slots;
mod steady;
mod ticket;
mod time;
mod trailing;
mod usage;
mod windows;

pub use block::{Block, Spent};
pub use evidence::{Evidence, Lowered};
pub use footprint::Footprint;
pub use gate::{CeilingView, Gate, Take};
pub use lease::{Lease, Taken};
pub use leased::Leased;
pub use overflow::{Door, Overflow};
pub use plan::{Limit, Plan, Unit};
pub use presence::{Holder, Presence, share};
pub use slots::Slots;
pub use ticket::{CeilingKind, Cost, Sender, Ticket};
pub use time::{LocalMs, StoreMs};
pub use trailing::Trailing;
pub use usage::Usage24h;
pub use windows::{Ask, Grant, Ledger, Which, block_size};
