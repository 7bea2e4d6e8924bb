//! Whether an endpoint's account has room for one more now, for those who wait before those who come.

use super::{Skip, Wish};
use crate::fleet::Endpoint;
use ledger::{CeilingKind, Take, Ticket};

/// Takes what the next attempt needs; without a ceiling that is nothing.
pub(crate) fn take(endpoint: &Endpoint, wish: &Wish<'_>) -> Result<Option<Ticket>, Skip> {
    let account = &endpoint.account;
    if !wish.policy.throttling || account.gate.open() {
        return Ok(None);
    }
    let look = |ahead| account.gate.try_take_behind(ahead, wish.cost, wish.now);
    match account.queue.pass(wish.turn, look) {
        Take::Granted(ticket) => Ok(Some(ticket)),
        Take::Dry { again_at, kind } => {
            let soft = kind == CeilingKind::Learned;
            // What there is is for others: once they have gone on, there may be enough after all.
            let fits = account.gate.when_again(wish.cost, wish.now).is_some_and(|when| when <= wish.now);
            Err(if fits { Skip::Behind { soft } } else { Skip::Dry { at: again_at, soft } })
        }
        Take::Doubt => Err(Skip::Doubt),
        Take::TooBig { .. } => Err(Skip::TooBig),
    }
}
