//! Limits of clients, counted by several replicas on one real Valkey.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use store::{Denial, Lost};

use crate::counter::{Counter, acquainted, day};
use crate::replica::{now, target, until};
use crate::server::Server;

/// Who stands still for so long was not given the processor, in milliseconds.
const STILL: u64 = 250;

/// What happened in a second.
#[derive(Clone, Copy, Default)]
struct Second {
    asked: u64,
    /// Somebody stood still: what a busy machine does in a second like that shows nothing.
    still: bool,
    /// Somebody counted alone, as after an outage: a machine that stands still for longer than a command may take is one.
    alone: bool,
}

#[derive(Default)]
struct Rush(Mutex<BTreeMap<u64, Second>>);

impl Rush {
    fn asked(&self, before: u64, now: u64, alone: bool) {
        let mut seconds = self.0.lock().expect("no panic");
        seconds.entry(now / 1000).or_default().asked += 1;
        for second in before / 1000..=now / 1000 {
            let second = seconds.entry(second).or_default();
            second.still |= now - before > STILL;
            second.alone |= alone;
        }
    }

    /// Whether all were counted together in this second.
    fn together(&self, second: u64) -> bool {
        self.0.lock().expect("no panic").get(&second).is_some_and(|second| !second.alone)
    }

    /// The full seconds since `began` in which far more was wanted than the limit of 1000, without a pause.
    fn full(&self, began: u64) -> Vec<u64> {
        let (first, running) = (began / 1000 + 1, now() / 1000);
        let seconds = self.0.lock().expect("no panic");
        let good = |second: &Second| second.asked >= 2_000 && !second.still && !second.alone;
        let since = seconds.range(first..running.max(first));
        since.filter(|(_, second)| good(second)).map(|(number, _)| *number).collect()
    }
}

/// Asks until it is told to stop; between which seconds each admission lies.
async fn rush(counter: Arc<Counter>, stop: Arc<AtomicBool>, rush: Arc<Rush>) -> Vec<(u64, u64)> {
    let subject = counter.subject(&[("rps", 1_000), ("rpd", 100_000_000)]);
    let (mut admitted, mut last) = (Vec::new(), now());
    while !stop.load(Relaxed) {
        let (before, alone) = (now(), counter.limits.is_degraded());
        match counter.charge(&subject).await {
            Ok(_) => admitted.push((before / 1000, now() / 1000)),
            // Others want the processor too.
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
        let over = now();
        rush.asked(last, over, alone || counter.limits.is_degraded());
        last = over;
    }
    admitted
}

/// 8 replicas, 1000 a second, far more wanted. An admission lies between two readings of the clock: one that lies in one
/// second for certain counts for "at most", one that may lie in it for "at least". Kills: a limit per replica, tokens of a
/// window spent in the next, tokens that are left where nobody wants them, and a round trip per request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_replicas_admit_a_thousand_in_every_full_second() {
    let server = Server::start(&[]);
    let (stop, seconds) = (Arc::new(AtomicBool::new(false)), Arc::new(Rush::default()));
    let mut counters = Vec::new();
    for _ in 0..8 {
        counters.push(Arc::new(Counter::on(&server, Duration::from_secs(15)).await));
    }
    let trips = || counters.iter().map(|counter| counter.trips()).sum::<u64>();
    let (trips_before, began) = (trips(), now());
    let ask = |counter: &Arc<Counter>| {
        tokio::spawn(rush(Arc::clone(counter), Arc::clone(&stop), Arc::clone(&seconds)))
    };
    let asking: Vec<_> = counters.iter().flat_map(|counter| [ask(counter), ask(counter)]).collect();
    until("five full seconds", || seconds.full(began).len() >= 5).await;
    let full = seconds.full(began);
    stop.store(true, Relaxed);
    let (mut surely, mut maybe) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    for task in asking {
        for (first, last) in task.await.expect("no panic") {
            if first == last {
                *surely.entry(first).or_default() += 1;
            }
            (first..=last).for_each(|second| *maybe.entry(second).or_default() += 1);
        }
    }
    let kept = |(second, least): (&u64, &u64)| *least <= 1_000 || !seconds.together(*second);
    assert!(surely.iter().all(kept), "{surely:?}");
    assert!(full.iter().all(|second| maybe[second] >= 990), "{maybe:?} in {full:?}");
    let (trips, admitted) = (trips() - trips_before, surely.values().sum::<u64>());
    assert!(trips * 4 <= admitted, "{trips} round trips for {admitted} admissions");
}

/// Kills: tokens of a dead replica that are given out again, and a limit that is dry because of them.
#[tokio::test]
async fn a_replica_that_dies_with_a_block_leads_to_no_more_and_little_less() {
    let server = Server::start(&[]);
    let (a, b) = (
        Counter::on(&server, Duration::from_secs(1)).await,
        Counter::on(&server, Duration::from_secs(1)).await,
    );
    let started = day();
    let (of_a, of_b) = (a.subject(&[("rpd", 2_000)]), b.subject(&[("rpd", 2_000)]));
    let first = a.spend(&of_a, 100).await;
    drop(a);
    let second = b.spend(&of_b, 10_000).await;
    assert!((1_900..=2_000).contains(&(first + second)) || day() > started, "{first} and {second}");
}

/// Kills: a block that an idle replica keeps while another is dry; one that is credited twice.
#[tokio::test]
async fn what_a_replica_does_not_use_another_gets_within_the_window() {
    let server = Server::start(&[]);
    let life = Duration::from_secs(15);
    let (a, b) = (Counter::on(&server, life).await, Counter::on(&server, life).await);
    let started = day();
    let (of_a, of_b) = (a.subject(&[("rpd", 1_000)]), b.subject(&[("rpd", 1_000)]));
    let mut spent = a.spend(&of_a, 105).await;
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while spent < 1_000 && std::time::Instant::now() < deadline {
        spent += b.spend(&of_b, 10_000).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    spent += a.spend(&of_a, 10).await + b.spend(&of_b, 10).await;
    assert!(spent == 1_000 || day() > started, "{spent}");
}

/// Kills: slots counted per process, a slot that dies with its TTL while it is held, one that outlives its replica.
#[tokio::test]
async fn slots_are_shared_renewed_and_end_with_their_replica() {
    let server = Server::start(&[]);
    // It is renewed three times as often: a machine that stands still for two seconds loses none.
    let life = Duration::from_secs(4);
    let (a, b) = (Counter::on(&server, life).await, Counter::on(&server, life).await);
    let (of_a, of_b) = (a.subject(&[("concurrency", 1)]), b.subject(&[("concurrency", 1)]));
    let held = a.charge(&of_a).await.expect("admitted");
    let until_old = now() + 6_000;
    while now() < until_old {
        let refused = b.charge(&of_b).await.expect_err("the slot is held");
        assert!(matches!(refused, Denial::Refused(refusal) if refusal.concurrency));
    }
    drop(held);
    let mut second = b.charge(&of_b).await;
    while second.is_err() {
        second = b.charge(&of_b).await;
    }
    assert!(a.charge(&of_a).await.is_err(), "kills: releasing somebody else's slot");
    drop(b);
    let died = now();
    while a.charge(&of_a).await.is_err() {
        assert!(now() < died + 60_000, "the slot of a dead replica is never free");
    }
    assert!(second.is_ok());
}

/// Kills: a server that forgot the scripts and refuses everything; one that came back empty and lets a slot be taken twice.
#[tokio::test]
async fn a_server_that_forgets_is_told_again() {
    let mut server = Server::start(&[]);
    let life = Duration::from_secs(2);
    let counter = Counter::on(&server, life).await;
    let started = day();
    let exact = counter.subject(&[("rpd", 60)]);
    let mut spent = 0;
    for _ in 0..100 {
        server.ask(&["SCRIPT", "FLUSH"]);
        spent += u64::from(counter.charge(&exact).await.is_ok());
    }
    assert!(spent == 60 || day() > started, "{spent}");
    let slots = counter.subject(&[("concurrency", 1)]);
    let held = counter.charge(&slots).await.expect("admitted");
    server.restart();
    until("found again", || !counter.limits.is_degraded()).await;
    let other = Counter::on(&server, life).await;
    let theirs = other.subject(&[("concurrency", 1)]);
    let deadline = now() + 60_000;
    while other.charge(&theirs).await.is_ok() {
        assert!(now() < deadline, "what is held was not told again");
    }
    drop(held);
}

/// Kills: a server that is taken for lost after a second by who was told to wait longer for it.
#[tokio::test]
async fn a_pause_shorter_than_the_timeout_is_no_outage() {
    let server = Server::start(&[]);
    let mut settings = target(server.port, "headgate");
    settings.timeout = Duration::from_secs(20);
    let lost = Lost { grace: Duration::ZERO, denies: false, slot_life: Duration::from_secs(60) };
    let counter = Counter::at(&settings, lost).await;
    let subject = counter.subject(&[("rpd", 20)]);
    server.freeze();
    let pause = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(!counter.limits.is_degraded());
        server.thaw();
    };
    let (charged, ()) = tokio::join!(counter.charge(&subject), pause);
    assert!(charged.is_ok());
    let asked = counter.valkey.counts(store::Op::Presence).0;
    until("asked again", || counter.valkey.counts(store::Op::Presence).0 > asked + 1).await;
    assert_eq!(counter.valkey.counts(store::Op::Presence).1, 0, "answered late, but answered");
}

/// Kills: an outage of which each request waits, that is warned of again and again, or that a late answer ends; a
/// replica's share that is the whole; a refusal that outlives the outage.
#[tokio::test]
async fn a_frozen_server_costs_one_wait_and_leaves_a_share() {
    let server = Server::start(&[]);
    let lost = Lost { grace: Duration::ZERO, denies: false, slot_life: Duration::from_secs(15) };
    let mut settings = target(server.port, "headgate");
    // A busy machine must not look like a frozen server.
    settings.timeout = Duration::from_secs(1);
    let a = Counter::at(&settings, lost).await;
    let b = Counter::on(&server, Duration::from_secs(15)).await;
    acquainted(&a, &b).await;
    let started = day();
    let subject = a.subject(&[("rpd", 20)]);
    server.freeze();
    let began = std::time::Instant::now();
    assert!(a.charge(&subject).await.is_ok());
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(900), "{waited:?}: it was not even asked");
    assert!(a.limits.is_degraded());
    let trips = a.valkey.counts(store::Op::Limit).0;
    let share = 1 + a.spend(&subject, 100).await;
    assert!(share == 10 || day() > started, "{share} of 20, by two");
    assert_eq!(a.valkey.counts(store::Op::Limit).0, trips, "kills: asking a server that is known to be away");
    server.thaw();
    until("found again", || !a.limits.is_degraded()).await;
    assert!(a.charge(&subject).await.is_ok());
}
