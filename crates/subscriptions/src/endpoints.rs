//! Which endpoints may be given subscriptions, in which order, and which are left alone for a while.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::{Rng, RngCore};

use crate::event::Candidate;
use crate::ids::EndpointId;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// How long one that failed comes after those that did not: one that takes connections and answers nothing costs seconds
/// each time, and a lost subscription has only so many.
const LAST_RESORT: Duration = crate::hub::RECOVERY;

/// The endpoints of the chain that have a WebSocket.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    /// The preferred first.
    order: Vec<EndpointId>,
    states: BTreeMap<EndpointId, State>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    eligible: bool,
    open: bool,
    failures: u32,
    /// Left alone until then.
    paused: Option<Instant>,
    limited: bool,
    /// Since it last worked.
    failed: Option<Instant>,
}

/// Whether an endpoint may be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    Now,
    /// Not before this time; whether because of a limit.
    At(Instant, bool),
    Never,
}

impl Endpoints {
    /// Takes the new list. What is known of those that stay is kept.
    pub(crate) fn update(&mut self, candidates: &[Candidate]) {
        self.order = candidates.iter().map(|candidate| candidate.endpoint).collect();
        let mut states = std::mem::take(&mut self.states);
        for candidate in candidates {
            let state = states.remove(&candidate.endpoint).unwrap_or_default();
            let Candidate { endpoint, eligible, open } = *candidate;
            self.states.insert(endpoint, State { eligible, open, ..state });
        }
    }

    pub(crate) fn has(&self, endpoint: EndpointId) -> bool {
        self.states.contains_key(&endpoint)
    }

    /// Whether there is another that may be given something, now or soon.
    pub(crate) fn anybody_but(&self, endpoint: EndpointId) -> bool {
        self.states.iter().any(|(other, state)| *other != endpoint && state.eligible)
    }

    /// All, the preferred first, but for those that failed lately and have not worked since.
    pub(crate) fn order(&self, now: Instant) -> Vec<EndpointId> {
        let failed = |endpoint: &EndpointId| {
            let at = self.states.get(endpoint).and_then(|state| state.failed);
            at.is_some_and(|at| now.saturating_duration_since(at) < LAST_RESORT)
        };
        let mut order = self.order.clone();
        order.sort_by_key(failed);
        order
    }

    /// Whether it may be asked when nobody eligible is left: shut out by health alone, and not by a failure just now.
    pub(crate) fn is_last_resort(&self, endpoint: EndpointId, now: Instant) -> bool {
        let state = self.states.get(&endpoint);
        state.is_some_and(|state| {
            !state.eligible && state.open && state.paused.is_none_or(|until| until <= now)
        })
    }

    pub(crate) fn open(&self, endpoint: EndpointId, now: Instant) -> Open {
        match self.states.get(&endpoint) {
            Some(state) if state.eligible => match state.paused {
                Some(until) if until > now => Open::At(until, state.limited),
                Some(_) | None => Open::Now,
            },
            Some(_) | None => Open::Never,
        }
    }

    /// When an endpoint is back that said that it is enough.
    pub(crate) fn limited_until(&self, endpoint: EndpointId, now: Instant) -> Option<Instant> {
        match self.open(endpoint, now) {
            Open::At(until, true) => Some(until),
            Open::At(_, false) | Open::Now | Open::Never => None,
        }
    }

    /// An attempt failed: a pause, longer each time, not the same for all.
    pub(crate) fn failed(&mut self, endpoint: EndpointId, now: Instant, rng: &mut dyn RngCore) {
        if let Some(state) = self.states.get_mut(&endpoint) {
            let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(5)).min(LONGEST_PAUSE);
            state.failures += 1;
            state.failed = Some(now);
            state.limited = false;
            state.paused = Some(now + pause.mul_f64(rng.random_range(0.5..1.0)));
        }
    }

    /// It said when again, or only that it is enough.
    pub(crate) fn limited(
        &mut self,
        endpoint: EndpointId,
        again: Option<Duration>,
        now: Instant,
        rng: &mut dyn RngCore,
    ) {
        self.failed(endpoint, now, rng);
        if let Some(state) = self.states.get_mut(&endpoint) {
            state.limited = true;
            state.paused = again.map(|again| now + again).or(state.paused);
        }
    }

    pub(crate) fn worked(&mut self, endpoint: EndpointId) {
        if let Some(state) = self.states.get_mut(&endpoint) {
            *state = State { eligible: state.eligible, open: state.open, ..State::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    fn good(endpoint: EndpointId) -> Candidate {
        Candidate { endpoint, eligible: true, open: true }
    }

    // Kills: going again to who has just failed while others have not, and never going back to the preferred.
    #[test]
    fn who_failed_lately_comes_last() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let ids = [1, 2, 3].map(EndpointId);
        let (mut endpoints, mut rng) = (Endpoints::default(), SmallRng::seed_from_u64(1));
        endpoints.update(&ids.map(good));
        endpoints.failed(ids[0], now, &mut rng);
        assert_eq!(endpoints.order(now), [2, 3, 1].map(EndpointId));
        endpoints.failed(ids[1], now, &mut rng);
        assert_eq!(endpoints.order(now), [3, 1, 2].map(EndpointId), "in their order again");
        endpoints.worked(ids[1]);
        assert_eq!(endpoints.order(now), [2, 3, 1].map(EndpointId));
        assert_eq!(endpoints.order(now + LAST_RESORT), ids);
    }

    // Kills: a pause that does not grow or has no end, a success that does not end it, a limit's time ignored.
    #[test]
    fn failures_pause_and_success_ends_it() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let (one, two) = (EndpointId(1), EndpointId(2));
        let (mut endpoints, mut rng) = (Endpoints::default(), SmallRng::seed_from_u64(1));
        endpoints.update(&[good(one), Candidate { eligible: false, ..good(two) }]);
        assert_eq!((endpoints.open(one, now), endpoints.open(two, now)), (Open::Now, Open::Never));
        let mut pauses = Vec::new();
        for _ in 0..40 {
            endpoints.failed(one, now, &mut rng);
            let Open::At(until, false) = endpoints.open(one, now) else { panic!("paused") };
            pauses.push(until - now);
        }
        assert!(
            pauses[0] <= FIRST_PAUSE && pauses[3] > FIRST_PAUSE * 3 && pauses[39] <= LONGEST_PAUSE,
            "{pauses:?}"
        );
        endpoints.limited(one, Some(Duration::from_secs(60)), now, &mut rng);
        assert_eq!(endpoints.open(one, now), Open::At(now + Duration::from_secs(60), true));
        endpoints.update(&[good(one)]);
        assert!(endpoints.open(one, now) != Open::Now && !endpoints.has(two), "what stays is kept");
        endpoints.worked(one);
        assert_eq!(endpoints.open(one, now), Open::Now);
    }
}
