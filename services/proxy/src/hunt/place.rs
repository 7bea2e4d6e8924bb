//! A request's place in the queues of the accounts that it waits for. Keeps its turn for as long as the request lives;
//! decides nothing.

use ledger::Cost;
use std::sync::Arc;
use store::{Account, Turn, Turns};
use tokio::sync::Notify;

/// Leaves every queue when dropped, also when the client goes away.
pub(super) struct Place {
    turn: Turn,
    call: Arc<Notify>,
    at: Vec<Arc<Account>>,
}

impl Place {
    /// Of somebody who begins to wait.
    pub(super) fn new(turns: &Turns) -> Place {
        Place { turn: turns.begin(), call: Arc::default(), at: Vec::new() }
    }

    pub(super) fn turn(&self) -> Turn {
        self.turn
    }

    /// Stands at these accounts from now on and at no others; returns what calls it.
    pub(super) fn stand(&mut self, accounts: Vec<Arc<Account>>, cost: Cost) -> &Notify {
        for left in self.at.iter().filter(|left| !has(&accounts, left)) {
            left.queue.leave(self.turn);
        }
        for account in &accounts {
            account.queue.stand(self.turn, cost, &self.call);
        }
        self.at = accounts;
        &self.call
    }

    pub(super) fn leave(&mut self) {
        for account in self.at.drain(..) {
            account.queue.leave(self.turn);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

fn has(accounts: &[Arc<Account>], one: &Arc<Account>) -> bool {
    accounts.iter().any(|account| Arc::ptr_eq(account, one))
}
