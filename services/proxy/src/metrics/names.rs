//! Names and what they mean, once.

pub(crate) use prober::metrics::HITS;

use metrics::{describe_counter, describe_gauge};
use telemetry::histograms::Histograms;

pub(crate) const HTTP_REQUESTS: &str = "headgate_http_requests_total";
pub(crate) const HTTP_DURATION: &str = "headgate_http_request_duration_seconds";
pub(crate) const HTTP_IN_FLIGHT: &str = "headgate_http_requests_in_flight";
pub(crate) const SOCKETS: &str = "headgate_websocket_connections";
pub(crate) const SOCKET_CLOSES: &str = "headgate_websocket_closes_total";
pub(crate) const ATTEMPTS: &str = "headgate_attempts_total";
pub(crate) const ATTEMPT_DURATION: &str = "headgate_attempt_duration_seconds";
pub(crate) const RETRIES: &str = "headgate_retries_total";
pub(crate) const SKIPPED: &str = "headgate_capacity_skipped_total";
pub(crate) const DECREASES: &str = "headgate_capacity_decreases_total";
pub(crate) const SATURATED: &str = "headgate_saturated_total";
pub(crate) const CLIENT_REFUSALS: &str = "headgate_client_refusals_total";
pub(crate) const LIMITS_DEGRADED: &str = "headgate_client_limits_degraded";
pub(crate) const RULE_HITS: &str = "headgate_detect_rule_hits_total";
pub(crate) const CAP_LIMIT: &str = "headgate_concurrency_limit";
pub(crate) const CAP_IN_FLIGHT: &str = "headgate_concurrency_in_flight";
pub(crate) const CAP_WAITING: &str = "headgate_concurrency_waiting";
pub(crate) const CAP_SHED: &str = "headgate_concurrency_shed_total";
pub(crate) const FLAGS_READY: &str = "headgate_flags_ready";
pub(crate) const FLAGS_PANICS: &str = "headgate_flags_refresh_panics_total";
pub(crate) const RELOADS: &str = "headgate_config_reloads_total";
pub(crate) const RELOAD_OK: &str = "headgate_config_last_reload_successful";

/// Tells the registry what each metric means.
pub(crate) fn describe(histograms: &Histograms) {
    prober::metrics::describe(histograms);
    describe_counter!(HTTP_REQUESTS, "Requests on chain routes by status code");
    histograms.describe(HTTP_DURATION, "From a request's head to its answer's head");
    describe_gauge!(HTTP_IN_FLIGHT, "Requests whose answer has not begun");
    describe_gauge!(SOCKETS, "Open WebSockets of clients");
    describe_counter!(SOCKET_CLOSES, "WebSockets of clients that ended, by reason");
    describe_counter!(ATTEMPTS, "Attempts at endpoints by what their answer meant");
    histograms.describe(ATTEMPT_DURATION, "From sending an attempt until its verdict was certain");
    describe_counter!(RETRIES, "Attempts that led to another one, by reason");
    describe_counter!(SKIPPED, "Times an endpoint was passed over because it was parked or at its ceiling");
    describe_counter!(DECREASES, "Times a learned ceiling was lowered");
    describe_counter!(SATURATED, "Requests refused because every endpoint was at its limit");
    describe_counter!(CLIENT_REFUSALS, "Requests refused because of who asked, by reason");
    describe_gauge!(LIMITS_DEGRADED, "1 while limits of clients are counted by each proxy alone");
    describe_counter!(RULE_HITS, "Answers by the detection rule that decided");
    describe_gauge!(CAP_LIMIT, "The cap in force at a gate; 0: none");
    describe_gauge!(CAP_IN_FLIGHT, "Who is inside of a gate");
    describe_gauge!(CAP_WAITING, "Who waits at a gate");
    describe_counter!(
        CAP_SHED,
        "Who was turned away at a gate, because its queue was full or the wait too long"
    );
    describe_gauge!(FLAGS_READY, "1 while the provider of flags can be read");
    describe_counter!(FLAGS_PANICS, "Readings of flags that ended in a bug");
    describe_counter!(RELOADS, "Reloads of the endpoints file by result");
    describe_gauge!(RELOAD_OK, "1 when the endpoints file on disk is the one in force");
}
