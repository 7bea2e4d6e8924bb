//! Whether the calls of a request may be made: its methods, then all its caller's limits at once. A batch is all or
//! nothing. Decides what a refusal looks like; never who is asking.

use crate::caller::Caller;
use crate::net::Body;
use crate::reply::{Problem, rate_limit};
use crate::request::Request;
use crate::why::RequestId;
use clients::Standing;
use http::Response;
use jsonrpc::{Call, Envelope, Malformed};
use ledger::Cost;
use store::Permit;

/// Whether a request takes a concurrency slot of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    Slot,
    Nothing,
}

/// What an admitted request brings back: to be said to the client, and to be held as long as its answer lasts.
#[derive(Default)]
pub(super) struct Admitted {
    standing: Option<Standing>,
    permit: Option<Permit>,
}

/// Admits the calls in `envelope`. What is malformed is not charged.
pub(super) async fn admit(
    request: &mut Request<'_>,
    caller: &Caller,
    hold: Hold,
    envelope: &Envelope,
    body: &[u8],
) -> Result<Admitted, Problem> {
    let costs = &request.chain.tables.costs;
    let mut cost = Cost::requests(0);
    for call in calls(envelope) {
        let method = call.method(body);
        if !caller.may_call(method) {
            return Err(Problem::Forbidden);
        }
        cost.requests += 1;
        cost.units = cost.units.saturating_add(costs.cost(method));
    }
    if cost.requests == 0 {
        return Ok(Admitted::default());
    }
    let Some(charge) = caller.charge(cost, hold == Hold::Slot).await? else { return Ok(Admitted::default()) };
    request.toll = Some(caller.toll(charge.receipt));
    Ok(Admitted { standing: charge.standing, permit: charge.permit })
}

fn calls(envelope: &Envelope) -> impl Iterator<Item = &Call> {
    let (single, items): (_, &[Result<Call, Malformed>]) = match envelope {
        Envelope::Single(call) => (Some(call), &[]),
        Envelope::Batch(items) => (None, items),
    };
    single.into_iter().chain(items.iter().filter_map(|item| item.as_ref().ok()))
}

/// The answer to calls that may not be made.
pub(super) fn refuse(
    request: &Request<'_>,
    problem: &Problem,
    envelope: &Envelope,
    body: &[u8],
    id: RequestId,
) -> Response<Body> {
    request.story.borrow_mut().reason = Some(problem.reason());
    request.worker.metrics.refused(request.chain, problem.reason());
    super::refused(problem, envelope, body, id)
}

impl Admitted {
    /// Puts the caller's standing into the answer's head, and the slot into its body.
    pub(super) fn onto(self, response: &mut Response<Body>) {
        if let Some(standing) = &self.standing {
            rate_limit(standing, response.headers_mut());
        }
        if let Some(permit) = self.permit {
            let body = std::mem::replace(response.body_mut(), Body::empty());
            *response.body_mut() = body.holding(permit);
        }
    }
}
