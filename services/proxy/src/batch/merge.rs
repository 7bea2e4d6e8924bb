//! How the answers of several endpoints become the one answer of a batch, in the client's order.

use super::plan::Plan;
use crate::exchange::Answer;
use crate::reply::Problem;
use crate::why::RequestId;
use bytes::Bytes;
use detect::{Item, Verdict};
use jsonrpc::{Call, Malformed};

/// What is known about one call of a batch.
#[derive(Clone, Debug)]
pub(crate) enum Slot {
    /// Nothing yet.
    Open,
    /// A notification: it gets no answer.
    Silent,
    /// The answer with the client's id.
    Answered(Bytes),
    /// The answer unless a better one comes.
    Suggested(Bytes),
    Failed(Problem),
}

impl Slot {
    /// Before anybody was asked.
    pub(super) fn before(item: &Result<Call, Malformed>) -> Slot {
        match item {
            Ok(call) if call.is_notification() => Slot::Silent,
            Ok(_) => Slot::Open,
            Err(malformed) => Slot::Failed(Problem::Malformed(malformed.clone())),
        }
    }

    /// When nobody is asked because of `problem`.
    pub(crate) fn refused(item: &Result<Call, Malformed>, problem: &Problem) -> Slot {
        let before = Slot::before(item);
        if before.is_open() { Slot::Failed(problem.clone()) } else { before }
    }

    /// The answer in `item` with the id that the client gave.
    pub(super) fn of(text: &Bytes, item: &Item, id: &[u8]) -> Slot {
        let whole = text.slice(item.span.clone());
        let start = item.span.start;
        Slot::Answered(match &item.id {
            Some(at) if text[at.clone()] == *id => whole,
            Some(at) => jsonrpc::with_id(&whole, at.start - start..at.end - start, id).into(),
            None => whole,
        })
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self, Slot::Open | Slot::Suggested(_))
    }

    /// Takes `slot` for want of anything better; the first suggestion stands.
    pub(super) fn suggest(&mut self, slot: Slot) {
        if let Slot::Open = self {
            *self = if let Slot::Answered(text) = slot { Slot::Suggested(text) } else { slot };
        }
    }

    /// Nobody else will be asked.
    pub(super) fn settle(&mut self) {
        if let Slot::Suggested(text) = self {
            *self = Slot::Answered(std::mem::take(text));
        }
    }
}

/// Whether an answer to a batch that was sent as it is may pass as it is: every call is answered well, in order.
/// An answer too large to be held passes unseen.
pub(super) fn passes(plan: &Plan, answer: &Answer) -> bool {
    if answer.rest.is_some() || plan.silent {
        return true;
    }
    let text = answer.whole();
    let fine = |item: &Item| matches!(item.judgement.verdict, Verdict::Ok | Verdict::ClientFault);
    answer.items.len() == plan.asked.len()
        && text.first() == Some(&b'[')
        && answer
            .items
            .iter()
            .zip(&plan.asked)
            .all(|(item, at)| fine(item) && plan.position(&text, item) == Some(*at))
}

/// The body of the answer, and the problem that stands for all if there is nothing but problems of ours.
pub(crate) fn write(
    slots: &[Slot],
    id: impl Fn(usize) -> Option<Vec<u8>>,
    request: RequestId,
    now: u64,
) -> (Vec<u8>, Option<Problem>) {
    let mut texts: Vec<Bytes> = Vec::with_capacity(slots.len());
    let mut answered = false;
    let mut first = None;
    for (at, slot) in slots.iter().enumerate() {
        match slot {
            Slot::Silent => {}
            Slot::Answered(text) | Slot::Suggested(text) => {
                answered = true;
                texts.push(text.clone());
            }
            Slot::Open | Slot::Failed(_) => {
                let problem =
                    if let Slot::Failed(problem) = slot { problem } else { &Problem::AllAttemptsFailed };
                answered |= matches!(problem, Problem::Malformed(_));
                first.get_or_insert_with(|| problem.clone());
                let mut text = Vec::with_capacity(256);
                problem.write(id(at).as_deref(), request, now, &mut text);
                texts.push(text.into());
            }
        }
    }
    let mut body = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum::<usize>() + 2);
    jsonrpc::array(&mut body, texts.iter().map(|text| &text[..]));
    (body, first.filter(|_| !answered))
}
