//! What the hub opens and subscribes is use of an account like any other: it takes the account's tokens, and waits
//! where it is parked or at its ceiling.

use crate::fleet::{Chain, Endpoint};
use crate::select::opening;
use ledger::{Cost, Sender, Take};
use std::time::{Duration, Instant};
use subscriptions::{Allowance, EndpointId, Grant};

/// How soon tokens that are being fetched are looked for again.
const DOUBT: Duration = Duration::from_millis(5);
/// The longest time after which a closed account is looked at again: it may open sooner than announced.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The ceilings of one chain's accounts.
pub(super) struct Accounts<'a> {
    pub(super) chain: Option<&'a Chain>,
    pub(super) throttling: bool,
    /// Unix milliseconds.
    pub(super) now_ms: u64,
}

impl Allowance for Accounts<'_> {
    fn take(&mut self, endpoint: EndpointId, now: Instant) -> Grant {
        match self.chain.and_then(|chain| at(chain, endpoint)) {
            Some((_, endpoint)) => self.take_at(endpoint, now),
            None => Grant::At(now + LOOK_AGAIN),
        }
    }
}

impl Accounts<'_> {
    fn take_at(&self, endpoint: &Endpoint, now: Instant) -> Grant {
        let gate = &endpoint.account.gate;
        let later = |at: u64| {
            let wait = Duration::from_millis(at.saturating_sub(self.now_ms).max(1));
            Grant::At(now + wait.min(LOOK_AGAIN))
        };
        if let Some(at) = opening(endpoint, self.now_ms) {
            return later(at);
        }
        if !self.throttling || gate.open() {
            gate.charge(Cost::requests(1), Sender::Client, self.now_ms);
            return Grant::Now;
        }
        match gate.try_take(Cost::requests(1), self.now_ms) {
            // A ticket whose window has just ended is as good as none.
            Take::Granted(ticket) => match gate.sent(ticket, self.now_ms) {
                true => Grant::Now,
                false => Grant::At(now + DOUBT),
            },
            Take::Doubt => Grant::At(now + DOUBT),
            Take::Dry { again_at, .. } => later(again_at),
            Take::TooBig { .. } => Grant::At(now + LOOK_AGAIN),
        }
    }
}

/// The endpoint with this number, and its index.
pub(super) fn at(chain: &Chain, endpoint: EndpointId) -> Option<(u16, &Endpoint)> {
    let mut all = (0u16..).zip(&chain.endpoints);
    all.find(|(_, candidate)| u64::from(candidate.number) == endpoint.0)
}
