//! Carries a behaviour out for one request. Decides what is sent and how; never touches a socket.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde_json::Value;

use crate::answer::Answer;
use crate::behaviour::{Behaviour, ItemFault, Refusal};
use crate::encode::Coding;
use crate::limit::Meter;
use crate::node::{Given, Node, RpcError, log};
use crate::provider::lock;
use crate::request::{Call, Item, Request};
use crate::sockets::Feeds;
use crate::wire::{Payload, Shape};

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Sent(Sent),
    Hang,
    Reset,
    Close,
}

/// An answer and the way it goes out.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) payload: Payload,
    pub(crate) shape: Shape,
}

/// A request and the node it was sent to.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) node: Arc<Node>,
    pub(crate) request: Arc<Request>,
    /// The subscriptions of the socket it came on.
    pub(crate) feeds: Option<Arc<Mutex<Feeds>>>,
}

impl From<Answer> for Sent {
    fn from(answer: Answer) -> Self {
        let Answer { status, headers, body, echo_id: _ } = answer;
        Self { status, headers, payload: body.into(), shape: Shape::Whole }
    }
}

/// Carries out `behaviour`. Boxed, because behaviours nest.
pub(crate) fn perform(behaviour: Behaviour, asked: Asked) -> Pin<Box<dyn Future<Output = Outcome> + Send>> {
    Box::pin(async move {
        match behaviour {
            Behaviour::Healthy => asked.answer(|_| None),
            Behaviour::Answer(answer) => verbatim(answer, &asked.request),
            Behaviour::Error(error) => asked.answer(|_| Some(ItemFault::Error(error.clone()))),
            Behaviour::Items { one_in, fault } => {
                asked.answer(|index| (index + 1).is_multiple_of(one_in).then(|| fault.clone()))
            }
            Behaviour::Reversed => asked.reversed(),
            Behaviour::Limited { meter, refusal } => {
                limited(&mut meter.lock().unwrap_or_else(PoisonError::into_inner), &refusal, &asked)
            }
            Behaviour::Delay { by, inner } => {
                tokio::time::sleep(by).await;
                perform(*inner, asked).await
            }
            Behaviour::Hang => Outcome::Hang,
            Behaviour::Swallow => {
                drop(asked.answer(|_| None));
                Outcome::Hang
            }
            Behaviour::HangMidBody { after_bytes } => cut(&asked, |_| Shape::HangAfter(after_bytes)),
            Behaviour::ResetMidBody { after_bytes } => cut(&asked, |_| Shape::ResetAfter(after_bytes)),
            Behaviour::Truncated => cut(&asked, |length| Shape::CloseAfter(length / 2)),
            Behaviour::ResetBeforeAnswer | Behaviour::RefuseConnections => Outcome::Reset,
            Behaviour::CloseConnection => Outcome::Close,
            Behaviour::Encoded { coding, inner } => encoded(perform(*inner, asked).await, coding),
            Behaviour::Chunked { size, inner } => {
                shaped(perform(*inner, asked).await, |_| Shape::Chunks { size })
            }
            Behaviour::Fraction { one_in, turn, fault, otherwise } => {
                let faulty = (turn.next() + 1).is_multiple_of(one_in);
                perform(if faulty { *fault } else { *otherwise }, asked).await
            }
            Behaviour::PerMethod { methods, otherwise } => {
                perform(for_method(methods, *otherwise, &asked.request), asked).await
            }
            Behaviour::Sequence { turn, steps } => perform(at_turn(steps, turn.next()), asked).await,
        }
    })
}

impl Asked {
    /// A node's answer, with the faults of single items.
    fn answer(&self, fault: impl Fn(usize) -> Option<ItemFault>) -> Outcome {
        let items = &self.request.items;
        if !self.request.batch {
            return single(self.item(&items[0], fault(0)));
        }
        if items.is_empty() {
            return single(Some(rendered(Some("null"), &Err(RpcError::new(-32600, "empty batch")))));
        }
        batch(items.iter().enumerate().filter_map(|(index, item)| self.item(item, fault(index))))
    }

    fn reversed(&self) -> Outcome {
        if !self.request.batch {
            return self.answer(|_| None);
        }
        batch(self.request.items.iter().rev().filter_map(|item| self.item(item, None)))
    }

    fn item(&self, item: &Item, fault: Option<ItemFault>) -> Option<Payload> {
        let Item::Call(call) = item else {
            return Some(rendered(Some("null"), &Err(RpcError::new(-32600, "invalid request"))));
        };
        let answer = match fault {
            Some(ItemFault::Missing) => return None,
            Some(ItemFault::Error(error)) => Err(error),
            None => self.result(call),
        };
        call.id().map(|id| rendered(Some(id), &answer))
    }
}

impl Asked {
    fn result(&self, call: &Call) -> Result<Given, RpcError> {
        let subscribed = self.feeds.as_ref().and_then(|feeds| lock(feeds).answer(&call.method, &call.params));
        match subscribed {
            Some(answer) => answer.map(Given::Value),
            None => self.node.answer(&call.method, &call.params),
        }
    }
}

fn single(answer: Option<Payload>) -> Outcome {
    let (status, payload) = answer.map_or((204, Bytes::new().into()), |payload| (200, payload));
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Outcome::Sent(Sent { status, headers, payload, shape: Shape::Whole })
}

fn batch(answers: impl Iterator<Item = Payload>) -> Outcome {
    let mut body = Vec::new();
    for answer in answers {
        body.push(if body.is_empty() { b'[' } else { b',' });
        body.extend(answer.collect());
    }
    if body.is_empty() {
        return single(None);
    }
    body.push(b']');
    single(Some(Bytes::from(body).into()))
}

fn rendered(id: Option<&str>, answer: &Result<Given, RpcError>) -> Payload {
    let id = id.unwrap_or("null");
    let whole = |member: &str, value: Value| {
        Payload::from(Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#)))
    };
    match answer {
        Ok(Given::Value(value)) => whole("result", value.clone()),
        Err(error) => whole("error", error.to_json()),
        Ok(Given::Log { bytes }) => {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":[{}]}}"#, log(0));
            let (head, tail) = text.split_at(text.rfind('"').unwrap_or(text.len()));
            Payload { head: head.to_owned().into(), fill: *bytes, tail: tail.to_owned().into() }
        }
    }
}

fn verbatim(answer: Answer, request: &Request) -> Outcome {
    let body = answer.body_for(request.single_id());
    Outcome::Sent(Answer { body, ..answer }.into())
}

fn limited(meter: &mut Meter, refusal: &Refusal, asked: &Asked) -> Outcome {
    let now = epoch_millis();
    match refusal {
        Refusal::Embedded(error) => {
            let admitted: Vec<bool> = asked.request.items.iter().map(|_| meter.admit(now, 1)).collect();
            asked.answer(|index| (!admitted[index]).then(|| ItemFault::Error(error.clone())))
        }
        Refusal::Status { retry_after } => {
            let calls = asked.request.items.len() as u64;
            if meter.admit(now, calls) {
                return asked.answer(|_| None);
            }
            let seconds = retry_after.then(|| meter.opens_in(now, calls).div_ceil(1000).max(1));
            Outcome::Sent(Answer::rate_limited(seconds).into())
        }
    }
}

fn cut(asked: &Asked, shape: impl Fn(u64) -> Shape) -> Outcome {
    let outcome = shaped(asked.answer(|_| None), shape);
    let Outcome::Sent(mut sent) = outcome else { return outcome };
    sent.headers.push(("content-length".to_owned(), sent.payload.len().to_string()));
    Outcome::Sent(sent)
}

fn shaped(mut outcome: Outcome, shape: impl Fn(u64) -> Shape) -> Outcome {
    if let Outcome::Sent(sent) = &mut outcome {
        sent.shape = shape(sent.payload.len());
    }
    outcome
}

fn encoded(mut outcome: Outcome, coding: Coding) -> Outcome {
    if let Outcome::Sent(sent) = &mut outcome
        && let Ok(body) = coding.encode(&sent.payload.collect())
    {
        sent.payload = body.into();
        sent.headers.push(("content-encoding".to_owned(), coding.token().to_owned()));
    }
    outcome
}

fn for_method(methods: Vec<(String, Behaviour)>, otherwise: Behaviour, request: &Request) -> Behaviour {
    let asked = request.calls().next().map(|call: &Call| call.method.as_str());
    let found = methods.into_iter().find(|(method, _)| Some(method.as_str()) == asked);
    found.map_or(otherwise, |(_, behaviour)| behaviour)
}

fn at_turn(mut steps: Vec<Behaviour>, turn: usize) -> Behaviour {
    let last = steps.pop().unwrap_or(Behaviour::Healthy);
    if turn < steps.len() { steps.swap_remove(turn) } else { last }
}

fn epoch_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
