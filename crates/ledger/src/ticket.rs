//! What a request costs and what it holds until it is sent. A ticket dropped unsent frees the room it held under a
//! learned ceiling; static tokens are given back by [`crate::Gate::give_back`] or stay spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{LocalMs, Unit};

/// Static ceilings of one account whose tokens a ticket can name. Those beyond are enforced all the same, only
/// not given back.
pub(crate) const NAMED: usize = 6;

/// What one dispatch costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Requests: 1, or the items of a batch.
    pub requests: u32,
    /// Compute units, where the provider counts them.
    pub units: u32,
}

impl Cost {
    /// `n` requests without compute units.
    #[must_use]
    pub fn requests(n: u32) -> Self {
        Self { requests: n, units: 0 }
    }

    pub(crate) fn of(self, unit: Unit) -> u32 {
        match unit {
            Unit::Requests => self.requests,
            Unit::ComputeUnits => self.units,
        }
    }
}

/// Which kind of ceiling stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CeilingKind {
    /// Configured: never exceeded.
    Static,
    /// An estimate: it alone should not refuse a client while nobody else can serve.
    Learned,
}

/// Who sends something that did not wait for a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A client's request: an overflow, a socket's own call.
    Client,
    /// A health or recovery probe: use, but no evidence.
    Probe,
}

/// Leave to dispatch once. Hand it to [`crate::Gate::sent`] just before the first byte is written.
#[derive(Debug)]
#[must_use = "a ticket that is neither sent nor given back wastes its tokens"]
pub struct Ticket {
    pub(crate) cost: Cost,
    pub(crate) ends: LocalMs,
    pub(crate) windows: [u32; NAMED],
    pub(crate) outstanding: Option<Outstanding>,
}

impl Ticket {
    pub(crate) fn free(cost: Cost) -> Self {
        Self { cost, ends: LocalMs(u64::MAX), windows: [0; NAMED], outstanding: None }
    }

    /// The first millisecond at which it cannot be sent any more.
    #[must_use]
    pub fn ends(&self) -> u64 {
        self.ends.0
    }

    /// What it is for.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.cost
    }
}

/// Room held under a learned ceiling between admission and dispatch. Dropping it frees the room.
#[derive(Debug)]
pub(crate) struct Outstanding {
    of: Arc<AtomicU64>,
    n: u64,
}

impl Outstanding {
    /// Holds room for `n`; also returns all that is held now.
    pub(crate) fn hold(of: &Arc<AtomicU64>, n: u32) -> (Self, u64) {
        let n = u64::from(n);
        let held = of.fetch_add(n, Ordering::AcqRel).saturating_add(n);
        (Self { of: Arc::clone(of), n }, held)
    }
}

impl Drop for Outstanding {
    fn drop(&mut self) {
        self.of.fetch_sub(self.n, Ordering::AcqRel);
    }
}
