//! What a request was charged, until something is dispatched for it. Dropped before that, also because the client went
//! away, it is given back, once.

use std::cell::Cell;
use std::sync::Arc;
use store::{ClientLimits, Receipt};

pub(crate) struct Toll {
    limits: Arc<ClientLimits>,
    receipt: Cell<Option<Receipt>>,
}

impl Toll {
    pub(crate) fn new(limits: Arc<ClientLimits>, receipt: Receipt) -> Toll {
        Toll { limits, receipt: Cell::new(Some(receipt)) }
    }

    /// Something is dispatched: the charge stays, however many attempts follow.
    pub(crate) fn keep(&self) {
        drop(self.receipt.take());
    }
}

impl Drop for Toll {
    fn drop(&mut self) {
        if let Some(receipt) = self.receipt.take() {
            self.limits.give_back(receipt);
        }
    }
}
