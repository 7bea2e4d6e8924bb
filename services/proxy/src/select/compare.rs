//! Who is best of a few endpoints of one tier: by health, then by use or latency, then by chance. Whether they may be
//! asked at all is decided before.

use super::Wish;
use crate::fleet::{Chain, Endpoint, FEW};
use config::Selection;
use rand::Rng;

/// Scores this close are equal.
const CLOSE: f64 = 1.05;

#[derive(Clone, Copy)]
pub(super) struct Candidate {
    pub(super) index: u16,
    pub(super) rank: u8,
    pub(super) score: f64,
    pub(super) in_flight: u32,
}

/// Use is compared by ceiling only where everybody has one: counts and shares do not compare.
pub(super) fn score(chain: &Chain, few: &mut [Option<Candidate>; FEW], wish: &Wish<'_>) {
    let ceiled = |candidate: &Candidate| !chain.at(candidate.index).account.gate.open();
    let by_ceiling = wish.policy.throttling && few.iter().flatten().all(ceiled);
    for candidate in few.iter_mut().flatten() {
        let endpoint = chain.at(candidate.index);
        candidate.score = match wish.policy.selection {
            Selection::LeastUsed => endpoint.use_score(wish.now, by_ceiling),
            Selection::Latency => endpoint.state.latency_score(candidate.in_flight),
        };
    }
}

/// Who was away starts level with the least used of its tier: it would draw every request otherwise.
pub(super) fn level_newcomers(chain: &Chain, few: &mut [Option<Candidate>; FEW], now: u64) {
    let away = |candidate: &Candidate| chain.at(candidate.index).state.is_away();
    if !few.iter().flatten().any(away) {
        return;
    }
    let lowest = few.iter().flatten().filter(|c| !away(c)).map(|c| c.score).fold(f64::INFINITY, f64::min);
    for candidate in few.iter_mut().flatten().filter(|c| away(c)) {
        come_level(chain.at(candidate.index), candidate.score, lowest, now);
        if lowest.is_finite() {
            candidate.score = candidate.score.max(lowest);
        }
    }
}

/// Adds what an endpoint's account lacks of `lowest`, once.
fn come_level(endpoint: &Endpoint, score: f64, lowest: f64, now: u64) {
    if endpoint.state.come_back() && lowest.is_finite() && score < lowest && score > 0.0 {
        let used = endpoint.account.gate.use_24h(now) as f64;
        endpoint.account.gate.lift_24h((used * (lowest / score - 1.0)) as u32, now);
    } else if lowest.is_finite() && score == 0.0 {
        endpoint.account.gate.lift_24h((lowest * endpoint.weight) as u32, now);
    }
}

/// The position of the best candidate: rank, then score, then fewest in flight, then chance.
pub(super) fn best(few: &[Option<Candidate>; FEW], rng: &mut impl Rng) -> Option<usize> {
    let candidates = || few.iter().enumerate().filter_map(|(position, c)| c.map(|c| (position, c)));
    let rank = candidates().map(|(_, c)| c.rank).min()?;
    let lowest =
        candidates().filter(|(_, c)| c.rank == rank).map(|(_, c)| c.score).fold(f64::INFINITY, f64::min);
    let level = || candidates().filter(|(_, c)| c.rank == rank && c.score <= lowest * CLOSE);
    let idlest = level().map(|(_, c)| c.in_flight).min()?;
    let equal = || level().filter(|(_, c)| c.in_flight == idlest);
    let drawn = match equal().count() {
        0 | 1 => 0,
        several => rng.random_range(0..several),
    };
    equal().nth(drawn).map(|(position, _)| position)
}
