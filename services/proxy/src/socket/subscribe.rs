//! The client's side of subscriptions: which messages ask for one, who waits for which answer, and what is written when
//! the hub has it. Who serves a subscription is never decided here.

use super::calls::{Caller, with_own_id};
use super::close::Why;
use super::registry::{Peer, Sockets};
use crate::hub::{Ask, Delivery, client_number, worker_of};
use crate::reply::Problem;
use crate::route::{SubscriptionUse, subscription_use};
use crate::why::RequestId;
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use jsonrpc::{Call, Envelope};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use subscriptions::{Member, Payload, Refusal, SubscriptionId};
use tokio::sync::oneshot::Sender;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// A call for a subscription, or for the end of one, that the hub has not answered.
pub(super) struct Waiting {
    request: RequestId,
    /// As the client wrote it; none: it wants no answer.
    id: Option<Bytes>,
    method: Box<str>,
    started: Instant,
    /// Unix milliseconds.
    started_ms: u64,
    /// The batch that it is a member of.
    batch: Option<Sender<Utf8Bytes>>,
}

/// Whether `body` is for the hub.
pub(super) fn is_for_hub(body: &[u8]) -> bool {
    read(body).is_some()
}

/// Hands a call about a subscription to the hub, whose answer is written when it comes; `Some`: it may not be made.
pub(super) async fn hand_over(caller: Caller, number: u64, peer: Rc<Peer>, body: Bytes) -> Option<Utf8Bytes> {
    let (call, usage) = read(&body)?;
    ask(&caller, number, &peer, &body, &call, usage, None).await
}

/// Asks the hub for one call of `body`; the answer goes to `batch`, or to the client. `Some`: it may not be made.
pub(super) async fn ask(
    caller: &Caller,
    number: u64,
    peer: &Rc<Peer>,
    body: &Bytes,
    call: &Call,
    usage: SubscriptionUse,
    batch: Option<Sender<Utf8Bytes>>,
) -> Option<Utf8Bytes> {
    let worker = &caller.worker;
    let (method, params) = (call.method(body), call.params(body).unwrap_or(b"[]"));
    // What waits must not keep the frame, and the buffer it was read into, alive.
    let waiting = Waiting {
        request: worker.next_id(),
        id: call.id(body).map(Bytes::copy_from_slice),
        method: method.into(),
        started: Instant::now(),
        started_ms: crate::clock::unix_ms(),
        batch,
    };
    if usage == SubscriptionUse::Makes
        && let Err(problem) = caller.may_subscribe(method).await
    {
        finish(worker, peer, &waiting, Some(&problem));
        return waiting.id.as_deref().map(|id| problem_text(&problem, Some(id), waiting.request));
    }
    let (client, tag) = (client_number(worker.index(), number), peer.next_tag());
    let chain = Arc::clone(&caller.chain);
    peer.wait(tag, waiting);
    match (usage, subscription_of(params)) {
        (SubscriptionUse::Makes, _) => {
            let params = Bytes::copy_from_slice(params);
            worker.app.hub.send(Ask::Subscribe { chain, client, tag, method: method.into(), params });
        }
        (SubscriptionUse::Ends, Some(id)) => {
            worker.app.hub.send(Ask::Unsubscribe { chain, client, tag, id });
        }
        (SubscriptionUse::Ends, None) => {
            worker.sockets.deliver(worker, &Delivery::Unsubscribed { client, tag, known: false });
        }
    }
    None
}

/// The single call about a subscription in `body`.
fn read(body: &[u8]) -> Option<(Call, SubscriptionUse)> {
    memchr::memmem::find(body, b"ubscribe")?;
    let Ok(Envelope::Single(call)) = jsonrpc::parse(body, usize::MAX) else { return None };
    let usage = subscription_use(call.method(body))?;
    Some((call, usage))
}

fn subscription_of(params: &[u8]) -> Option<SubscriptionId> {
    let params: Vec<&str> = serde_json::from_slice(params).ok()?;
    SubscriptionId::parse(params.first()?)
}

impl Sockets {
    /// Gives clients of this worker what the hub has for them.
    pub(crate) fn deliver(&self, worker: &Worker, delivery: &Delivery) {
        match delivery {
            Delivery::Subscribed { client, tag, result } => {
                let Some(peer) = self.peer(worker_of(*client).1) else { return };
                let Some(waiting) = peer.take_waiting(*tag) else { return };
                match result {
                    Ok(id) => answer(self, worker, &peer, waiting, &format!(r#""{id}""#)),
                    Err(refusal) => refuse(self, worker, &peer, waiting, refusal),
                }
            }
            Delivery::Unsubscribed { client, tag, known } => {
                let Some(peer) = self.peer(worker_of(*client).1) else { return };
                if let Some(waiting) = peer.take_waiting(*tag) {
                    answer(self, worker, &peer, waiting, if *known { "true" } else { "false" });
                }
            }
            Delivery::Told { members, payload, endpoint } => {
                let mine = members.iter().filter(|member| worker_of(member.client).0 == worker.index());
                mine.for_each(|member| self.tell(member, payload, *endpoint));
            }
            Delivery::Close { client, reason } => {
                if let Some(peer) = self.peer(worker_of(*client).1) {
                    peer.outbox.close(Why::Lost(*reason));
                }
            }
        }
    }

    fn tell(&self, member: &Member, payload: &Payload, endpoint: Option<u32>) {
        let Some(peer) = self.peer(worker_of(member.client).1) else { return };
        if endpoint.is_some() {
            peer.newest.set(endpoint);
        }
        let mut text = BytesMut::with_capacity(payload.len());
        payload.write(member.id, &mut text);
        // Upstreams' texts are UTF-8, and so is an id.
        if let Ok(text) = Utf8Bytes::try_from(text.freeze()) {
            self.notify(&peer.outbox, &text);
        }
    }
}

fn answer(sockets: &Sockets, worker: &Worker, peer: &Peer, waiting: Waiting, result: &str) {
    finish(worker, peer, &waiting, None);
    if let Some(id) = &waiting.id {
        let id = String::from_utf8_lossy(id);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        waiting.reply(sockets, peer, text.into());
    }
}

fn refuse(sockets: &Sockets, worker: &Worker, peer: &Peer, waiting: Waiting, refusal: &Refusal) {
    let problem = match refusal {
        Refusal::Answer(text) => {
            finish(worker, peer, &waiting, None);
            let id = waiting.id.as_deref();
            if let Some(text) = id.and_then(|id| with_own_id(text.clone(), Some(id))) {
                waiting.reply(sockets, peer, text);
            }
            return;
        }
        Refusal::Saturated { again } => {
            let wait = again.saturating_duration_since(Instant::now()).as_millis();
            let wait = u64::try_from(wait).unwrap_or(u64::MAX);
            Problem::Saturated { at: crate::clock::unix_ms().saturating_add(wait) }
        }
        Refusal::NoEndpoint => Problem::NoLiveEndpoint,
        Refusal::Failed => Problem::AllAttemptsFailed,
        Refusal::Deadline => Problem::Deadline,
        Refusal::TooMany { most } => Problem::TooManySubscriptions { most: *most },
    };
    finish(worker, peer, &waiting, Some(&problem));
    if let Some(id) = waiting.id.as_deref() {
        let text = problem_text(&problem, Some(id), waiting.request);
        waiting.reply(sockets, peer, text);
    }
}

impl Waiting {
    fn reply(self, sockets: &Sockets, peer: &Peer, text: Utf8Bytes) {
        match self.batch {
            // A batch that was given up needs no answer.
            Some(batch) => drop(batch.send(text)),
            None => sockets.answer(&peer.outbox, &text),
        }
    }
}

pub(super) fn problem_text(problem: &Problem, id: Option<&[u8]>, request: RequestId) -> Utf8Bytes {
    let mut text = Vec::with_capacity(256);
    problem.write(id, request, crate::clock::unix_ms(), &mut text);
    String::from_utf8(text).unwrap_or_default().into()
}

/// Counts the call and leaves its story.
fn finish(worker: &Worker, peer: &Peer, waiting: &Waiting, problem: Option<&Problem>) {
    let (status, took) =
        (problem.map_or(200, |problem| problem.status().as_u16()), waiting.started.elapsed());
    peer.counts.answered(status, took);
    let mut stories = worker.stories.borrow_mut();
    let mut story = stories.start(waiting.request, waiting.started_ms);
    story.chain = Some(peer.counts.number);
    story.asked.push_str(waiting.method.get(..waiting.method.len().min(64)).unwrap_or(""));
    story.status = status;
    story.reason = problem.map(Problem::reason);
    story.took = took;
    stories.finish(story);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_about_subscriptions_are_told_from_others() {
        use SubscriptionUse::{Ends, Makes};
        for (body, expected) in [
            (r#"{"id":1,"method":"eth_subscribe","params":["newHeads"]}"#, Some(Makes)),
            (r#"{"id":1,"method":"eth_unsubscribe","params":["0x1"]}"#, Some(Ends)),
            (r#"{"id":1,"method":"slotSubscribe"}"#, Some(Makes)),
            (r#"{"id":1,"method":"eth_call","params":["eth_subscribe"]}"#, None),
            (r#"[{"id":1,"method":"eth_subscribe","params":["newHeads"]}]"#, None),
            (r#"{"id":1,"method":"eth_subscribe""#, None),
        ] {
            assert_eq!(read(body.as_bytes()).map(|(_, usage)| usage), expected, "{body}");
        }
    }
}
