//! The second law, *steady*: the highest level that was served without a refusal, kept, paced, and probed a request
//! at a time. Decides when a level rises, falls, or changes its window. Like everything here it reads no clock,
//! counts nothing and keeps nothing: the record, use, the time and chance come in, and a changed record goes out.
//!
//! The rules, each in one place: what is sent is *paced* ([`Pace`]); clean use of the whole level earns a *trial*
//! above it, if refusals so far are *paid* for by answers; a refused trial lowers nothing; any other refusal lowers
//! the level by half a per cent until a second one *confirms* it; below a refused level the way back is climbed by
//! halves; an account refused although it rested is *measured* by what it granted; a window lengthens on evidence and
//! shortens when trials run away.

mod encoding;
mod grow;
mod look;
mod pace;
mod reasons;
mod record;
mod shrink;
mod span;

pub use grow::{Seen, served};
pub use look::Look;
pub use pace::{Pace, Paced};
pub use record::{Doubt, Level, Mark, Rise, Trial};
pub use shrink::{Moved, Refusal, back, refused};
