//! Everything on the client port that is not a JSON-RPC request: health, readiness, preflights, and clear answers
//! to what is not served.

use crate::app::App;
use crate::reply::Problem;
use crate::rpc::REQUEST_ID;
use crate::why::RequestId;
use crate::worker::Phase;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{any, get};
use health::{Degraded, Grace, Readiness, ReadinessView};
use serde::Serialize;
use std::sync::{Arc, MutexGuard};
use tower_http::catch_panic::CatchPanicLayer;

#[derive(Clone)]
struct Pages {
    app: Arc<App>,
}

/// What `/health` and `/ready` say, in the order that is documented.
#[derive(Serialize)]
struct Said {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    degraded: Vec<String>,
}

impl Said {
    fn just(status: &'static str) -> Said {
        Said { status, reason: None, degraded: Vec::new() }
    }
}

/// Whether a page is at this path, which no chain can be called.
pub(crate) fn serves(path: &str) -> bool {
    matches!(path, "/health" | "/ready")
}

/// What readiness is by these settings.
pub(crate) fn readiness(settings: &config::Settings) -> Readiness {
    Readiness::new(if settings.ready_strict {
        let grace = settings.health_checker_grace_period.as_millis();
        Grace::Strict { grace_ms: u64::try_from(grace).unwrap_or(u64::MAX) }
    } else {
        Grace::Lenient
    })
}

/// The routes; each worker has its own copy.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let pages = Pages { app: Arc::clone(app) };
    Router::new()
        .route("/health", get(|| async { answer(StatusCode::OK, &Said::just("healthy")) }))
        .route("/ready", get(ready))
        .route("/{chain}", any(chain))
        .route("/{chain}/", any(chain))
        .route("/{chain}/{key}", any(chain_and_key))
        .fallback(nowhere)
        .method_not_allowed_fallback(|| async { not_allowed("GET") })
        .with_state(pages)
        // A bug in one page must not end the other requests of the worker.
        .layer(CatchPanicLayer::new())
}

async fn ready(State(pages): State<Pages>) -> Response<Body> {
    let (ready, degraded) = ask_readiness(&pages.app);
    let degraded: Vec<String> = degraded.iter().map(ToString::to_string).collect();
    match ready {
        Ok(()) => answer(StatusCode::OK, &Said { degraded, ..Said::just("ready") }),
        Err(reason) => {
            let said = Said { reason: Some(reason), ..Said::just("not_ready") };
            answer(StatusCode::SERVICE_UNAVAILABLE, &said)
        }
    }
}

/// Whether the process is ready, and what it does without.
fn ask_readiness(app: &App) -> (Result<(), &'static str>, Vec<Degraded>) {
    let view = View::of(app);
    let chains = view.chains();
    let view = view.readiness(&chains, app);
    (remembered(app).ask(&view), view.degraded())
}

/// Asked in the background, whether it is ready is remembered also if nobody asked at the time. Chains, of which there may
/// be thousands, are looked at only while it hangs on them.
pub(crate) fn note_readiness(app: &App) {
    let depends = remembered(app).depends_on_chains();
    let view = if depends { View::of(app) } else { View(Vec::new()) };
    let chains = view.chains();
    // Only that it was asked counts here.
    let _ = remembered(app).ask(&view.readiness(&chains, app));
}

fn remembered(app: &App) -> MutexGuard<'_, Readiness> {
    app.readiness.lock().expect("no holder of this lock can panic")
}

/// Which chains have a good endpoint.
pub(crate) struct View(Vec<(String, bool)>);

impl View {
    pub(crate) fn of(app: &App) -> View {
        let now = crate::clock::unix_ms();
        let good = |chain: &Arc<crate::fleet::Chain>| {
            let usable =
                |endpoint: &crate::fleet::Endpoint| endpoint.state.view(now).rank == health::Rank::Good;
            (chain.name.to_string(), chain.endpoints.iter().any(usable))
        };
        View(app.fleet.load().chains().into_iter().map(good).collect())
    }

    pub(crate) fn chains(&self) -> Vec<(&str, bool)> {
        self.0.iter().map(|(name, good)| (name.as_str(), *good)).collect()
    }

    pub(crate) fn readiness<'a>(&self, chains: &'a [(&'a str, bool)], app: &App) -> ReadinessView<'a> {
        ReadinessView {
            uptime_ms: u64::try_from(app.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            chains,
            store_reachable: app.store_is_reachable(),
            checked: app.is_checked(),
            separate: !app.settings.checks_inside(),
            stopping: app.phase() != Phase::Serving,
        }
    }
}

async fn chain(
    State(pages): State<Pages>,
    Path(chain): Path<String>,
    Extension(id): Extension<RequestId>,
    method: Method,
) -> Response<Body> {
    on_chain(&pages, &chain, id, &method)
}

async fn chain_and_key(
    State(pages): State<Pages>,
    Path((chain, _)): Path<(String, String)>,
    Extension(id): Extension<RequestId>,
    method: Method,
) -> Response<Body> {
    on_chain(&pages, &chain, id, &method)
}

async fn nowhere(State(pages): State<Pages>, Extension(id): Extension<RequestId>) -> Response<Body> {
    refuse(&pages, &Problem::UnknownChain, id)
}

fn on_chain(pages: &Pages, chain: &str, id: RequestId, method: &Method) -> Response<Body> {
    if pages.app.fleet.load().chain(chain).is_none() {
        return refuse(pages, &Problem::UnknownChain, id);
    }
    let mut response = match *method {
        Method::OPTIONS => Response::new(Body::empty()),
        Method::GET => return refuse(pages, &Problem::NeedsPost, id),
        _ => not_allowed("GET, POST, OPTIONS"),
    };
    pages.app.cors.insert(response.headers_mut());
    response
}

fn not_allowed(allow: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response.headers_mut().insert(ALLOW, axum::http::HeaderValue::from_static(allow));
    response
}

fn refuse(pages: &Pages, problem: &Problem, id: RequestId) -> Response<Body> {
    let mut body = Vec::with_capacity(256);
    problem.write(None, id, crate::clock::unix_ms(), &mut body);
    let mut response = written(problem.status(), body);
    pages.app.cors.insert(response.headers_mut());
    response.headers_mut().insert(REQUEST_ID, id.to_header());
    response
}

fn answer(status: StatusCode, said: &Said) -> Response<Body> {
    written(status, serde_json::to_vec(said).unwrap_or_default())
}

fn written(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let json = axum::http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
