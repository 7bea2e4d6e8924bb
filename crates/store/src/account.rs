//! What a provider's limit belongs to: its use, its park and its ceilings, shared by all endpoints that name it.

use crate::park::Park;
use crate::queue::Queue;
use ledger::Gate;
use recovery::{Policy, Record};

/// The shared state of one account. Every method of its parts is safe on a request's path: nothing waits. Whether it is
/// parked, whether it has a ceiling and what it was used for come first, in one cache line: that is what a request reads of each
/// candidate.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Account {
    pub park: Park,
    /// Use and ceilings. Every dispatch counts: requests, retries, probes; a batch counts its calls.
    pub gate: Gate,
    /// Who waits for room under the ceilings.
    pub queue: Queue,
    pub name: Box<str>,
}

impl Account {
    /// A new account, or one that goes on from where `before` is at `now` (Unix milliseconds) under other rules.
    pub fn new(name: &str, policy: Policy, gate: Gate, before: Option<&Account>, now: u64) -> Account {
        let record = before.map_or_else(Record::default, |before| before.park.record());
        if let Some(before) = before {
            gate.carry_24h(&before.gate, now);
        }
        Account { park: Park::new(policy, record), gate, queue: Queue::default(), name: name.into() }
    }
}
