//! What a call needs of an endpoint, and whether it may be sent twice. The only reader of method names.
//!
//! Pure: it looks at the call, never at the fleet.

mod block;
pub(crate) mod filter;
mod methods;

pub(crate) use block::{BlockWanted, block_wanted, log_range};
pub(crate) use methods::{SubscriptionUse, is_known, subscription_use};

use jsonrpc::Call;

/// What may be done with a call after an attempt whose outcome is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Safety {
    /// It only reads: ask somebody else.
    Repeatable,
    /// A signed transaction: it may be repeated, and then "already known" is success.
    Transaction,
    /// It may have changed something: never send it again once it may have been carried out.
    Once,
}

/// What the filter methods do with ids that only one endpoint knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilterUse {
    None,
    Makes,
    Uses,
}

/// The needs of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) safety: Safety,
    pub(crate) filter: FilterUse,
    /// The method is one of those that may be parked at an endpoint.
    pub(crate) known: bool,
    /// Only archive nodes will do.
    pub(crate) archive: bool,
}

/// Reads the needs of `method`; `archive` is the client's wish.
pub(crate) fn need(method: &str, archive: bool) -> Need {
    let (safety, known) = methods::safety_of(method);
    Need { safety, filter: methods::filter_use(method), known, archive }
}

/// The needs of `call`, found in `body`.
pub(crate) fn need_of(call: &Call, body: &[u8], archive: bool) -> Need {
    need(call.method(body), archive)
}
