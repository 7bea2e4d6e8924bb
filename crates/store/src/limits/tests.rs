use super::*;
use clients::Tag;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The middle of a minute.
static NOW: AtomicU64 = AtomicU64::new(1_800_000_030_000);

fn clock() -> u64 {
    NOW.load(Relaxed)
}

fn limits(pairs: &[(&str, u64)]) -> Limits {
    let mut limits = Limits::default();
    pairs.iter().for_each(|(name, limit)| assert!(limits.set(name, *limit)));
    limits
}

fn client(id: &str) -> Tag {
    Tag::Client(id.into())
}

const ONE: Cost = Cost { requests: 1, units: 0 };

/// Kills: counts that a reload begins anew, slots that outlive their request, a give-back that is lost.
#[tokio::test]
async fn alone_every_dimension_is_counted_here() {
    let all = ClientLimits::alone(clock);
    let subject = all.subject(&client("a"), &limits(&[("rpm", 3), ("concurrency", 1)]));
    let first = all.charge(&subject, ONE, true).await.expect("admitted");
    assert_eq!(first.standing.map(|standing| standing.remaining), Some(0), "no slot is left");
    let refused = all.charge(&subject, ONE, true).await.expect_err("one slot");
    assert!(matches!(refused, Denial::Refused(refusal) if refusal.concurrency));
    drop(first.permit);
    all.give_back(first.receipt);
    for _ in 0..3 {
        all.charge(&subject, ONE, true).await.expect("admitted");
    }
    let again = all.subject(&client("a"), &limits(&[("rpm", 3)]));
    assert!(all.charge(&again, ONE, true).await.is_err(), "other limits, the same count");
    let batch = Cost { requests: 4, units: 0 };
    let never = all.charge(&again, batch, true).await.expect_err("too big");
    assert_eq!(never, Denial::Never { dimension: "rpm", limit: 3 });
    all.tidy();
    assert!(all.charge(&all.subject(&client("a"), &limits(&[("rpm", 3)])), ONE, true).await.is_err());
}

/// Kills: clients of a shared plan that each have all of it; clients of one plan that share what is not shared.
#[tokio::test]
async fn a_shared_plan_is_one_pot_and_own_limits_are_measured_against_it() {
    let all = ClientLimits::alone(clock);
    let plan = Tag::Plan("team".into());
    let (a, b) = (all.subject(&plan, &limits(&[("rpm", 4)])), all.subject(&plan, &limits(&[("rpm", 2)])));
    all.charge(&a, ONE, false).await.expect("admitted");
    all.charge(&b, ONE, false).await.expect("admitted");
    assert!(all.charge(&b, ONE, false).await.is_err(), "the pot holds two already");
    all.charge(&a, ONE, false).await.expect("admitted");
    all.charge(&all.subject(&client("team"), &limits(&[("rpm", 1)])), ONE, false).await.expect("another pot");
}

/// Kills: memory that grows with every address there is, and addresses that are not limited because of it.
#[tokio::test]
async fn addresses_beyond_the_bound_are_counted_as_one() {
    let all = ClientLimits::alone(clock);
    let of = |number: usize| all.subject(&Tag::Address(number.to_string().into()), &limits(&[("rpm", 1)]));
    for number in 0..MOST_SUBJECTS {
        let subject = of(number);
        all.charge(&subject, ONE, false).await.expect("admitted");
    }
    all.charge(&of(MOST_SUBJECTS), ONE, false).await.expect("the first of the others");
    assert!(all.charge(&of(MOST_SUBJECTS + 1), ONE, false).await.is_err());
    assert!(all.charge(&of(1), ONE, false).await.is_err(), "who was known still is");
}

/// Nobody listens. Kills: releases that pile up while nobody hears them, until telling them takes longer than it may.
#[tokio::test]
async fn what_the_store_is_not_told_stays_bounded() {
    let target = crate::Target {
        url: Some("valkey://127.0.0.1:1".to_owned()),
        host: String::new(),
        port: 0,
        username: None,
        password: None,
        tls: false,
        unchecked: false,
        ca_file: None,
        prefix: "p".to_owned(),
        timeout: Duration::from_millis(50),
        replicas_assumed: 1,
        poll: Duration::from_secs(1),
    };
    let valkey = Valkey::new(&target, clock).expect("good settings");
    let lost = Lost { grace: Duration::from_secs(60), denies: false, slot_life: Duration::from_secs(15) };
    let all = ClientLimits::shared(clock, &valkey, lost);
    let subject = all.subject(&client("a"), &limits(&[("concurrency", 1)]));
    for _ in 0..10_000 {
        all.charge(&subject, ONE, true).await.expect("the one before has ended");
    }
    let told = subject.pot.local().released.len();
    assert!((1..=5_000).contains(&told), "{told} wait to be told");
}
