//! A single call: what is sent for it, and what its answer still needs before the client gets it.

mod transaction;

use crate::exchange::{Answer, Ask};
use crate::hunt::{End, Hunt, Step};
use crate::reply::Problem;
use crate::request::Request;
use crate::route::{self, BlockWanted, FilterUse, Need, Safety, block_wanted, filter, log_range};
use crate::upstream::Codings;
use bytes::Bytes;
use detect::{Detail, Verdict};
use jsonrpc::Call;
use ledger::Cost;
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// Who answered, and after how many attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Served {
    pub(crate) by: Option<u16>,
    pub(crate) attempts: u32,
}

/// Serves one call found in `body`.
pub(crate) async fn serve(
    request: &Request<'_>,
    call: &Call,
    body: &Bytes,
) -> (Result<Box<Answer>, Problem>, Served) {
    let method = call.method(body);
    let need = route::need(method, request.archive);
    request.story.borrow_mut().asked.push_str(method.get(..method.len().min(64)).unwrap_or(""));
    let mut hunt = Hunt::new(request, need, method, call.params(body));
    let sent = match pin(request, call, body, &mut hunt, need) {
        Ok(sent) => sent,
        Err(problem) => return (Err(problem), Served::default()),
    };
    if method == "eth_getLogs"
        && request.chain.endpoints.iter().any(|endpoint| endpoint.max_block_range.is_some())
    {
        log_range(call.params(body), request.chain.head.get()).into_iter().for_each(|range| hunt.span(range));
    }
    let whole = need.filter == FilterUse::Makes || need.safety == Safety::Transaction;
    let ask = Ask {
        body: sent,
        method: Some(method),
        batch: false,
        notification: call.is_notification(),
        codings: if whole { Codings::IDENTITY } else { request.codings },
        whole,
    };
    let cost = Cost { requests: 1, units: request.chain.tables.costs.cost(method) };
    let outcome = search(request, &mut hunt, &ask, cost, call, body).await;
    (outcome, Served { by: hunt.last, attempts: hunt.asked })
}

async fn search(
    request: &Request<'_>,
    hunt: &mut Hunt<'_>,
    ask: &Ask<'_>,
    cost: Cost,
    call: &Call,
    body: &Bytes,
) -> Result<Box<Answer>, Problem> {
    loop {
        let picked = match hunt.next(cost).await {
            Ok(picked) => picked,
            Err(end) => return from_end(request, end, call, body),
        };
        match hunt.ask(picked, ask).await {
            Ok(Step::Again | Step::Partly(_)) => {}
            Ok(Step::Done(answer)) if is_missing(request, hunt, &answer) => hunt.lacks(answer),
            Ok(Step::Done(answer)) => return finish(request, hunt, ask, call, body, answer).await,
            Err(end) => return from_end(request, end, call, body),
        }
    }
}

fn from_end(request: &Request<'_>, end: End, call: &Call, body: &[u8]) -> Result<Box<Answer>, Problem> {
    match end {
        End::Answer(answer) => Ok(answer),
        End::Problem(Problem::NoLiveEndpoint) => {
            remembered(request, call, body).ok_or(Problem::NoLiveEndpoint)
        }
        End::Problem(problem) => Err(problem),
        End::Split => Err(Problem::Internal),
    }
}

/// What the endpoints said when they refused this method before, with this call's id.
fn remembered(request: &Request<'_>, call: &Call, body: &[u8]) -> Option<Box<Answer>> {
    let now = crate::clock::unix_ms();
    let method = call.method(body);
    let refusal =
        |endpoint: &crate::fleet::Endpoint| request.chain.methods.refusal(endpoint.number, method, now);
    let stored = request.chain.endpoints.iter().find_map(|endpoint| match refusal(endpoint)? {
        crate::fleet::Refusal::Unsupported(stored) => Some(stored),
        crate::fleet::Refusal::Limited { .. } => None,
    })?;
    let id = call.id(body).unwrap_or(b"null");
    let text = match stored.id {
        Some(at) => jsonrpc::with_id(&stored.body, at, id).into(),
        None => stored.body,
    };
    let mut answer = Answer::complete(text, stored.judgement);
    answer.status = stored.status;
    Some(Box::new(answer))
}

/// The body to send. A call about a filter goes to the endpoint that made it, with that endpoint's id.
fn pin(
    request: &Request<'_>,
    call: &Call,
    body: &Bytes,
    hunt: &mut Hunt<'_>,
    need: Need,
) -> Result<Bytes, Problem> {
    if need.filter != FilterUse::Uses {
        return Ok(body.clone());
    }
    let (tag, params) = call.params(body).and_then(filter::unmark).ok_or(Problem::FilterNotFound)?;
    let mut endpoints = (0u16..).zip(&request.chain.endpoints);
    let (index, _) =
        endpoints.find(|(_, endpoint)| endpoint.filter_tag == tag).ok_or(Problem::FilterNotFound)?;
    hunt.pin(index);
    let id = call.id(body).map(String::from_utf8_lossy);
    let mut sent = Vec::with_capacity(body.len());
    call.write_with(body, id.as_deref(), Some(&params), &mut sent);
    Ok(sent.into())
}

/// A node that is a block behind answers null for the newest block a client was told of: others have it.
fn is_missing(request: &Request<'_>, hunt: &Hunt<'_>, answer: &Answer) -> bool {
    if answer.rest.is_some() || answer.held_bytes > 256 || !hunt.method.starts_with("eth_getBlock") {
        return false;
    }
    let BlockWanted::Number(block) = block_wanted(hunt.method, hunt.params) else {
        return false;
    };
    block <= request.chain.told.get() && result_of(&answer.whole()).is_some_and(|r| r == "null")
}

async fn finish(
    request: &Request<'_>,
    hunt: &Hunt<'_>,
    ask: &Ask<'_>,
    call: &Call,
    body: &Bytes,
    mut answer: Box<Answer>,
) -> Result<Box<Answer>, Problem> {
    if hunt.method == "eth_blockNumber" {
        heard_block(request, hunt, &answer);
    }
    if ask.whole && answer.judgement.verdict == Verdict::Ok && hunt.method != "eth_sendRawTransaction" {
        mark_filter(request, hunt, &mut answer);
    }
    let detail = answer.judgement.detail;
    if hunt.maybe_done && matches!(detail, Detail::AlreadyKnown | Detail::NonceTooLow) {
        return Ok(Box::pin(transaction::resolve(request, call, body, answer)).await);
    }
    Ok(answer)
}

/// A client was told of a block: whoever asks for it next must get it.
fn heard_block(request: &Request<'_>, hunt: &Hunt<'_>, answer: &Answer) {
    let Some(block) = answer.small().and_then(|text| health::read_block(&text)) else { return };
    request.chain.told.raise(block);
    if let Some(index) = hunt.last {
        request.chain.at(index).state.saw_block(block);
    }
}

/// The id of a new filter gets the endpoint's digits, so that later calls find it.
fn mark_filter(request: &Request<'_>, hunt: &Hunt<'_>, answer: &mut Answer) {
    let (text, Some(index)) = (answer.whole(), hunt.last) else { return };
    let Some(result) = result_of(&text) else { return };
    let Some(marked) = filter::mark(result.as_bytes(), &request.chain.at(index).filter_tag) else { return };
    let start = result.as_ptr().addr() - text.as_ptr().addr();
    answer.replace(jsonrpc::with_id(&text, start..start + result.len(), &marked).into());
}

/// The raw `result` of an answer.
pub(crate) fn result_of(text: &[u8]) -> Option<&str> {
    #[derive(serde::Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        result: &'a RawValue,
    }
    serde_json::from_slice::<Raw<'_>>(text).ok().map(|raw| raw.result.get())
}

impl Answer {
    /// A complete answer with status 200 to one call, held in one piece.
    pub(crate) fn complete(text: Bytes, judgement: detect::Judgement) -> Answer {
        Answer {
            status: http::StatusCode::OK,
            content_type: Some(http::HeaderValue::from_static("application/json")),
            coding: None,
            held_bytes: text.len(),
            length: Some(text.len() as u64),
            held: VecDeque::from([text]),
            rest: None,
            judgement,
            exhausted: None,
            batch: false,
            items: Vec::new(),
        }
    }

    /// The text of a small, complete, uncoded answer.
    pub(crate) fn small(&self) -> Option<Bytes> {
        (self.rest.is_none() && self.coding.is_none() && self.held_bytes <= 1024).then(|| self.whole())
    }

    /// Puts other text in place of a complete, decoded answer.
    fn replace(&mut self, text: Bytes) {
        self.held_bytes = text.len();
        self.length = Some(text.len() as u64);
        self.held = VecDeque::from([text]);
    }
}
