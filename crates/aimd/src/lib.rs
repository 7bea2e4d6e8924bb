//! Learned ceilings: how far a hit lowers what an account may get, and how it grows back.
//!
//! Additive increase, multiplicative decrease: the first hit sets a ceiling at a part of what was observed,
//! each interval without a hit adds a step, each further hit cuts again. The crate decides numbers only. It
//! never reads a clock, never counts traffic and never talks to a store: time, use and the record come in,
//! a new record goes out, and whoever keeps the record writes it by compare-and-set.
//!
//! All times are milliseconds of the store's clock, so that every replica computes the same ceiling.

mod blame;
mod decrease;
mod encoding;
mod learned;
mod params;
mod peaks;
mod record;
pub mod steady;

pub use decrease::{Decrease, Evidence, Witness, decrease};
pub use encoding::Malformed;
pub use learned::{Learned, News};
pub use params::{Invalid, Mode, Params};
pub use peaks::Peaks;
pub use record::{Estimate, Record, Source, Span};
