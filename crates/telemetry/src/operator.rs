//! What every operator route passes through. Nothing here stands in the way of a proxied request.

use axum::{Router, http::HeaderValue, http::StatusCode, http::header::CACHE_CONTROL};
use std::time::Duration;
use tower_http::{
    catch_panic::CatchPanicLayer, set_header::SetResponseHeaderLayer, timeout::TimeoutLayer,
    trace::TraceLayer,
};

/// Wraps the routes of an operator's port.
pub fn layered(routes: Router) -> Router {
    routes
        // Answers describe this instant: nobody may keep them.
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, HeaderValue::from_static("no-store")))
        // Inside the trace, so that a timed-out answer is traced with its status.
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(10)))
        // A bug in one page must not end the connection of a scraper.
        .layer(CatchPanicLayer::new())
        .layer(TraceLayer::new_for_http())
}
