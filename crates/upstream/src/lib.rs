//! The way to an endpoint: where it is, connections to it, and one request over one of them.
//!
//! Each worker has its own connections. Nothing here knows what an answer means.

mod alone;
mod connect;
mod deadline;
mod get;
mod hush;
mod local;
mod open;
mod pool;
mod socket;
mod target;
mod watched;

pub use alone::{Question, Reply, ask_alone};
pub use connect::{ConnectError, Connector, Stream};
pub use deadline::by;
pub use get::get_status;
pub use hush::{Hushed, poll_frame};
pub use local::LocalExecutor;
pub use open::{Dialled, open_socket};
pub use pool::{Connection, Failure, Fresh, Lost, Pools};
pub use socket::{Heard, ask_over_socket};
pub use target::{BadTarget, Codings, Target};
