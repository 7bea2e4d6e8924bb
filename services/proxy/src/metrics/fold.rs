//! From a worker's cells into the registry, and from the fleet's state into gauges.

use super::names::{
    ATTEMPT_DURATION, ATTEMPTS, CAP_IN_FLIGHT, CAP_LIMIT, CAP_SHED, CAP_WAITING, CLIENT_REFUSALS, DECREASES,
    HITS, HTTP_DURATION, HTTP_IN_FLIGHT, HTTP_REQUESTS, LIMITS_DEGRADED, RETRIES, RULE_HITS, SATURATED,
    SKIPPED, SOCKET_CLOSES, SOCKETS,
};
use super::{ChainCounts, EndpointCounts, Metrics};
use crate::fleet::Fleet;
use crate::gates::Gates;
use detect::Verdict;
use metrics::{Label, counter, gauge};
use std::sync::Arc;

impl Metrics {
    /// Adds what was counted to the registry and starts anew. Returns the requests in flight.
    pub(crate) fn fold(&self, fleet: &Fleet) -> i64 {
        self.chains.borrow().iter().flatten().for_each(|counts| self.fold_chain(counts));
        self.endpoints.borrow().iter().flatten().for_each(|counts| self.fold_endpoint(counts));
        for (rule, count) in self.rules.borrow().iter().flatten() {
            let name = || fleet.tables().map_or("unknown", |tables| tables.rules.name(*rule));
            count.fold(|| counter!(RULE_HITS, vec![label("rule", name())]));
        }
        self.in_flight.get()
    }

    fn fold_chain(&self, counts: &ChainCounts) {
        let chain = || Label::new("chain", Arc::clone(&counts.name));
        for (code, count) in counts.codes.borrow().iter() {
            count.fold(|| counter!(HTTP_REQUESTS, vec![chain(), label("code", &code.to_string())]));
        }
        for (reason, count) in counts.retries.borrow().iter() {
            count.fold(|| counter!(RETRIES, vec![chain(), label("reason", reason)]));
        }
        for (reason, count) in counts.refused.borrow().iter() {
            count.fold(|| counter!(CLIENT_REFUSALS, vec![chain(), label("reason", reason)]));
        }
        counts.saturated.fold(|| counter!(SATURATED, vec![chain()]));
        let opened = counts.sockets.take();
        if opened != 0 {
            gauge!(SOCKETS, vec![chain()]).increment(opened as f64);
        }
        for (why, count) in counts.closes.borrow().iter() {
            count.fold(|| counter!(SOCKET_CLOSES, vec![chain(), label("reason", why)]));
        }
        counts.took.fold(|| self.histograms.series(HTTP_DURATION, &[("chain", &counts.name)]));
    }

    fn fold_endpoint(&self, counts: &EndpointCounts) {
        let who = || {
            vec![
                Label::new("chain", Arc::clone(&counts.chain)),
                Label::new("endpoint", Arc::clone(&counts.endpoint)),
            ]
        };
        for (protocol, attempts) in ["http", "ws"].into_iter().zip(&counts.attempts) {
            for (verdict, count) in Verdict::ALL.into_iter().zip(attempts) {
                count.fold(|| {
                    let what = vec![label("protocol", protocol), label("verdict", verdict.as_str())];
                    counter!(ATTEMPTS, [who(), what].concat())
                });
            }
        }
        for (kind, count) in ["burst", "quota"].into_iter().zip(&counts.hits) {
            count.fold(|| counter!(HITS, [who(), vec![label("kind", kind)]].concat()));
        }
        counts.skipped.fold(|| counter!(SKIPPED, who()));
        counts.decreases.fold(|| counter!(DECREASES, who()));
        let who = [("chain", &*counts.chain), ("endpoint", &*counts.endpoint)];
        counts.took.fold(|| self.histograms.series(ATTEMPT_DURATION, &who));
    }
}

fn label(key: &'static str, value: &str) -> Label {
    Label::new(key, value.to_owned())
}

/// Whether limits of clients are counted alone that should be counted together.
pub(crate) fn of_limits(limits: &store::ClientLimits) {
    gauge!(LIMITS_DEGRADED).set(if limits.is_degraded() { 1.0 } else { 0.0 });
}

/// Sets what is known of each gate. One that never has a limit is counted by what its endpoints have in flight.
pub(crate) fn of_gates(gates: &Gates, fleet: &Fleet) {
    for gate in gates.all() {
        let load = gate.load();
        let in_flight = match gate.is_open() {
            true if gate.name != gates.upstream.name => continue,
            true => fleet.endpoints().map(|(_, endpoint)| endpoint.state.in_flight()).sum(),
            false => load.in_flight,
        };
        let name = || label("gate", &gate.name);
        gauge!(CAP_LIMIT, vec![name()]).set(load.limit.map_or(0.0, |limit| f64::from(limit.get())));
        gauge!(CAP_IN_FLIGHT, vec![name()]).set(f64::from(in_flight));
        gauge!(CAP_WAITING, vec![name()]).set(load.waiting as f64);
        for (reason, count) in gate.shed() {
            counter!(CAP_SHED, vec![name(), label("reason", reason.as_str())]).absolute(count);
        }
    }
}

/// Sets the gauges that describe the fleet at `now` (Unix milliseconds). What is counted rarely begins at 0 here: of a
/// series that begins at 1, `increase` never sees the first.
pub(crate) fn gauges(fleet: &Fleet, in_flight: i64, now: u64) {
    gauge!(HTTP_IN_FLIGHT).set(in_flight as f64);
    for chain in fleet.chains() {
        let of = || vec![Label::new("chain", Arc::clone(&chain.name))];
        gauge!(SOCKETS, of()).increment(0.0);
        counter!(SATURATED, of()).increment(0);
    }
    for (chain, endpoint) in fleet.endpoints() {
        let (chain, endpoint) = (Arc::clone(&chain.name), Arc::clone(&endpoint.id));
        let who =
            || vec![Label::new("chain", Arc::clone(&chain)), Label::new("endpoint", Arc::clone(&endpoint))];
        counter!(SKIPPED, who()).increment(0);
        counter!(DECREASES, who()).increment(0);
    }
    prober::metrics::of_fleet(fleet, now);
}
