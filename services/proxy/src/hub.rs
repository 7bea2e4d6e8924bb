//! Clients' subscriptions and the providers' sockets behind them. One thread of the process carries out what
//! `subscriptions` decides: it opens sockets, makes calls, fetches what was missed and hands what was told to the
//! workers. It decides nothing about subscriptions itself.

mod account;
mod asks;
mod fetch;
mod keeper;
mod meaning;
mod view;

pub(crate) use asks::{Ask, Asks, Delivery, client_number, worker_of};

use crate::worker::Worker;
use keeper::Keeper;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Passes what clients ask to the keeper of their chain's subscriptions; one is made when it is first needed.
pub(crate) async fn run(worker: Rc<Worker>, mut asks: UnboundedReceiver<Ask>) {
    let mut keepers: HashMap<Arc<str>, UnboundedSender<Ask>> = HashMap::new();
    while let Some(ask) = asks.recv().await {
        let keeper = keepers.entry(Arc::clone(ask.chain())).or_insert_with_key(|chain| {
            let (keeper, asked) = unbounded_channel();
            tokio::task::spawn_local(Keeper::new(&worker, chain).run(asked));
            keeper
        });
        // A keeper ends with the process only.
        let _ = keeper.send(ask);
    }
}
