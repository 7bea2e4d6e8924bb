//! The request's body: read under the deadline, bounded by the settings and by what the process may hold.

use super::early;
use crate::net::Reservation;
use crate::reply::Problem;
use crate::upstream::poll_frame;
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use http::Version;
use http::request::Parts;
use http_body::Body as _;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::time::Instant;

/// The body and the part of the budget that it takes for as long as it is held.
pub(super) async fn read(
    worker: &Worker,
    head: &Parts,
    mut body: Incoming,
    deadline: Instant,
) -> Result<(Bytes, Reservation), Problem> {
    let most = worker.app.settings.max_body_bytes;
    let declared = early::declared(head);
    if declared.is_some_and(|length| length > most) {
        early::linger(head, body);
        return Err(Problem::BodyTooLarge { most });
    }
    let mut reservation = worker.bodies.open();
    let http1 = head.version < Version::HTTP_2;
    let reading = collect(worker, &mut body, http1, declared, most, &mut reservation);
    match tokio::time::timeout_at(deadline.into(), reading).await {
        Ok(Ok(body)) => Ok((body, reservation)),
        Ok(Err(problem)) => {
            if matches!(problem, Problem::BodyTooLarge { .. }) {
                early::linger(head, body);
            }
            Err(problem)
        }
        Err(_) if reservation.is_starved() => Err(overloaded(worker)),
        Err(_) => Err(Problem::SlowBody),
    }
}

/// Room in the budget for a message that is here already.
pub(super) async fn hold(worker: &Worker, bytes: usize, deadline: Instant) -> Result<Reservation, Problem> {
    let mut reservation = worker.bodies.open();
    match tokio::time::timeout_at(deadline.into(), reserve(worker, &mut reservation, bytes)).await {
        Ok(Ok(())) => Ok(reservation),
        Ok(Err(problem)) => Err(problem),
        Err(_) => Err(overloaded(worker)),
    }
}

async fn collect(
    worker: &Worker,
    body: &mut Incoming,
    http1: bool,
    declared: Option<u64>,
    most: u64,
    reservation: &mut Reservation,
) -> Result<Bytes, Problem> {
    let declared = declared.and_then(|length| usize::try_from(length).ok());
    if let Some(length) = declared {
        reserve(worker, reservation, length).await?;
    }
    let mut first = Bytes::new();
    let mut all: Option<BytesMut> = None;
    while !body.is_end_stream() {
        let Some(frame) = poll_fn(|cx| poll_frame(body, http1, cx)).await else { break };
        let Ok(chunk) = frame.map_err(|_| Problem::BrokenBody)?.into_data() else { continue };
        let held = all.as_ref().map_or(first.len(), BytesMut::len) + chunk.len();
        if held as u64 > most {
            return Err(Problem::BodyTooLarge { most });
        }
        if declared.is_none() {
            reserve(worker, reservation, chunk.len()).await?;
        }
        match &mut all {
            Some(all) => all.extend_from_slice(&chunk),
            None if first.is_empty() => first = chunk,
            None => {
                let mut joined = BytesMut::with_capacity(declared.unwrap_or(held * 2));
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&chunk);
                all = Some(joined);
            }
        }
    }
    Ok(all.map_or(first, BytesMut::freeze))
}

async fn reserve(worker: &Worker, reservation: &mut Reservation, bytes: usize) -> Result<(), Problem> {
    if !reservation.could_hold(bytes) {
        return Err(overloaded(worker));
    }
    if !reservation.try_grow(bytes) {
        reservation.grow(bytes).await;
    }
    Ok(())
}

fn overloaded(worker: &Worker) -> Problem {
    Problem::overloaded(&mut *worker.rng.borrow_mut())
}

/// A path segment with its `%XX` decoded; `None` when it has none, or is not UTF-8.
pub(super) fn percent_decoded(segment: &str) -> Option<String> {
    if !segment.contains('%') {
        return None;
    }
    percent_encoding::percent_decode_str(segment).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}
