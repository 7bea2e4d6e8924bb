//! Who is eligible for a call, and who of them is next.
//!
//! Reads the fleet and the accounts, changes nothing but the tokens it takes; chance comes from the caller.
//! Tiers in the order of roles; in a tier the best few of the kept order, by health, then by use.

#[doc(hidden)]
pub mod benchmark;
mod compare;
mod indices;
pub(crate) mod room;

pub(crate) use indices::Indices;

use crate::fleet::{Chain, Endpoint, FEW, Refusal, Tier};
use compare::{Candidate, best, level_newcomers, score};
use config::{Role, Selection};
use ledger::{Cost, Ticket};
use rand::Rng;
use std::sync::atomic::Ordering::Relaxed;
use store::Turn;

/// Tokens that are being fetched are here in about so many milliseconds.
const FETCH_MS: u64 = 5;

/// What the next attempt needs.
pub(crate) struct Wish<'a> {
    pub(crate) method: &'a str,
    pub(crate) known_method: bool,
    pub(crate) archive: bool,
    /// The endpoint must have this block: one known to stand below it is out.
    pub(crate) block: Option<u64>,
    /// Blocks that an `eth_getLogs` spans: an endpoint that takes fewer is out.
    pub(crate) range: Option<u64>,
    /// Only this endpoint will do.
    pub(crate) only: Option<u16>,
    /// A transaction that somebody was given already: private endpoints are out.
    pub(crate) given_away: bool,
    /// A call that may serve as a half-open trial.
    pub(crate) may_try: bool,
    /// Public endpoints may be asked (again).
    pub(crate) public: bool,
    pub(crate) cost: Cost,
    /// Tokens that are being fetched may be waited for.
    pub(crate) may_wait: bool,
    /// Since when this request waits for tokens.
    pub(crate) turn: Turn,
    /// Unix milliseconds.
    pub(crate) now: u64,
    pub(crate) tried: &'a Indices,
    pub(crate) policy: Policy,
}

/// How endpoints are compared: settings of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) selection: Selection,
    /// Ceilings hold back and weigh.
    pub(crate) throttling: bool,
    /// Blocks behind the best head that make an endpoint ineligible; 0: off.
    pub(crate) max_lag: u64,
}

/// Who is next.
pub(crate) enum Choice {
    Take {
        index: u16,
        ticket: Option<Ticket>,
    },
    /// Nobody in this tier has tokens, but somebody may have some in a moment: they are being fetched.
    Doubt,
    /// Live endpoints remain, all at their ceilings or parked.
    Saturated(Saturated),
    /// Nobody who could serve this is left.
    Nobody,
}

/// When saturation ends, and whether it is only our own estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saturated {
    /// The soonest opening, Unix milliseconds; now, if there is room that others who wait may leave over.
    pub(crate) at: u64,
    /// The soonest one that does not hang on others.
    pub(crate) opens: u64,
    /// The endpoint to overload if nothing opens in time: held back by an estimate alone, hit longest ago.
    pub(crate) overflow: Option<u16>,
    /// Tokens were short: a part of a batch may fit where the whole does not.
    pub(crate) tokens: bool,
    overflow_hit: u64,
}

/// Why an endpoint is not asked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    Tried,
    /// It cannot serve this call: no URL, not an archive, behind, a private endpoint asked too late.
    Unfit,
    Unhealthy,
    /// It said before that it does not serve the method.
    Unsupported,
    /// More than its ceiling ever allows at once.
    TooBig,
    /// It holds no tokens, and is not known to be at its ceiling.
    Doubt,
    /// Parked until then; `soft`: by our own guess.
    Parked {
        at: u64,
        soft: bool,
    },
    /// At its ceiling until then; `soft`: our own estimate.
    Dry {
        at: u64,
        soft: bool,
    },
    /// What room there is under its ceiling is needed by others, who wait longer.
    Behind {
        soft: bool,
    },
}

/// Chooses the next endpoint of `chain` and takes its tokens.
pub(crate) fn select(
    chain: &Chain,
    wish: &Wish<'_>,
    rng: &mut impl Rng,
    mut skipped: impl FnMut(u16, Skip),
) -> Choice {
    let mut full: Option<Saturated> = None;
    for tier in chain.tiers.iter().filter(|tier| wish.public || tier.role != Role::Public) {
        if let Some(choice) = from_tier(chain, tier, wish, rng, &mut skipped, &mut full) {
            return choice;
        }
    }
    full.map_or(Choice::Nobody, Choice::Saturated)
}

fn from_tier(
    chain: &Chain,
    tier: &Tier,
    wish: &Wish<'_>,
    rng: &mut impl Rng,
    skipped: &mut impl FnMut(u16, Skip),
    full: &mut Option<Saturated>,
) -> Option<Choice> {
    let mut order = tier.order.iter().map(|index| index.load(Relaxed));
    let mut doubt = false;
    loop {
        let mut few: [Option<Candidate>; FEW] = [None; FEW];
        let mut count = 0;
        for index in order.by_ref() {
            match check(chain, index, wish) {
                Ok(Fit::Trial) => return Some(Choice::Take { index, ticket: None }),
                Ok(Fit::Rank(rank)) => {
                    let in_flight = chain.at(index).state.in_flight();
                    few[count] = Some(Candidate { index, rank, score: 0.0, in_flight });
                    count += 1;
                }
                Err(skip) => note(chain, index, wish, skip, skipped, full),
            }
            if count == FEW {
                break;
            }
        }
        if count == 0 {
            return doubt.then_some(Choice::Doubt);
        }
        score(chain, &mut few, wish);
        level_newcomers(chain, &mut few, wish.now);
        while let Some(position) = best(&few, rng) {
            let Some(candidate) = few[position].take() else { break };
            match room::take(chain.at(candidate.index), wish) {
                Ok(ticket) => return Some(Choice::Take { index: candidate.index, ticket }),
                Err(skip) => {
                    doubt |= skip == Skip::Doubt && wish.may_wait;
                    note(chain, candidate.index, wish, skip, skipped, full);
                    if let (Some(full), false) = (full.as_mut(), matches!(skip, Skip::Behind { .. })) {
                        full.tokens = true;
                    }
                }
            }
        }
    }
}

enum Fit {
    /// Better ranks have smaller numbers.
    Rank(u8),
    /// Ejected, and its half-open trial is due and now ours.
    Trial,
}

fn check(chain: &Chain, index: u16, wish: &Wish<'_>) -> Result<Fit, Skip> {
    let endpoint = chain.at(index);
    if wish.tried.contains(index) {
        return Err(Skip::Tried);
    }
    if !fits(chain, index, wish) {
        return Err(Skip::Unfit);
    }
    if let Some(skip) = parked(chain, endpoint, wish) {
        return Err(skip);
    }
    match endpoint.state.rank(wish.now) {
        Some(rank) => Ok(Fit::Rank(rank)),
        None if wish.may_try && wish.tried.is_empty() && endpoint.state.claim_trial(wish.now) => {
            Ok(Fit::Trial)
        }
        None => Err(Skip::Unhealthy),
    }
}

fn fits(chain: &Chain, index: u16, wish: &Wish<'_>) -> bool {
    let endpoint = chain.at(index);
    let block = endpoint.state.block();
    let has_block = wish.block.is_none_or(|wanted| block == 0 || block >= wanted);
    let lag = chain.head.get().saturating_sub(block);
    let behind = wish.policy.max_lag > 0 && block > 0 && lag > wish.policy.max_lag;
    wish.only.is_none_or(|only| only == index)
        && (endpoint.archive || !wish.archive)
        && has_block
        && wish.range.is_none_or(|range| endpoint.max_block_range.is_none_or(|most| range <= most))
        && !behind
        && !(wish.given_away && endpoint.private)
}

fn parked(chain: &Chain, endpoint: &Endpoint, wish: &Wish<'_>) -> Option<Skip> {
    if endpoint.account.park.is_parked(wish.now) {
        return Some(of_record(&endpoint.account.park.record(), wish.now));
    }
    if endpoint.address.is_parked(wish.now) {
        return Some(of_record(&endpoint.address.record(), wish.now));
    }
    if !wish.known_method {
        return None;
    }
    match chain.methods.refusal(endpoint.number, wish.method, wish.now)? {
        Refusal::Unsupported(_) => Some(Skip::Unsupported),
        Refusal::Limited { until } => Some(Skip::Parked { at: until, soft: false }),
    }
}

/// When an endpoint that is parked opens again, Unix milliseconds; `None`: it is not parked.
pub(crate) fn opening(endpoint: &Endpoint, now: u64) -> Option<u64> {
    let parked = [&endpoint.account.park, &*endpoint.address].into_iter().filter(|park| park.is_parked(now));
    let openings = parked.filter_map(|park| recovery::retry_after(&park.record(), now));
    openings.map(|wait| now.saturating_add(wait.as_millis().try_into().unwrap_or(u64::MAX))).max()
}

fn of_record(record: &recovery::Record, now: u64) -> Skip {
    let wait = recovery::retry_after(record, now).unwrap_or_default();
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Skip::Parked { at: now.saturating_add(wait), soft: record.reason.is_estimate() }
}

fn note(
    chain: &Chain,
    index: u16,
    wish: &Wish<'_>,
    skip: Skip,
    skipped: &mut impl FnMut(u16, Skip),
    full: &mut Option<Saturated>,
) {
    if skip == Skip::Tried {
        return;
    }
    skipped(index, skip);
    let (at, soft) = match skip {
        Skip::Parked { at, soft } | Skip::Dry { at, soft } => (at, soft),
        Skip::Behind { soft } => (wish.now, soft),
        // A part of a batch may fit. For a single call there is no opening to wait for.
        Skip::TooBig if wish.cost.requests > 1 => (u64::MAX, false),
        Skip::Doubt => (wish.now.saturating_add(FETCH_MS), false),
        Skip::TooBig | Skip::Tried | Skip::Unfit | Skip::Unhealthy | Skip::Unsupported => return,
    };
    let hit = chain.at(index).state.last_hit();
    let opens = if matches!(skip, Skip::Behind { .. }) { u64::MAX } else { at };
    let nobody = Saturated { at, opens, overflow: None, tokens: false, overflow_hit: u64::MAX };
    let full = full.get_or_insert(nobody);
    (full.at, full.opens) = (full.at.min(at), full.opens.min(opens));
    if soft && hit < full.overflow_hit {
        full.overflow = Some(index);
        full.overflow_hit = hit;
    }
}

/// When nobody whom health allows is left, it excludes nobody: the one that failed longest ago.
pub(crate) fn last_resort(chain: &Chain, wish: &Wish<'_>) -> Option<u16> {
    let excluded = |index: &u16| {
        let endpoint = chain.at(*index);
        !wish.tried.contains(*index)
            && endpoint.state.rank(wish.now).is_none()
            && fits(chain, *index, wish)
            && parked(chain, endpoint, wish).is_none()
    };
    let allowed = chain.tiers.iter().filter(|tier| wish.public || tier.role != Role::Public);
    let indices = allowed.flat_map(|tier| tier.order.iter().map(|index| index.load(Relaxed)));
    indices.filter(excluded).min_by_key(|index| chain.at(*index).state.last_failed())
}

#[cfg(test)]
mod tests;
