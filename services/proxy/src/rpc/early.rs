//! Requests that are refused before their body is wanted: on no chain, by nobody who may, too large. Decides what
//! becomes of the body: a short one is read for its ids, which every error echoes; a long one is read on for a while
//! and thrown away, because a client that is still sending would get a reset instead of its answer.

use super::refused;
use crate::net::Body;
use crate::reply::Problem;
use crate::why::RequestId;
use crate::worker::Worker;
use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_LENGTH, EXPECT};
use http::request::Parts;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use std::time::Duration;

/// The longest body that is read for its ids; it needs no room in the budget.
const SHORT: usize = 64 * 1024;
/// How long ids are waited for: they come with the head, or the refusal goes without them.
const IDS: Duration = Duration::from_millis(250);
/// How long a body that nobody wants is read.
const LINGER: Duration = Duration::from_secs(5);

/// The answer to a request that is refused whatever its body says.
pub(super) async fn refuse(
    worker: &Worker,
    problem: &Problem,
    head: &Parts,
    mut body: Incoming,
    id: RequestId,
) -> Response<Body> {
    let read = match waits_for_us(head) || declared(head).is_some_and(|length| length > SHORT as u64) {
        true => None,
        false => tokio::time::timeout(IDS, short(&mut body)).await.ok().flatten(),
    };
    let now = crate::clock::unix_ms();
    let Some(text) = read else {
        linger(head, body);
        return problem.respond(None, id, now);
    };
    let most = usize::try_from(worker.app.settings.max_batch).unwrap_or(usize::MAX);
    match jsonrpc::parse(&text, most) {
        Ok(envelope) => refused(problem, &envelope, &text, id),
        Err(malformed) => problem.respond(malformed.id(&text), id, now),
    }
}

/// The body's length, where the head tells it.
pub(super) fn declared(head: &Parts) -> Option<u64> {
    head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The whole body, if it is short.
async fn short(body: &mut Incoming) -> Option<Bytes> {
    Some(Limited::new(body, SHORT).collect().await.ok()?.to_bytes())
}

/// Reads on what nobody wants, while the answer goes out.
pub(super) fn linger(head: &Parts, mut body: Incoming) {
    if waits_for_us(head) {
        return;
    }
    tokio::task::spawn_local(tokio::time::timeout(LINGER, async move {
        while let Some(Ok(_)) = body.frame().await {}
    }));
}

/// Whether the client sends its body only after a word of ours (RFC 9110, 10.1.1): it gets the answer instead.
fn waits_for_us(head: &Parts) -> bool {
    head.headers.contains_key(EXPECT)
}
