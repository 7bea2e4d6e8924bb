//! Is an endpoint healthy, what is to be probed when, and what did a probe find? For the proxy, which may check
//! by itself, and for the health checker, which does nothing else.
//!
//! Everything but the two drivers is pure: times are milliseconds of one clock of the caller's choice, chance is
//! a generator passed in. The drivers run probes on tokio and own no socket: the service brings the
//! [`Prober`] that sends.

// Probing: what is asked, when, and the task that does it.
mod probe;
mod schedule;

mod checks;

// Judging: what a call says, what it all adds up to, and who is behind.
mod head;
mod mark;
mod methods;
mod network;
mod readiness;
mod tracker;

// Bringing parked accounts back.
mod recoveries;

pub use checks::{Command, Prober, run_checks};
pub use head::{Heads, agreed_head};
pub use mark::{Mark, Tried, mark, marks};
pub use methods::MethodParks;
pub use network::OwnNetwork;
pub use probe::{Answer, Call, Limited, Measured, Said, measure, read_block, read_syncing};
pub use readiness::{Degraded, Grace, Readiness, View as ReadinessView};
pub use recoveries::{Accounts, Parked, run_recoveries};
pub use schedule::{Schedule, Settings, Standing};
pub use tracker::{Change, Rank, Report, Rules, Tracker, View};
