//! JSON-RPC envelopes without copying payloads: ids, methods and where the parameters stand.
//!
//! Pure. It never looks inside parameters or results, and never decides what a method means.

mod call;
mod depth;
mod envelope;
mod reply;

pub use call::{Call, Span};
pub use envelope::{Envelope, Malformed, parse};
pub use reply::{
    INTERNAL, INVALID_REQUEST, LIMITED, METHOD_NOT_FOUND, PARSE, UNAUTHORIZED, array, error, with_id,
};
