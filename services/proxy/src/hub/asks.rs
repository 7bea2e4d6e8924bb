//! What workers ask of the hub, and what it has for their clients.

use bytes::Bytes;
use std::sync::Arc;
use subscriptions::{ClientId, Member, Payload, Reason, Refusal, SubscriptionId};
use tokio::sync::mpsc::UnboundedSender;

/// What a client's socket asks for.
#[derive(Debug)]
pub(crate) enum Ask {
    Subscribe {
        chain: Arc<str>,
        client: ClientId,
        tag: u64,
        method: Box<str>,
        params: Bytes,
    },
    Unsubscribe {
        chain: Arc<str>,
        client: ClientId,
        tag: u64,
        id: SubscriptionId,
    },
    /// The socket has ended.
    Gone {
        chain: Arc<str>,
        client: ClientId,
    },
}

impl Ask {
    pub(super) fn chain(&self) -> &Arc<str> {
        match self {
            Ask::Subscribe { chain, .. } | Ask::Unsubscribe { chain, .. } | Ask::Gone { chain, .. } => chain,
        }
    }
}

/// The way to the hub. The queue is bounded by the calls that each socket may have in flight.
#[derive(Clone, Debug)]
pub(crate) struct Asks(UnboundedSender<Ask>);

impl Asks {
    pub(crate) fn new(asks: UnboundedSender<Ask>) -> Asks {
        Asks(asks)
    }

    pub(crate) fn send(&self, ask: Ask) {
        // The hub ends with the process; nobody waits for its answers then.
        let _ = self.0.send(ask);
    }
}

/// What the hub has for clients of a worker.
#[derive(Clone, Debug)]
pub(crate) enum Delivery {
    Subscribed {
        client: ClientId,
        tag: u64,
        result: Result<SubscriptionId, Refusal>,
    },
    Unsubscribed {
        client: ClientId,
        tag: u64,
        known: bool,
    },
    /// For those of the members who are the worker's. `endpoint` told it.
    Told {
        members: Arc<Vec<Member>>,
        payload: Payload,
        endpoint: Option<u32>,
    },
    Close {
        client: ClientId,
        reason: Reason,
    },
}

/// Bits of a client's id that number the socket within its worker.
const SOCKET_BITS: u32 = 48;

/// The id of the socket with this number at this worker.
pub(crate) fn client_number(worker: u16, socket: u64) -> ClientId {
    ClientId((u64::from(worker) << SOCKET_BITS) | socket)
}

/// The worker and the number at it.
pub(crate) fn worker_of(client: ClientId) -> (u16, u64) {
    let worker = u16::try_from(client.0 >> SOCKET_BITS).unwrap_or(u16::MAX);
    (worker, client.0 & ((1 << SOCKET_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_id_tells_worker_and_socket() {
        for (worker, socket) in [(0, 0), (0, 7), (3, 0), (1023, (1 << 48) - 1)] {
            assert_eq!(worker_of(client_number(worker, socket)), (worker, socket));
        }
    }
}
