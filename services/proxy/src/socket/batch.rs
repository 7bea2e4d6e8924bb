//! A batch with calls about subscriptions among its members: those go to the hub, the others the way of every batch, and
//! the client gets one answer, in the order in which it asked. What the new subscriptions tell follows it.

use super::calls::{Caller, with_own_id};
use super::registry::Peer;
use super::subscribe::{ask, problem_text};
use crate::reply::Problem;
use crate::route::{SubscriptionUse, subscription_use};
use crate::why::RequestId;
use bytes::Bytes;
use futures_util::future::{join, join_all};
use jsonrpc::{Call, Envelope, Malformed};
use serde_json::value::RawValue;
use std::rc::Rc;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// The members of such a batch.
pub(super) struct Mixed(Vec<Member>);

enum Member {
    Hub(Call, SubscriptionUse),
    Other(Call),
    Malformed(Malformed),
}

impl Mixed {
    /// The batch in `body`, if any of its members is for the hub and it is one that may be served.
    pub(super) fn read(body: &[u8], caller: &Caller) -> Option<Mixed> {
        let most = usize::try_from(caller.worker.app.settings.max_batch).unwrap_or(usize::MAX);
        Self::find(body, most)
    }

    fn find(body: &[u8], most: usize) -> Option<Mixed> {
        memchr::memmem::find(body, b"ubscribe")?;
        let Ok(Envelope::Batch(calls)) = jsonrpc::parse(body, most) else { return None };
        let member = |call: Result<Call, Malformed>| match call {
            Ok(call) => match subscription_use(call.method(body)) {
                Some(usage) => Member::Hub(call, usage),
                None => Member::Other(call),
            },
            Err(malformed) => Member::Malformed(malformed),
        };
        let members: Vec<Member> = calls.into_iter().map(member).collect();
        members.iter().any(|member| matches!(member, Member::Hub(..))).then_some(Mixed(members))
    }

    /// Serves the batch. Its answer is queued here: what its subscriptions have told by then comes after it.
    pub(super) async fn serve(
        self,
        caller: Caller,
        number: u64,
        peer: Rc<Peer>,
        body: Bytes,
    ) -> Option<Utf8Bytes> {
        let _held = Held::new(&peer);
        let others = async {
            let others = self.others(&body)?;
            caller.clone().answer(others, peer.newest.get()).await
        };
        let hub = self.0.iter().filter_map(|member| match member {
            Member::Hub(call, usage) => Some(ask_one(&caller, number, &peer, &body, call, *usage)),
            Member::Other(_) | Member::Malformed(_) => None,
        });
        let (others, hub) = join(others, join_all(hub)).await;
        let request = caller.worker.next_id();
        if let Some(answer) = self.answer(&body, others.as_deref(), hub, request) {
            caller.worker.sockets.answer(&peer.outbox, &answer);
        }
        None
    }

    /// A batch of the members that are not for the hub.
    fn others(&self, body: &[u8]) -> Option<Bytes> {
        let mut others = Vec::with_capacity(body.len());
        for member in &self.0 {
            if let Member::Other(call) = member {
                others.push(if others.is_empty() { b'[' } else { b',' });
                let id = call.id(body).map(String::from_utf8_lossy);
                call.write(body, id.as_deref(), &mut others);
            }
        }
        if others.is_empty() {
            return None;
        }
        others.push(b']');
        Some(others.into())
    }

    /// All answers in the order of the members; none if all were notifications.
    fn answer(
        &self,
        body: &[u8],
        others: Option<&str>,
        hub: Vec<Option<Utf8Bytes>>,
        request: RequestId,
    ) -> Option<Utf8Bytes> {
        let (mut others, mut hub) = (Others::read(others), hub.into_iter());
        let answers = self.0.iter().filter_map(|member| match member {
            Member::Hub(..) => hub.next().flatten(),
            Member::Other(call) => others.next(call.id(body)?),
            Member::Malformed(malformed) => {
                let problem = Problem::Malformed(malformed.clone());
                Some(problem_text(&problem, malformed.id(body), request))
            }
        });
        let answers: Vec<Utf8Bytes> = answers.collect();
        if answers.is_empty() {
            return None;
        }
        let mut text = Vec::new();
        jsonrpc::array(&mut text, answers.iter().map(|answer| answer.as_bytes()));
        Utf8Bytes::try_from(Bytes::from(text)).ok()
    }
}

/// What the members that are not for the hub were answered with.
enum Others<'a> {
    /// An answer each, in their order.
    Each(std::vec::IntoIter<&'a RawValue>),
    /// One error for all of them, or nothing.
    Together(Option<&'a str>),
}

impl<'a> Others<'a> {
    fn read(answer: Option<&'a str>) -> Others<'a> {
        match answer.and_then(|answer| serde_json::from_str::<Vec<&RawValue>>(answer).ok()) {
            Some(each) => Others::Each(each.into_iter()),
            None => Others::Together(answer),
        }
    }

    /// The answer to the next call, whose id is this.
    fn next(&mut self, id: &[u8]) -> Option<Utf8Bytes> {
        match self {
            Others::Each(answers) => answers.next().map(|answer| answer.get().to_owned().into()),
            Others::Together(error) => with_own_id(Bytes::copy_from_slice((*error)?.as_bytes()), Some(id)),
        }
    }
}

/// What one member for the hub is answered with; none to a notification.
async fn ask_one(
    caller: &Caller,
    number: u64,
    peer: &Rc<Peer>,
    body: &Bytes,
    call: &Call,
    usage: SubscriptionUse,
) -> Option<Utf8Bytes> {
    let (answer, answered) = oneshot::channel();
    match ask(caller, number, peer, body, call, usage, Some(answer)).await {
        Some(refused) => Some(refused),
        None => answered.await.ok(),
    }
}

/// While it lives, what subscriptions tell is kept back.
struct Held(Rc<Peer>);

impl Held {
    fn new(peer: &Rc<Peer>) -> Held {
        peer.outbox.hold();
        Held(Rc::clone(peer))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.outbox.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"[{"id":1,"method":"eth_chainId"},{"id":"x"},{"id":"s","method":"eth_subscribe","params":["newHeads"]},
        {"method":"eth_gasPrice"},{"id":3,"method":"eth_unsubscribe","params":["0x1"]},{"id":4,"method":"eth_call"}]"#;

    const REQUEST: RequestId = RequestId { process: 0, worker: 0, count: 1 };

    fn mixed() -> Mixed {
        Mixed::find(BODY.as_bytes(), 10).expect("a mixed batch")
    }

    fn text(text: &str) -> Option<Utf8Bytes> {
        Some(text.into())
    }

    // Kills: plain batches and single calls that take the longer way, a batch that is larger than may be.
    #[test]
    fn only_batches_with_subscriptions_are_mixed() {
        for body in [
            r#"[{"id":1,"method":"eth_call","params":["eth_subscribe"]}]"#,
            r#"{"id":1,"method":"eth_subscribe","params":["newHeads"]}"#,
            r#"[{"id":1,"method":"eth_subscribe""#,
        ] {
            assert!(Mixed::find(body.as_bytes(), 10).is_none(), "{body}");
        }
        assert!(Mixed::find(BODY.as_bytes(), 5).is_none());
    }

    // Kills: a member that is asked twice, or of nobody.
    #[test]
    fn the_others_are_a_batch_of_their_own() {
        let others = mixed().others(BODY.as_bytes()).expect("some");
        let others: serde_json::Value = serde_json::from_slice(&others).expect("JSON");
        let methods: Vec<_> =
            others.as_array().expect("a batch").iter().map(|call| &call["method"]).collect();
        assert_eq!(methods, ["eth_chainId", "eth_gasPrice", "eth_call"]);
    }

    // Kills: answers out of order, an answer to a notification, members without one when the others fail together.
    #[test]
    fn the_answer_is_in_the_order_of_the_members() {
        let hub = || vec![text(r#"{"id":"s","result":"0x7"}"#), text(r#"{"id":3,"result":true}"#)];
        let ids = |others: Option<&str>| {
            let answer = mixed().answer(BODY.as_bytes(), others, hub(), REQUEST).expect("an answer");
            let answer: Vec<serde_json::Value> = serde_json::from_str(&answer).expect("an array");
            answer.iter().map(|one| one["id"].to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(ids(Some(r#"[{"id":1,"result":"0x1"},{"id":4,"result":"0x"}]"#)), r#"1 "x" "s" 3 4"#);
        assert_eq!(ids(Some(r#"{"id":null,"error":{"code":-32005,"message":"no"}}"#)), r#"1 "x" "s" 3 4"#);
        assert_eq!(ids(None), r#""x" "s" 3"#);
    }
}
