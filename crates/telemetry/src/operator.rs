//! What every operator route passes through. Nothing here stands in the way of a proxied request.

use axum::{Router, http::HeaderValue, http::StatusCode, http::header::CACHE_CONTROL};
use std::time::Duration;
use tower_http::{
    catch_panic::CatchPanicLayer,
    set_header::SetResponseHeaderLayer,
    timeout::TimeoutLayer,
    trace::{DefaultOnFailure, TraceLayer},
};
use tracing::Level;

/// Wraps the routes of an operator's port.
pub fn layered(routes: Router) -> Router {
    routes
        // Answers describe this instant: nobody may keep them.
        .layer(SetResponseHeaderLayer::if_not_present(CACHE_CONTROL, HeaderValue::from_static("no-store")))
        // Inside the trace, so that a timed-out answer is traced with its status.
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, Duration::from_secs(10)))
        // A bug in one page must not end the connection of a scraper.
        .layer(CatchPanicLayer::new())
        // Not being ready is an answer, not an error.
        .layer(TraceLayer::new_for_http().on_failure(DefaultOnFailure::new().level(Level::DEBUG)))
}

/// Binds both address families where the system has both.
///
/// # Errors
/// The port is taken, or not ours to take.
pub fn listen(port: u16) -> std::io::Result<std::net::TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
    let open = |domain, address: SocketAddr| -> std::io::Result<Socket> {
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        if domain == Domain::IPV6 {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.listen(4096)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let socket = open(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into())
        .or_else(|_| open(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into()))
        .map_err(|error| std::io::Error::new(error.kind(), format!("listening on port {port}: {error}")))?;
    Ok(socket.into())
}
