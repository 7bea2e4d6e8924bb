//! A batch: one question upstream, an answer per call. Calls that were refused, or got no answer, are asked
//! elsewhere without the others; what fits nowhere whole is split.

mod merge;
mod plan;

use crate::call;
use crate::exchange::Answer;
use crate::fleet::Refusal;
use crate::hunt::{End, Hunt, Step};
use crate::record::record_item;
use crate::reply::Problem;
use crate::request::Request;
use crate::route::{FilterUse, Need, Safety, is_known, need_of};
use bytes::Bytes;
use detect::{Detail, Item, Verdict};
use jsonrpc::{Call, Envelope, Malformed};
use ledger::Cost;
use plan::Plan;
use std::cell::RefCell;
use std::collections::HashMap;

pub(crate) use merge::{Slot, write};

/// So many calls of methods that somebody refused go their own ways, one after the other. Of more of them a batch that is
/// refused once and asked elsewhere is the shorter way.
const MOST_APART: usize = 8;

/// What a whole batch came to.
pub(crate) enum Merged {
    /// The upstream's answer as it came: all calls are in it, in the client's order.
    Untouched(Box<Answer>),
    /// An answer or a problem per call; notifications have none.
    Slots(Vec<Slot>),
}

/// Who answered calls of a batch, each once, and after how many attempts in all.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) by: Vec<u16>,
    pub(crate) attempts: u32,
}

/// A batch and what is known of its calls so far.
struct Batch<'a> {
    request: &'a Request<'a>,
    body: &'a Bytes,
    items: &'a [Result<Call, Malformed>],
    tally: RefCell<Tally>,
}

/// Serves all calls of a batch found in `body`.
pub(crate) async fn serve(
    request: &Request<'_>,
    items: &[Result<Call, Malformed>],
    body: &Bytes,
) -> (Merged, Tally) {
    let batch = Batch { request, body, items, tally: RefCell::default() };
    let mut slots: Vec<Slot> = items.iter().map(Slot::before).collect();
    let (together, alone) = batch.divide();
    if let Some(answer) = batch.part(together, &mut slots).await {
        return (Merged::Untouched(answer), batch.tally.into_inner());
    }
    for at in alone {
        batch.alone(at, &mut slots).await;
    }
    request.story.borrow_mut().asked = format!("batch of {}", items.len());
    (Merged::Slots(slots), batch.tally.into_inner())
}

impl Batch<'_> {
    /// Calls that only read are asked together; each other one goes its own way, so that it is repeated only where
    /// that is safe, filters are found again, and nobody is asked for a method that it has just refused.
    fn divide(&self) -> (Vec<usize>, Vec<usize>) {
        let readable = (0..self.items.len()).filter(|at| self.items[*at].is_ok());
        let (mut together, mut alone): (Vec<usize>, Vec<usize>) = readable.partition(|at| {
            let need = self.items[*at].as_ref().ok().map(|call| need_of(call, self.body, false));
            need.is_some_and(|need| need.safety == Safety::Repeatable && need.filter == FilterUse::None)
        });
        let refused = self.refused(&together);
        if refused.len() <= MOST_APART {
            together.retain(|at| !refused.contains(at));
            alone.extend(refused);
        }
        (together, alone)
    }

    /// Those of the calls at `open` whose method an endpoint does not serve, as it said.
    fn refused(&self, open: &[usize]) -> Vec<usize> {
        let (chain, now) = (self.request.chain, crate::clock::unix_ms());
        if chain.methods.is_empty() {
            return Vec::new();
        }
        let mut refusals: HashMap<&str, bool> = HashMap::new();
        let mut is_refused = |at: &usize| {
            let Ok(call) = &self.items[*at] else { return false };
            let method = call.method(self.body);
            *refusals.entry(method).or_insert_with(|| {
                let refusal = |number| chain.methods.refusal(number, method, now);
                let unsupported = |number| matches!(refusal(number), Some(Refusal::Unsupported(_)));
                is_known(method) && chain.endpoints.iter().any(|endpoint| unsupported(endpoint.number))
            })
        };
        open.iter().copied().filter(|at| is_refused(at)).collect()
    }

    async fn alone(&self, at: usize, slots: &mut [Slot]) {
        let Ok(call) = &self.items[at] else { return };
        let mut sent = Vec::new();
        let id = call.id(self.body).map(String::from_utf8_lossy);
        call.write(self.body, id.as_deref(), &mut sent);
        let sent = Bytes::from(sent);
        let Ok(Envelope::Single(call)) = jsonrpc::parse(&sent, 1) else { return };
        let (outcome, served) = call::serve(self.request, &call, &sent).await;
        self.tally.borrow_mut().add(served.by, served.attempts);
        if !call.is_notification() {
            slots[at] = match outcome {
                Ok(answer) if answer.rest.is_none() && answer.coding.is_none() => {
                    Slot::Answered(answer.whole())
                }
                Ok(_) => Slot::Failed(Problem::AllAttemptsFailed),
                Err(problem) => Slot::Failed(problem),
            };
        }
    }

    /// Serves the calls at `open`. Some: the whole batch was answered and may pass as it is.
    async fn part(&self, mut open: Vec<usize>, slots: &mut [Slot]) -> Option<Box<Answer>> {
        let mut hunt = Hunt::new(self.request, self.need(), "", None);
        let mut too_large = false;
        while !open.is_empty() {
            let picked = match hunt.next(self.cost(&open)).await {
                Ok(picked) => picked,
                Err(end) => return self.give_up(end, &open, too_large, slots).await,
            };
            let plan = Plan::new(self.items, self.body, &open);
            let before = hunt.asked;
            let step = hunt.ask(picked, &plan.ask()).await;
            let answered = matches!(step, Ok(Step::Done(_) | Step::Partly(_)) | Err(End::Answer(_)));
            self.tally.borrow_mut().add(hunt.last.filter(|_| answered), hunt.asked - before);
            match step {
                Ok(Step::Done(answer)) if plan.untouched && merge::passes(&plan, &answer) => {
                    return Some(answer);
                }
                Ok(Step::Done(answer) | Step::Partly(answer)) => {
                    too_large |= answer.judgement.detail == Detail::BatchTooLarge;
                    self.sort_out(&plan, &answer, hunt.last, &mut open, slots);
                }
                Ok(Step::Again) => {}
                Err(end) => return self.give_up(end, &open, too_large, slots).await,
            }
        }
        None
    }

    /// Refusals of a call's method are remembered as if the call had come alone. Of a success there is nothing to remember.
    fn remember(&self, at: usize, by: u16, answer: &Answer, text: &Bytes, item: &Item) {
        let (Ok(call), false) = (&self.items[at], item.judgement.verdict == Verdict::Ok) else { return };
        let method = call.method(self.body);
        if is_known(method) {
            record_item(self.request, by, method, answer, (text, item));
        }
    }

    /// Puts the items of an answer that are final into their slots; the others stay open.
    fn sort_out(
        &self,
        plan: &Plan,
        answer: &Answer,
        by: Option<u16>,
        open: &mut Vec<usize>,
        slots: &mut [Slot],
    ) {
        if plan.silent {
            open.clear();
            return;
        }
        let text = answer.whole();
        if let ([item], false) = (&answer.items[..], text.trim_ascii_start().starts_with(b"[")) {
            self.refusal_of_all(&text, item, open, slots);
        }
        for item in &answer.items {
            let Some(at) = plan.position(&text, item) else { continue };
            if let Some(by) = by {
                self.remember(at, by, answer, &text, item);
            }
            let answered = Slot::of(&text, item, self.id(at));
            match final_here(item) {
                Final::Yes => slots[at] = answered,
                Final::UnlessBetter => slots[at].suggest(answered),
                Final::No => {}
            }
        }
        open.retain(|at| slots[*at].is_open());
    }

    /// One object for a whole batch: if it refuses, it refuses each call.
    fn refusal_of_all(&self, text: &Bytes, item: &Item, open: &[usize], slots: &mut [Slot]) {
        if let (Final::UnlessBetter, true) = (final_here(item), item.id.is_some()) {
            for at in open {
                slots[*at].suggest(Slot::of(text, item, self.id(*at)));
            }
        }
    }

    /// The search ended: what has no answer gets the problem, or is tried in halves.
    async fn give_up(
        &self,
        end: End,
        open: &[usize],
        too_large: bool,
        slots: &mut [Slot],
    ) -> Option<Box<Answer>> {
        match end {
            End::Split | End::Problem(_) if open.len() > 1 && (too_large || matches!(end, End::Split)) => {
                self.halves(open, slots).await;
            }
            End::Answer(answer) if open.len() == self.items.len() => return Some(answer),
            End::Problem(problem) => fail(&problem, open, slots),
            End::Answer(_) | End::Split => fail(&Problem::AllAttemptsFailed, open, slots),
        }
        None
    }

    async fn halves(&self, open: &[usize], slots: &mut [Slot]) {
        let (left, right) = open.split_at(open.len() / 2);
        Box::pin(self.part_only(left, slots)).await;
        Box::pin(self.part_only(right, slots)).await;
    }

    /// A part of a batch never passes untouched: its answers go into their slots.
    async fn part_only(&self, open: &[usize], slots: &mut [Slot]) {
        if self.part(open.to_vec(), slots).await.is_some() {
            fail(&Problem::AllAttemptsFailed, open, slots);
        }
    }

    fn need(&self) -> Need {
        Need {
            safety: Safety::Repeatable,
            filter: FilterUse::None,
            known: false,
            archive: self.request.archive,
        }
    }

    fn cost(&self, open: &[usize]) -> Cost {
        let calls = open.iter().filter_map(|at| self.items[*at].as_ref().ok());
        let units = calls.map(|call| self.request.chain.tables.costs.cost(call.method(self.body))).sum();
        Cost { requests: u32::try_from(open.len()).unwrap_or(u32::MAX), units }
    }

    fn id(&self, at: usize) -> &[u8] {
        self.items[at].as_ref().ok().and_then(|call| call.id(self.body)).unwrap_or(b"null")
    }
}

impl Tally {
    fn add(&mut self, by: Option<u16>, attempts: u32) {
        self.attempts += attempts;
        self.by.extend(by.filter(|by| !self.by.contains(by)));
    }
}

enum Final {
    Yes,
    /// It stands if nobody else does better.
    UnlessBetter,
    No,
}

fn final_here(item: &Item) -> Final {
    match item.judgement.verdict {
        Verdict::Ok | Verdict::ClientFault => Final::Yes,
        Verdict::Capability => Final::UnlessBetter,
        Verdict::RateLimited
        | Verdict::QuotaExhausted
        | Verdict::Auth
        | Verdict::Syncing
        | Verdict::UpstreamFault => Final::No,
    }
}

fn fail(problem: &Problem, open: &[usize], slots: &mut [Slot]) {
    for at in open {
        slots[*at].suggest(Slot::Failed(problem.clone()));
        slots[*at].settle();
    }
}
