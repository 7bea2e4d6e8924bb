//! What an admitted request holds: a receipt for what it was charged, and its concurrency slot, which ends with it.

use std::sync::Arc;

use clients::Standing;
use ledger::Cost;

use super::shared::Shared;
use super::subject::Subject;

/// An admitted request.
#[derive(Debug)]
pub struct Charge {
    /// Of its tightest dimension; `None` where nothing is limited.
    pub standing: Option<Standing>,
    pub receipt: Receipt,
    /// Held for as long as the request, or the socket, lasts.
    pub permit: Option<Permit>,
}

/// What was charged where. Given back at most once: it is consumed.
#[derive(Debug)]
pub struct Receipt {
    pub(super) subject: Arc<Subject>,
    pub(super) cost: Cost,
    pub(super) how: How,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum How {
    Free,
    /// In this process, at this Unix millisecond.
    Here {
        at: u64,
    },
    /// Where all count, at this millisecond of that clock.
    There {
        at: u64,
    },
    /// Of the block granted at this millisecond of that clock.
    Block {
        granted: u64,
    },
}

impl Charge {
    pub(super) fn free(subject: &Arc<Subject>) -> Charge {
        let receipt = Receipt::new(subject, Cost::requests(0), How::Free);
        Charge { standing: None, receipt, permit: None }
    }
}

impl Receipt {
    pub(super) fn new(subject: &Arc<Subject>, cost: Cost, how: How) -> Receipt {
        Receipt { subject: Arc::clone(subject), cost, how }
    }
}

/// A concurrency slot. Dropped, it is free.
#[derive(Debug)]
pub struct Permit {
    subject: Arc<Subject>,
    slot: Option<u64>,
    shared: Option<Arc<Shared>>,
}

impl Permit {
    /// Of a slot that is held already.
    pub(super) fn new(subject: &Arc<Subject>, slot: Option<u64>, shared: Option<&Arc<Shared>>) -> Permit {
        Permit { subject: Arc::clone(subject), slot, shared: shared.cloned() }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.subject.pot.local().release(self.slot);
        self.subject.freed();
        if let (Some(shared), Some(_)) = (&self.shared, self.slot) {
            shared.release(&self.subject);
        }
    }
}

/// A slot that was asked for and not granted yet. Its number exists before the wait: whatever becomes of the ask, also
/// that it is not answered, the slot can be released.
pub(super) struct Pending {
    subject: Arc<Subject>,
    slot: u64,
    shared: Arc<Shared>,
    settled: bool,
}

impl Pending {
    pub(super) fn new(subject: &Arc<Subject>, shared: &Arc<Shared>) -> Pending {
        let (subject, slot, shared) = (Arc::clone(subject), shared.next_slot(), Arc::clone(shared));
        Pending { subject, slot, shared, settled: false }
    }

    pub(super) fn slot(&self) -> u64 {
        self.slot
    }

    /// It was granted.
    pub(super) fn granted(mut self) -> Permit {
        self.settled = true;
        self.subject.pot.local().hold(Some(self.slot));
        Permit::new(&self.subject, Some(self.slot), Some(&self.shared))
    }

    /// It was refused: there is nothing to release.
    pub(super) fn refused(mut self) {
        self.settled = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.settled {
            self.subject.pot.local().untold([self.slot]);
            self.shared.release(&self.subject);
        }
    }
}
