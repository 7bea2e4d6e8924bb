//! What an ended attempt does to everything that outlives it: health, parks, ceilings, counts. The one place.
//!
//! It decides nothing about this request; that is `retry`.

use crate::exchange::{Answer, Outcome};
use crate::fleet::{Chain, Endpoint, Stored};
use crate::request::Request;
use crate::retry::Ended;
use crate::worker::Worker;
use bytes::Bytes;
use detect::{Detail, Item, Judgement, Protocol, Scope, Verdict};
use ledger::{Cost, Evidence};
use rand::Rng;
use recovery::Kind;

/// How long a method that is limited by itself is kept away when the provider names no wait.
const METHOD_LIMITED_MS: u64 = 1_000;
/// The longest time that a limited method is kept away.
const METHOD_LIMITED_MOST_MS: u64 = 5 * 60 * 1000;

/// One attempt, as it ended.
pub(crate) struct Attempt<'a> {
    pub(crate) index: u16,
    pub(crate) method: &'a str,
    pub(crate) known_method: bool,
    pub(crate) cost: Cost,
    pub(crate) overflow: bool,
    /// Unix milliseconds.
    pub(crate) sent_at: u64,
    pub(crate) took: std::time::Duration,
    pub(crate) protocol: Protocol,
}

/// Where it happened.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) worker: &'a Worker,
    pub(crate) chain: &'a Chain,
}

impl<'a> At<'a> {
    fn of(request: &Request<'a>) -> At<'a> {
        At { worker: request.worker, chain: request.chain }
    }
}

/// Records what became of a WebSocket of ours, or of a call on it; `None`: it opened. What breaks a socket is not one
/// call's fault: it counts at once.
pub(crate) fn record_socket(at: At<'_>, attempt: &Attempt<'_>, ended: Option<&Ended>) {
    let now = crate::clock::unix_ms();
    let endpoint = at.chain.at(attempt.index);
    let change = match ended {
        None => endpoint.state.served_ws(attempt.sent_at, now),
        Some(Ended::Unreachable | Ended::Broken | Ended::TimedOut) => {
            endpoint.state.failed_ws(attempt.sent_at, now)
        }
        Some(Ended::Answered { judgement, .. }) => {
            endpoint.state.said(judgement.verdict);
            match judgement.verdict {
                Verdict::Ok | Verdict::ClientFault | Verdict::Capability => {
                    endpoint.account.gate.served(attempt.sent_at, now);
                    endpoint.state.served_ws(attempt.sent_at, now)
                }
                Verdict::RateLimited | Verdict::QuotaExhausted => {
                    limited(at, attempt, judgement, now);
                    None
                }
                Verdict::Auth => {
                    endpoint.state.suspect_key();
                    at.worker.app.wake_health();
                    None
                }
                Verdict::Syncing | Verdict::UpstreamFault => endpoint.state.failed_ws(attempt.sent_at, now),
            }
        }
    };
    tell_change(at, endpoint, change);
    if let Some(ended) = ended {
        count(at, attempt, ended);
    }
}

/// Records the end of an attempt. A failure that may be the request's own fault is only returned as a suspicion:
/// true means that it counts once somebody else has answered the same call.
pub(crate) fn record(request: &Request<'_>, attempt: &Attempt<'_>, ended: &Ended, outcome: &Outcome) -> bool {
    let at = At::of(request);
    count(at, attempt, ended);
    let now = crate::clock::unix_ms();
    match ended {
        Ended::Unreachable => {
            failed(at, attempt.index, attempt.sent_at, now);
            false
        }
        Ended::Broken | Ended::TimedOut => true,
        Ended::Answered { judgement, .. } => {
            if let (Outcome::Answered(answer), Verdict::Capability) = (outcome, judgement.verdict) {
                remember_refusal(at, attempt, answer, now);
            }
            if let Outcome::Answered(answer) = outcome
                && let Some(wait) = answer.exhausted
            {
                let wait = wait.as_millis().try_into().unwrap_or(u64::MAX);
                at.chain.at(attempt.index).account.gate.close(now.saturating_add(wait), now);
            }
            answered(at, attempt, judgement, now)
        }
    }
}

fn answered(at: At<'_>, attempt: &Attempt<'_>, judgement: &Judgement, now: u64) -> bool {
    let endpoint = at.chain.at(attempt.index);
    endpoint.state.said(judgement.verdict);
    match judgement.verdict {
        Verdict::Ok | Verdict::ClientFault | Verdict::Capability => {
            let change = endpoint.state.served(attempt.sent_at, now, attempt.took);
            tell_change(at, endpoint, change);
            endpoint.account.gate.served(attempt.sent_at, now);
            false
        }
        Verdict::RateLimited | Verdict::QuotaExhausted => {
            limited(at, attempt, judgement, now);
            false
        }
        Verdict::Auth => {
            // A firewall may dislike one payload: a probe has to confirm it.
            endpoint.state.suspect_key();
            at.worker.app.wake_health();
            false
        }
        Verdict::Syncing => {
            failed(at, attempt.index, attempt.sent_at, now);
            false
        }
        Verdict::UpstreamFault => true,
    }
}

fn limited(at: At<'_>, attempt: &Attempt<'_>, judgement: &Judgement, now: u64) {
    let endpoint = at.chain.at(attempt.index);
    match judgement.scope {
        Scope::Method if attempt.known_method => {
            method_limited(at, attempt.index, attempt.method, judgement, now);
        }
        Scope::Address => {
            at.worker.metrics.endpoint(at.chain, endpoint).hits[0].add(1);
            park(at, endpoint, Kind::Address, judgement, now);
        }
        Scope::Request | Scope::Sender | Scope::Method => {}
        Scope::Account | Scope::Endpoint => account_limited(at, attempt, judgement, now),
    }
}

fn method_limited(at: At<'_>, index: u16, method: &str, judgement: &Judgement, now: u64) {
    let wait =
        judgement.wait.map_or(METHOD_LIMITED_MS, |wait| wait.as_millis().try_into().unwrap_or(u64::MAX));
    let until = now.saturating_add(wait.clamp(METHOD_LIMITED_MS, METHOD_LIMITED_MOST_MS));
    at.chain.methods.limited(at.chain.at(index).number, method, until, now);
}

fn account_limited(at: At<'_>, attempt: &Attempt<'_>, judgement: &Judgement, now: u64) {
    let endpoint = at.chain.at(attempt.index);
    let quota = judgement.verdict == Verdict::QuotaExhausted;
    let kind =
        if quota { Kind::Quota { daily: judgement.detail == Detail::QuotaDaily } } else { Kind::Burst };
    endpoint.state.hit(now);
    at.worker.metrics.endpoint(at.chain, endpoint).hits[usize::from(quota)].add(1);
    let chance = at.worker.rng.borrow_mut().random();
    let evidence = Evidence {
        chance,
        sent_at: attempt.sent_at,
        requests: attempt.cost.requests,
        named_window_ms: judgement.window.map(|window| u64::from(window.seconds) * 1000),
        stated: judgement.window.and_then(|window| window.limit),
        probe: false,
        quota,
        overflow: attempt.overflow,
    };
    if let Some(decrease) = endpoint.account.gate.refused(&evidence, now) {
        tracing::info!(
            chain = %at.chain.name, endpoint = %endpoint.id, window_ms = decrease.window_ms,
            from = decrease.from, to = decrease.to, "ceiling lowered"
        );
        at.worker.metrics.endpoint(at.chain, endpoint).decreases.add(1);
    }
    if !attempt.overflow {
        park(at, endpoint, kind, judgement, now);
    }
}

fn park(at: At<'_>, endpoint: &Endpoint, kind: Kind, judgement: &Judgement, now: u64) {
    let jitter = at.worker.rng.borrow_mut().random();
    endpoint.park(at.chain, kind, judgement.wait, now, jitter);
    at.worker.app.wake_health();
}

fn count(at: At<'_>, attempt: &Attempt<'_>, ended: &Ended) {
    let endpoint = at.chain.at(attempt.index);
    let verdict = match ended {
        Ended::Answered { judgement, .. } => judgement.verdict,
        Ended::Unreachable | Ended::Broken | Ended::TimedOut => Verdict::UpstreamFault,
    };
    let counts = at.worker.metrics.endpoint(at.chain, endpoint);
    counts.attempts[attempt.protocol as usize][verdict as usize].add(1);
    counts.took.record(attempt.took);
    if let Ended::Answered { judgement, .. } = ended {
        at.worker.metrics.rule(judgement.rule);
    }
}

/// What an endpoint said to a method that it does not serve is said again when nobody serves it.
fn remember_refusal(at: At<'_>, attempt: &Attempt<'_>, answer: &Answer, now: u64) {
    if answer.judgement.detail == Detail::MethodUnsupported && attempt.known_method && answer.rest.is_none() {
        let id = answer.items.first().and_then(|item| item.id.clone());
        let stored = Stored { status: answer.status, body: answer.whole(), id, judgement: answer.judgement };
        let endpoint = at.chain.at(attempt.index);
        at.chain.methods.unsupported(endpoint.number, attempt.method, stored, now);
    }
}

/// What the endpoint at `index` said to one call of a batch about its `method`, which is known. Of the batch as a whole no
/// method can be told.
pub(crate) fn record_item(
    request: &Request<'_>,
    index: u16,
    method: &str,
    answer: &Answer,
    (text, item): (&Bytes, &Item),
) {
    let (at, now, judgement) = (At::of(request), crate::clock::unix_ms(), item.judgement);
    if judgement.verdict == Verdict::RateLimited && judgement.scope == Scope::Method {
        method_limited(at, index, method, &judgement, now);
    } else if judgement.detail == Detail::MethodUnsupported {
        let start = item.span.start;
        let id = item.id.as_ref().map(|id| id.start - start..id.end - start);
        // A slice would keep the whole batch as long as the refusal.
        let body = Bytes::copy_from_slice(&text[item.span.clone()]);
        let stored = Stored { status: answer.status, body, id, judgement };
        at.chain.methods.unsupported(at.chain.at(index).number, method, stored, now);
    }
}

/// Marks the endpoints whose failures `witness` has confirmed by answering the same call.
pub(crate) fn convict(request: &Request<'_>, suspects: &[(u16, u64)], witness: u16) {
    let now = crate::clock::unix_ms();
    for (suspect, begun) in suspects.iter().filter(|(suspect, _)| *suspect != witness) {
        failed(At::of(request), *suspect, *begun, now);
    }
}

fn failed(at: At<'_>, index: u16, begun: u64, now: u64) {
    let endpoint = at.chain.at(index);
    let change = endpoint.state.failed(begun, now);
    tell_change(at, endpoint, change);
}

fn tell_change(at: At<'_>, endpoint: &Endpoint, change: Option<health::Change>) {
    if let Some(change) = change {
        tracing::info!(chain = %at.chain.name, endpoint = %endpoint.id, ?change, "health changed");
        at.worker.app.wake_health();
    }
}
