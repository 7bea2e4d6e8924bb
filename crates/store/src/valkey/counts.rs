//! What the connection is used for: round trips and errors by kind.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Tokens of static limits.
    Lease,
    /// Use told, and what others know read.
    Sync,
    /// A record written by compare-and-set.
    Swap,
    /// Who probes a parked account, and who checks health.
    Claim,
    /// What checkers found.
    Health,
    /// Flags read.
    Flags,
    /// A client's request charged, or a block of its limits leased.
    Limit,
    /// What was charged to a client and not spent.
    Credit,
    /// Concurrency slots of clients, prolonged and released.
    Slots,
    /// How many proxies count the limits of clients.
    Presence,
}

impl Op {
    /// All of them.
    pub const ALL: [Op; 10] = [
        Op::Lease,
        Op::Sync,
        Op::Swap,
        Op::Claim,
        Op::Health,
        Op::Flags,
        Op::Limit,
        Op::Credit,
        Op::Slots,
        Op::Presence,
    ];

    /// Its name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Op::Lease => "lease",
            Op::Sync => "sync",
            Op::Swap => "swap",
            Op::Claim => "claim",
            Op::Health => "health",
            Op::Flags => "flags",
            Op::Limit => "limit",
            Op::Credit => "credit",
            Op::Slots => "slots",
            Op::Presence => "presence",
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    trips: [AtomicU64; Op::ALL.len()],
    errors: [AtomicU64; Op::ALL.len()],
}

impl Counts {
    pub(crate) fn tripped(&self, op: Op) {
        self.trips[op as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self, op: Op) {
        self.errors[op as usize].fetch_add(1, Relaxed);
    }

    /// Commands sent, and those that failed.
    pub(crate) fn of(&self, op: Op) -> (u64, u64) {
        (self.trips[op as usize].load(Relaxed), self.errors[op as usize].load(Relaxed))
    }
}
