//! The operator's port: a page for people, metrics, the fleet's status, and what happened to a request.

mod page;

use crate::app::App;
use crate::fleet::{Chain, Endpoint, Fleet};
use crate::metrics;
use crate::pages::View;
use crate::why::{RequestId, of_level};
use crate::worker::Order;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use ledger::{CeilingKind, Unit};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::Park;
use telemetry::registry::Registry;
use tokio::sync::oneshot;

#[derive(Clone)]
struct Operator {
    app: Arc<App>,
    registry: Registry,
}

pub(crate) fn routes(app: Arc<App>, registry: Registry) -> Router {
    let routes = Router::new()
        .route("/metrics", get(scrape))
        .route("/status", get(status))
        .route("/status/why/{id}", get(why))
        .merge(page::routes())
        .with_state(Operator { app, registry });
    telemetry::operator::layered(routes)
}

async fn scrape(State(operator): State<Operator>) -> Response {
    let in_flight = operator.app.fold().await;
    let fleet = operator.app.fleet.load();
    metrics::gauges(&fleet, in_flight, crate::clock::unix_ms());
    metrics::of_gates(&operator.app.gates, &fleet);
    metrics::of_limits(&operator.app.limits);
    metrics::of_store(operator.app.valkey.as_ref());
    let kind = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, operator.registry.render()).into_response()
}

async fn why(State(operator): State<Operator>, Path(id): Path<String>) -> Response {
    let Ok(id) = id.parse::<RequestId>() else {
        return refuse(StatusCode::BAD_REQUEST, "not a request id: it looks like 1a2b3c4d-0-1f");
    };
    let worker =
        operator.app.workers.get(usize::from(id.worker)).filter(|_| id.process == operator.app.process);
    let Some(worker) = worker else {
        return refuse(StatusCode::NOT_FOUND, "this process did not serve that request");
    };
    let (reply, told) = oneshot::channel();
    let asked = worker.orders.send(Order::Tell(id, reply)).is_ok();
    match if asked { told.await.ok().flatten() } else { None } {
        Some(story) => Json(story).into_response(),
        None => refuse(StatusCode::NOT_FOUND, "not among the last requests that are remembered"),
    }
}

fn refuse(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

async fn status(State(operator): State<Operator>) -> Json<Value> {
    let now = crate::clock::unix_ms();
    let fleet = operator.app.fleet.load();
    let chains: Map<String, Value> =
        fleet.chains().into_iter().map(|chain| (chain.name.to_string(), of_chain(chain, now))).collect();
    let view = View::of(&operator.app);
    let good = view.chains();
    let degraded = view.readiness(&good, &operator.app).degraded();
    let degraded: Vec<String> = degraded.iter().map(ToString::to_string).collect();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now": now,
        "degraded": degraded,
        "totals": totals(&fleet, now),
        "chains": chains,
        "recent": operator.app.recent().await,
    }))
}

/// The fleet in a few numbers.
fn totals(fleet: &Fleet, now: u64) -> Value {
    let count = |is: &dyn Fn(&Endpoint) -> bool| fleet.endpoints().filter(|(_, one)| is(one)).count();
    json!({
        "chains": fleet.chains().len(),
        "endpoints": count(&|_| true),
        "usable": count(&|one| match (&one.http, &one.ws) {
            (Some(_), _) => one.state.view(now).usable,
            (None, _) => one.state.view_ws(now).usable,
        }),
        "parked": count(&|one| park(one, now).is_some()),
        "full": count(&|one| one.account.gate.snapshot(now).iter().any(|window| window.used >= window.limit)),
        "in_flight": fleet.endpoints().map(|(_, one)| u64::from(one.state.in_flight())).sum::<u64>(),
    })
}

/// What keeps an endpoint out of selection for a time, if anything does.
fn park(endpoint: &Endpoint, now: u64) -> Option<&Park> {
    [&endpoint.account.park, &*endpoint.address].into_iter().find(|park| park.is_parked(now))
}

fn of_chain(chain: &Chain, now: u64) -> Value {
    let endpoints: Map<String, Value> = chain
        .endpoints
        .iter()
        .map(|endpoint| (endpoint.id.to_string(), of_endpoint(chain, endpoint, now)))
        .collect();
    json!({ "head": chain.head.get(), "endpoints": endpoints })
}

fn of_endpoint(chain: &Chain, endpoint: &Endpoint, now: u64) -> Value {
    let block = endpoint.state.block();
    let record = park(endpoint, now).map(|park| park.record());
    json!({
        "role": endpoint.role.as_str(),
        "account": endpoint.account.name,
        "healthy": {
            "http": endpoint.http.is_some().then(|| endpoint.state.view(now).usable),
            "ws": endpoint.ws.is_some().then(|| endpoint.state.view_ws(now).usable),
        },
        "block": (block > 0).then_some(block),
        "lag": (block > 0).then(|| chain.head.get().saturating_sub(block)),
        "parked_until": record.map(|record| record.parked_until),
        "parked_reason": record.map(|record| record.reason.as_str()),
        "ceilings": endpoint.account.gate.snapshot(now).iter().map(of_ceiling).collect::<Vec<_>>(),
        "level": endpoint.account.gate.level().map(|level| of_level(&level)),
        "used_24h": endpoint.account.gate.use_24h(now),
        "in_flight": endpoint.state.in_flight(),
        "last_verdict": endpoint.state.last_verdict().map(detect::Verdict::as_str),
    })
}

fn of_ceiling(ceiling: &ledger::CeilingView) -> Value {
    json!({
        "window_seconds": ceiling.window_ms / 1000,
        "limit": ceiling.limit,
        "unit": match ceiling.unit { Unit::Requests => "requests", Unit::ComputeUnits => "compute_units" },
        "kind": match ceiling.kind { CeilingKind::Static => "static", CeilingKind::Learned => "learned" },
        "used": ceiling.used,
    })
}
