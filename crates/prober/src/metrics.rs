//! What both services tell of a fleet and of the shared store: names, meanings, and the gauges.

use aimd::steady::Level;
use fleet::{Endpoint, Fleet};
use ledger::{CeilingKind, Unit};
use metrics::{Label, Unit as In, counter, describe_counter, describe_gauge, gauge};
use std::sync::Arc;
use store::{Op, Valkey};
use telemetry::histograms::Histograms;

pub const HITS: &str = "headgate_hits_total";
pub const RECOVERIES: &str = "headgate_recoveries_total";
pub const CHECKS: &str = "headgate_health_checks_total";
pub const CHECK_DURATION: &str = "headgate_health_check_duration_seconds";
const CHECKING: &str = "headgate_health_checking";
const HEALTHY: &str = "headgate_endpoint_healthy";
const BLOCK: &str = "headgate_endpoint_block";
const PARKED: &str = "headgate_endpoint_parked";
const CEILING: &str = "headgate_capacity_ceiling";
const USAGE: &str = "headgate_capacity_usage";
const LEVEL: &str = "headgate_capacity_level";
const LEVEL_WINDOW: &str = "headgate_capacity_level_window_seconds";
const REFUSED_LEVEL: &str = "headgate_capacity_refused_level";
const MARGIN: &str = "headgate_capacity_margin";
const DEBT: &str = "headgate_capacity_debt";
const NEXT_TRIAL: &str = "headgate_capacity_next_trial_timestamp_seconds";
const STORE_TRIPS: &str = "headgate_store_round_trips_total";
const STORE_ERRORS: &str = "headgate_store_errors_total";
const STORE_DEGRADED: &str = "headgate_store_degraded";
const BUILD: &str = "headgate_build_info";

/// Tells the registry what each metric means.
pub fn describe(histograms: &Histograms) {
    describe_gauge!(HEALTHY, "1 when an endpoint may be selected, by protocol");
    describe_gauge!(BLOCK, "The newest block an endpoint is known to have");
    describe_gauge!(PARKED, "1 while an endpoint's account or address is parked");
    describe_counter!(fleet::PARKS, "Times an endpoint's account or address was parked, by reason");
    describe_counter!(HITS, "Rate limits that were hit, by kind (burst or quota)");
    describe_counter!(RECOVERIES, "Parked accounts that came back");
    describe_gauge!(CEILING, "The ceiling in force per window, as grown now, by kind (static or learned)");
    describe_gauge!(USAGE, "What is used of the ceiling's window");
    describe_gauge!(LEVEL, "Requests per window that an account served without a refusal, by the steady law");
    describe_gauge!(LEVEL_WINDOW, In::Seconds, "The window that a level is about");
    describe_gauge!(REFUSED_LEVEL, "The lowest level that was refused; 0: none is remembered");
    describe_gauge!(MARGIN, "What is kept below a refused level, as a share of it");
    describe_gauge!(DEBT, "Refusals that answers have not paid for yet");
    describe_gauge!(NEXT_TRIAL, In::Seconds, "When a level may next be tried to be raised, Unix time");
    describe_counter!(CHECKS, "Health probes by result");
    histograms.describe(CHECK_DURATION, "How long health probes took");
    describe_gauge!(CHECKING, "1 while this process is the one that checks health");
    describe_counter!(STORE_TRIPS, "Round trips to the shared store, by what they were for");
    describe_counter!(STORE_ERRORS, "Commands to the shared store that failed, by what they were for");
    describe_gauge!(STORE_DEGRADED, "1 while the shared store does not answer, or too late");
    describe_gauge!(BUILD, "Always 1; the version is a label");
}

/// Which build this is.
pub fn of_build(version: &'static str) {
    gauge!(BUILD, "version" => version).set(1.0);
}

/// Whether this process checks health.
pub(crate) fn checking(yes: bool) {
    gauge!(CHECKING).set(truth(yes));
}

/// What the shared store was used for, if there is one.
pub fn of_store(valkey: Option<&Valkey>) {
    gauge!(STORE_DEGRADED).set(truth(valkey.is_some_and(|valkey| !valkey.keeps_up())));
    let Some(valkey) = valkey else { return };
    for op in Op::ALL {
        let (trips, errors) = valkey.counts(op);
        counter!(STORE_TRIPS, "op" => op.as_str()).absolute(trips);
        counter!(STORE_ERRORS, "op" => op.as_str()).absolute(errors);
    }
}

/// What is known of the fleet at `now` (Unix milliseconds).
pub fn of_fleet(fleet: &Fleet, now: u64) {
    for (chain, endpoint) in fleet.endpoints() {
        of_endpoint(&chain.name, endpoint, now);
    }
}

fn of_endpoint(chain: &Arc<str>, endpoint: &Endpoint, now: u64) {
    let who =
        || vec![Label::new("chain", Arc::clone(chain)), Label::new("endpoint", Arc::clone(&endpoint.id))];
    let healthy = |protocol: &str, usable: bool| {
        gauge!(HEALTHY, [who(), vec![label("protocol", protocol)]].concat()).set(truth(usable));
    };
    if endpoint.http.is_some() {
        healthy("http", endpoint.state.view(now).usable);
    }
    if endpoint.ws.is_some() {
        healthy("ws", endpoint.state.view_ws(now).usable);
    }
    let parked = endpoint.account.park.is_parked(now) || endpoint.address.is_parked(now);
    gauge!(PARKED, who()).set(truth(parked));
    counter!(RECOVERIES, who()).increment(0);
    if endpoint.state.block() > 0 {
        gauge!(BLOCK, who()).set(endpoint.state.block() as f64);
    }
    for ceiling in endpoint.account.gate.snapshot(now) {
        let kind = match ceiling.kind {
            CeilingKind::Static => "static",
            CeilingKind::Learned => "learned",
        };
        let unit = match ceiling.unit {
            Unit::Requests => "requests",
            Unit::ComputeUnits => "compute_units",
        };
        let window = label("window_seconds", &(ceiling.window_ms / 1000).to_string());
        let of = || [who(), vec![window.clone(), label("unit", unit)]].concat();
        gauge!(CEILING, [of(), vec![label("kind", kind)]].concat()).set(ceiling.limit as f64);
        gauge!(USAGE, of()).set(ceiling.used as f64);
    }
    if let Some(level) = endpoint.account.gate.level() {
        of_level(who, &level);
    }
}

/// What the steady law knows of an account.
fn of_level(who: impl Fn() -> Vec<Label>, level: &Level) {
    gauge!(LEVEL, who()).set(level.level);
    gauge!(LEVEL_WINDOW, who()).set(level.window_ms as f64 / 1000.0);
    gauge!(REFUSED_LEVEL, who()).set(if level.refused.is_finite() { level.refused } else { 0.0 });
    gauge!(MARGIN, who()).set(level.margin);
    gauge!(DEBT, who()).set(level.debt);
    gauge!(NEXT_TRIAL, who()).set(level.trial_due() as f64 / 1000.0);
}

fn truth(yes: bool) -> f64 {
    if yes { 1.0 } else { 0.0 }
}

fn label(key: &'static str, value: &str) -> Label {
    Label::new(key, value.to_owned())
}
