//! One JSON-RPC request over HTTP, from its head to its answer's head.

mod admission;
mod early;
mod intake;
mod visit;

pub(crate) use visit::Visit;

use crate::batch::{self, Merged, Slot};
use crate::call;
use crate::caller::{Arrival, Caller, identify};
use crate::cors::Cors;
use crate::exchange::Answer;
use crate::fleet::{Chain, Fleet};
use crate::net::{Body, Relay};
use crate::reply::{Problem, json};
use crate::request::Request;
use crate::upstream::Codings;
use crate::why::RequestId;
use crate::worker::Worker;
use admission::Hold;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use jsonrpc::{Call, Envelope, Malformed};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ENDPOINT: HeaderName = HeaderName::from_static("x-headgate-endpoint");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-headgate-attempts");

/// Serves one request and leaves its story.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    id: RequestId,
    peer: IpAddr,
    incoming: http::Request<Incoming>,
) -> Response<Body> {
    let (head, body) = incoming.into_parts();
    let fleet = worker.fleet();
    let Some(chain) = chain_of(&fleet, head.uri.path()) else {
        let mut response = Box::pin(early::refuse(&worker, &Problem::UnknownChain, &head, body, id)).await;
        finish_head(&worker, id, &mut response);
        return response;
    };
    let now = crate::clock::unix_ms();
    let mut visit = Visit::begin(&worker, chain, id, now);
    let arrival = Arrival { peer, uri: &head.uri, headers: &head.headers };
    let mut response = match identify(&worker.app, chain, &arrival, now) {
        Ok(caller) => visit.answer(id, &head, body, caller.as_ref()).await,
        Err(problem) => {
            visit.note(&problem);
            // Rare: boxed, so that a served request's future stays small.
            Box::pin(early::refuse(&worker, &problem, &head, body, id)).await
        }
    };
    finish_head(&worker, id, &mut response);
    visit.end(response.status());
    response
}

/// Serves a message of a client's socket; the answer is what the same body over HTTP would have been answered.
pub(crate) async fn serve_message(
    worker: &Worker,
    chain: &Arc<Chain>,
    id: RequestId,
    archive: bool,
    caller: Option<&Caller>,
    prefer: Option<u32>,
    body: &Bytes,
) -> Response<Body> {
    let mut visit = Visit::begin(worker, chain, id, crate::clock::unix_ms());
    let response = match intake::hold(worker, body.len(), visit.deadline()).await {
        Ok(_held) => {
            let mut request = visit.new_request(id, Codings::IDENTITY, archive);
            request.prefer = prefer;
            // The socket itself holds a slot.
            let response = visit.enveloped(&mut request, caller, Hold::Nothing, body, id).await;
            visit.keep_story(request);
            response
        }
        Err(problem) => visit.problem(&problem, None, id),
    };
    visit.end(response.status());
    response
}

/// `/<chain>`, `/<chain>/` or `/<chain>/<client key>`.
pub(crate) fn chain_of<'a>(fleet: &'a Fleet, path: &str) -> Option<&'a Arc<Chain>> {
    let path = path.strip_prefix('/')?;
    let (name, rest) = path.split_once('/').unwrap_or((path, ""));
    if rest.contains('/') {
        return None;
    }
    fleet.chain(name).or_else(|| fleet.chain(&intake::percent_decoded(name)?))
}

pub(crate) fn wants_archive(query: Option<&str>) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair == "archive=true"))
}

/// Admits the calls, and answers them.
async fn enveloped(
    request: &mut Request<'_>,
    caller: Option<&Caller>,
    hold: Hold,
    envelope: &Envelope,
    body: &Bytes,
    id: RequestId,
) -> Response<Body> {
    let admitted = match caller {
        // Boxed, so that a request without a clients file does not carry it.
        Some(caller) => match Box::pin(admission::admit(request, caller, hold, envelope, body)).await {
            Ok(admitted) => Some(admitted),
            Err(problem) => return admission::refuse(request, &problem, envelope, body, id),
        },
        None => None,
    };
    let mut response = match envelope {
        Envelope::Single(call) => single(request, call, body, id).await,
        // Boxed, so that the future of a single call stays small.
        Envelope::Batch(items) => Box::pin(batch(request, items, body, id)).await,
    };
    if let Some(admitted) = admitted {
        admitted.onto(&mut response);
    }
    response
}

fn malformed_body(
    request: &Request<'_>,
    malformed: &Malformed,
    body: &[u8],
    id: RequestId,
) -> Response<Body> {
    let problem = Problem::Malformed(malformed.clone());
    request.story.borrow_mut().reason = Some(problem.reason());
    problem.respond(malformed.id(body), id, crate::clock::unix_ms())
}

async fn single(request: &Request<'_>, call: &Call, body: &Bytes, id: RequestId) -> Response<Body> {
    let (outcome, served) = call::serve(request, call, body).await;
    let mut response = match outcome {
        Ok(_) if call.is_notification() => no_content(),
        Ok(answer) => pass_on(answer, request.worker.answer_head.clone()),
        Err(problem) => {
            request.story.borrow_mut().reason = Some(problem.reason());
            problem.respond(call.id(body), id, crate::clock::unix_ms())
        }
    };
    expose(request, served.by.as_slice(), served.attempts, &mut response);
    response
}

async fn batch(
    request: &Request<'_>,
    items: &[Result<Call, Malformed>],
    body: &Bytes,
    id: RequestId,
) -> Response<Body> {
    let (merged, tally) = batch::serve(request, items, body).await;
    let mut response = match merged {
        Merged::Untouched(answer)
            if items.iter().all(|item| item.as_ref().is_ok_and(Call::is_notification)) =>
        {
            drop(answer);
            no_content()
        }
        Merged::Untouched(answer) => pass_on(answer, request.worker.answer_head.clone()),
        Merged::Slots(slots) => from_slots(request, &slots, items, body, id),
    };
    expose(request, &tally.by, tally.attempts, &mut response);
    response
}

fn from_slots(
    request: &Request<'_>,
    slots: &[Slot],
    items: &[Result<Call, Malformed>],
    body: &[u8],
    id: RequestId,
) -> Response<Body> {
    let now = crate::clock::unix_ms();
    let (text, problem) = batch::write(slots, |at| id_of(&items[at], body), id, now);
    if text == b"[]" {
        return no_content();
    }
    match problem {
        None => json(StatusCode::OK, text),
        Some(problem) => {
            request.story.borrow_mut().reason = Some(problem.reason());
            problem.respond_with(text, now)
        }
    }
}

/// One error for a call, one per id for a batch.
fn refused(problem: &Problem, envelope: &Envelope, body: &[u8], id: RequestId) -> Response<Body> {
    let now = crate::clock::unix_ms();
    let items = match envelope {
        Envelope::Single(call) => return problem.respond(call.id(body), id, now),
        Envelope::Batch(items) => items,
    };
    let slots: Vec<Slot> = items.iter().map(|item| Slot::refused(item, problem)).collect();
    let (text, _) = batch::write(&slots, |at| id_of(&items[at], body), id, now);
    if text == b"[]" { problem.respond(None, id, now) } else { problem.respond_with(text, now) }
}

/// The id that an item of a batch is answered with, as the client wrote it.
fn id_of(item: &Result<Call, Malformed>, body: &[u8]) -> Option<Vec<u8>> {
    let id = match item {
        Ok(call) => call.id(body),
        Err(malformed) => malformed.id(body),
    };
    id.map(<[u8]>::to_vec)
}

fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The upstream's status and bytes, untouched. Of its headers only those of the content are put over `head`.
pub(crate) fn pass_on(answer: Box<Answer>, mut head: HeaderMap) -> Response<Body> {
    let answer = *answer;
    let json = HeaderValue::from_static("application/json");
    head.insert(CONTENT_TYPE, answer.content_type.unwrap_or(json));
    if let Some(coding) = answer.coding {
        head.insert(CONTENT_ENCODING, coding);
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status;
    *response.headers_mut() = head;
    let mut held = answer.held;
    *response.body_mut() = if answer.rest.is_none() && held.len() <= 1 {
        Body::Full(held.pop_front())
    } else {
        Body::Answer(Box::new(Relay { held, rest: answer.rest, length: answer.length }))
    };
    response
}

/// Tells who answered: for a batch, each endpoint that did.
fn expose(request: &Request<'_>, by: &[u16], attempts: u32, response: &mut Response<Body>) {
    if !request.worker.app.settings.expose_routing {
        return;
    }
    response.headers_mut().insert(ATTEMPTS, HeaderValue::from(attempts));
    let names: Vec<&str> = by.iter().map(|index| &*request.chain.at(*index).id).collect();
    if let (false, Ok(names)) = (names.is_empty(), HeaderValue::from_str(&names.join(", "))) {
        response.headers_mut().insert(ENDPOINT, names);
    }
}

/// What every answer on a chain route carries.
pub(crate) fn finish_head(worker: &Worker, id: RequestId, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    // An answer that was passed on began with these headers: putting a value into its place is cheaper than growing a map.
    if let Some(place) = headers.get_mut(REQUEST_ID) {
        *place = id.to_header();
        return;
    }
    let own = std::mem::replace(headers, worker.answer_head.clone());
    if !own.contains_key(CONTENT_TYPE) {
        headers.remove(CONTENT_TYPE);
    }
    headers.extend(own);
    headers.insert(REQUEST_ID, id.to_header());
}

/// The headers that the usual answer has, to be filled in by [`finish_head`].
pub(crate) fn answer_head(cors: &Cors) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    cors.insert(&mut headers);
    headers.insert(REQUEST_ID, HeaderValue::from_static(""));
    headers
}
