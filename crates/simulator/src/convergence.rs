//! Does learning converge, and do leases hold: the very code that the proxy runs, on a virtual clock, against
//! limits it is not told and a store that delays, loses and reorders. Everything here is seeded: the same seed
//! gives the same run to the last request.

mod account;
mod contest;
mod contests;
mod events;
mod fleet;
mod fleets;
mod hidden;
mod learning;
mod plot;
mod rng;
mod scenarios;
mod tally;

pub use contest::{Contest, Heard, Score};
pub use contests::{Entry, HELD_OUT, drawn, listed, steps};
pub use fleet::{Cut, Fleet, Spending};
pub use fleets::{Shared, fleets};
pub use learning::{Hidden, Learning, Outcome, Sample};
pub use plot::{Curve, Plot};
pub use rng::Rng;
pub use scenarios::{Figure, Scenario, Verdict, all, saw_tooth};
