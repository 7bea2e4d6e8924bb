//! What the checker answers: whether it is alive, whether checks go on, and its metrics.

use crate::checker::Checker;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use telemetry::registry::Registry;

/// The routes of `HEALTH_CHECKER_SERVER_PORT`.
pub(crate) fn routes(checker: Arc<Checker>) -> Router {
    let routes = Router::new()
        .route("/health", any(|| async { Json(json!({"status": "healthy"})) }))
        .route("/ready", get(ready))
        .with_state(checker);
    telemetry::operator::layered(routes)
}

/// The routes of `METRICS_PORT`.
pub(crate) fn operator(checker: Arc<Checker>, registry: Registry) -> Router {
    let routes = Router::new().route("/metrics", get(scrape)).with_state((checker, registry));
    telemetry::operator::layered(routes)
}

/// Ready while checks go on, here or at the instance that this one stands by for. Losing Valkey alone is no reason:
/// whoever starts it anew would not bring it back.
async fn ready(State(checker): State<Arc<Checker>>) -> Response {
    let believed = fleet::fresh_for_ms(&checker.settings);
    let reason = match checker.unchecked_for_ms() {
        _ if checker.is_leaving() => "shutting_down",
        Some(ago) if ago < believed => return (StatusCode::OK, Json(well(&checker))).into_response(),
        Some(_) => "health_checks_stalled",
        None => "initial_health_check_in_progress",
    };
    let body = Json(json!({"status": "not_ready", "reason": reason}));
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}

fn well(checker: &Checker) -> Value {
    match checker.shared().is_up() {
        true => json!({"status": "ready"}),
        false => json!({"status": "ready", "degraded": ["store"]}),
    }
}

async fn scrape(State((checker, registry)): State<(Arc<Checker>, Registry)>) -> Response {
    prober::metrics::of_fleet(&checker.fleet.load(), fleet::clock::unix_ms());
    prober::metrics::of_store(Some(checker.shared()));
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, registry.render()).into_response()
}
