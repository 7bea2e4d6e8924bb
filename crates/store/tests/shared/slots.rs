//! Concurrency slots while their server is away.

use std::sync::Arc;
use std::time::Duration;

use store::{Charge, Lost, Subject};

use crate::counter::{Counter, acquainted};
use crate::replica::{now, target, until};
use crate::server::Server;

/// Longer than any test: no slot ends by itself.
const LIFE: Duration = Duration::from_secs(600);

async fn counter(server: &Server) -> Counter {
    let mut settings = target(server.port, "headgate");
    // The machine may be busy, and one wait for a frozen server is had by each.
    settings.timeout = Duration::from_secs(2);
    Counter::at(&settings, Lost { grace: Duration::ZERO, denies: false, slot_life: LIFE }).await
}

/// Takes a slot that must be, or become, free.
async fn take(counter: &Counter, subject: &Arc<Subject>) -> Charge {
    let deadline = now() + 60_000;
    loop {
        match counter.charge(subject).await {
            Ok(charge) => return charge,
            Err(denial) => assert!(now() < deadline, "a slot is never free: {denial:?}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Kills: an ask that had no answer and keeps its slot; slots taken meanwhile that are given to others, slots released
/// meanwhile that are not free; more than its share for a replica.
#[tokio::test]
async fn a_frozen_server_neither_keeps_slots_nor_gives_them_away() {
    let server = Server::start(&[]);
    let (a, b) = (counter(&server).await, counter(&server).await);
    acquainted(&a, &b).await;
    let (of_a, of_b) = (a.subject(&[("concurrency", 4)]), b.subject(&[("concurrency", 4)]));
    let first = take(&a, &of_a).await;
    let (theirs, spare) = (take(&b, &of_b).await, take(&b, &of_b).await);
    server.freeze();
    let second = a.charge(&of_a).await.expect("asked for in vain, and within the share");
    assert!(a.charge(&of_a).await.is_err() && b.charge(&of_b).await.is_err(), "each has its two");
    drop(first);
    let third = a.charge(&of_a).await.expect("one was released");
    drop(spare);
    server.thaw();
    until("found again", || !a.limits.is_degraded() && !b.limits.is_degraded()).await;
    let last = take(&b, &of_b).await;
    assert!(a.charge(&of_a).await.is_err() && b.charge(&of_b).await.is_err(), "two and two are held");
    drop((second, third, theirs, last));
    let mut all = Vec::new();
    for _ in 0..4 {
        all.push(take(&b, &of_b).await);
    }
    assert!(a.charge(&of_a).await.is_err(), "all are held");
}
