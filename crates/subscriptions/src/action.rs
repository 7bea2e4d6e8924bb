//! What the hub wants done. Data, carried out in the order given.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::{BufMut, Bytes};

use crate::event::End;
use crate::ids::{CallId, ClientId, EndpointId, FetchId, SocketId, SubscriptionId};

/// Something to do.
#[derive(Clone, Debug)]
pub enum Action {
    /// Opens a socket to this endpoint; room for it was taken. Answered by `Opened` or `Refused`.
    Open { socket: SocketId, endpoint: EndpointId },
    /// Closes a socket (1000); no event about it is expected any more. `End::Failed` where its endpoint stands still.
    Close { socket: SocketId, endpoint: EndpointId, end: End },
    /// Makes a call on a socket; room for it was taken. Answered by `Answered`.
    Call { socket: SocketId, call: CallId, method: Box<str>, params: Bytes },
    /// Makes a call through normal dispatch. Answered by `Fetched` or `Unfetched`.
    Fetch(Fetch),
    /// Answers a client's call for a subscription.
    Subscribed { client: ClientId, tag: u64, result: Result<SubscriptionId, Refusal> },
    /// Answers a client's call that gives one back: whether it had it.
    Unsubscribed { client: ClientId, tag: u64, known: bool },
    /// Sends this to each member under its own id. It was told by this endpoint, or fetched.
    Deliver { members: Arc<Vec<Member>>, payload: Payload, endpoint: Option<EndpointId> },
    /// Closes a client's socket with code 1012 and this reason. The hub has forgotten it.
    CloseClient { client: ClientId, reason: Reason },
}

/// A client's subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub client: ClientId,
    pub id: SubscriptionId,
}

/// A call for dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetch {
    pub id: FetchId,
    pub method: &'static str,
    pub params: Bytes,
    /// The endpoint that should know, if it can be asked.
    pub prefer: Option<EndpointId>,
}

/// A notification, parsed and built once: only the subscription's id, between its two parts, differs from
/// client to client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    before: Bytes,
    after: Bytes,
}

impl Payload {
    pub(crate) fn new(before: Bytes, after: Bytes) -> Self {
        Self { before, after }
    }

    /// A notification of `eth_subscription` with this result, which we make ourselves.
    pub(crate) fn of_result(result: &[u8]) -> Self {
        let before =
            Bytes::from_static(br#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"#);
        let mut after = Vec::with_capacity(result.len() + 12);
        after.extend_from_slice(br#","result":"#);
        after.extend_from_slice(result);
        after.extend_from_slice(b"}}");
        Self { before, after: after.into() }
    }

    /// Bytes of the message for one client.
    #[must_use]
    pub fn len(&self) -> usize {
        self.before.len() + SubscriptionId::LENGTH + 2 + self.after.len()
    }

    /// Never: the subscription's id is always there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Appends the message for the client whose subscription this is.
    pub fn write(&self, id: SubscriptionId, out: &mut impl BufMut) {
        out.put_slice(&self.before);
        out.put_u8(b'"');
        out.put_slice(&id.digits());
        out.put_u8(b'"');
        out.put_slice(&self.after);
    }
}

/// Why a client gets no subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An upstream's whole answer, to be passed on under the client's id.
    Answer(Bytes),
    /// All are at their ceilings or parked until then.
    Saturated { again: Instant },
    /// Nobody to ask.
    NoEndpoint,
    /// All were asked and failed.
    Failed,
    /// Nobody answered in time.
    Deadline,
    /// The client has as many as it may.
    TooMany { most: usize },
}

/// Why a client's socket is closed: it must subscribe anew and look for itself what it missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No other endpoint took the subscription, or the gap could not be read, in time.
    NothingWorked,
    /// More blocks were missed than are filled.
    TooManyBlocks,
    /// More logs were missed than are filled.
    TooManyLogs,
    /// The chain was reorganised deeper than is remembered.
    TooDeep,
    /// No other endpoint knows this subscription.
    NotElsewhere,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingWorked => "the subscription's provider was lost and no other took over within 30 s",
            Self::TooManyBlocks => "more than 256 blocks were missed while the provider was changed",
            Self::TooManyLogs => "more than 1024 logs were missed while the provider was changed",
            Self::TooDeep => "the chain was reorganised deeper than is remembered",
            Self::NotElsewhere => "the subscription's provider was lost and no other knows this subscription",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Kills: an id without quotes, a length that is off by the quotes.
    #[test]
    fn a_payload_is_written_around_the_id() {
        let payload = Payload::of_result(br#"{"number":"0x1"}"#);
        let mut out = Vec::new();
        payload.write(SubscriptionId(7), &mut out);
        assert_eq!(out.len(), payload.len());
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(value["params"]["subscription"], SubscriptionId(7).to_string());
        assert_eq!(value["params"]["result"]["number"], "0x1");
    }

    // Kills: a reason that a close frame cannot carry (123 bytes).
    #[test]
    fn reasons_fit_into_a_close_frame() {
        for reason in [
            Reason::NothingWorked,
            Reason::TooManyBlocks,
            Reason::TooManyLogs,
            Reason::TooDeep,
            Reason::NotElsewhere,
        ] {
            assert!(reason.to_string().len() <= 123, "{reason}");
        }
    }
}
