//! The ways in which the predecessor left accounts parked for a day or more, each ending with the account back.

use std::time::Duration;

use recovery::{Block, Hit, Kind, Policy, Probe, Record, hit, parked, probe_due, probed};

const NOW: u64 = 1_800_000_000_000;
const LIMITED: Probe = Probe::Limited { kind: Kind::Burst, hint: None };

fn default_block() -> Policy {
    Policy::new(Some(&Block::default()))
}

fn burst(now: u64) -> Hit {
    Hit { now, hint: None, kind: Kind::Burst, window_ms: 60_000, gap_ms: 0 }
}

/// Probes when due, cleanly, until the account is back; the milliseconds that took.
fn back_after(mut record: Record, policy: &Policy, from: u64) -> u64 {
    let mut now = from;
    while let Some(due) = probe_due(&record, policy, now) {
        now = now.max(due);
        record = probed(&record, policy, Probe::Clean, now, 0.5);
    }
    assert!(!parked(&record, now));
    now - from
}

#[test]
fn a_checker_saw_the_hit_first_and_nobody_else_did() {
    let stored = hit(&Record::default(), &Policy::default(), &burst(NOW), 0.5).encode();
    let elsewhere = Record::decode(&stored).expect("a record");
    assert_eq!(back_after(elsewhere, &Policy::default(), NOW), 500);
}

#[test]
fn every_process_restarts_during_the_episode() {
    let policy = default_block();
    let mut record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    record = probed(&record, &policy, LIMITED, NOW + 300_000, 0.5);
    // Down for longer than the wait: the probe is overdue when the first process is up again.
    let restarted = Record::decode(&record.encode()).expect("a record");
    assert_eq!(back_after(restarted, &policy, NOW + 7_200_000), 300_000);
}

#[test]
fn every_retry_fails() {
    let policy = default_block();
    let mut record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    let mut now = NOW;
    for _ in 0..10 {
        now = probe_due(&record, &policy, now).expect("parked");
        record = probed(&record, &policy, LIMITED, now, 0.5);
    }
    // It rests until a day after the first hit, and then two clean probes bring it back.
    assert_eq!(back_after(record, &policy, now), NOW + 86_400_000 - now + 300_000);
}

#[test]
fn the_store_could_not_be_read_when_the_probe_was_due() {
    let policy = Policy::default();
    let record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    // Nothing was probed or written for a while; the same record is read again.
    assert_eq!(back_after(record, &policy, NOW + 30_000), 0);
}

#[test]
fn a_hit_arrives_while_the_episode_is_ending() {
    let policy = Policy::default();
    let record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    let before = hit(&record, &policy, &burst(NOW + 499), 0.5);
    assert_eq!(back_after(before, &policy, NOW + 499), 1);
    let back = probed(&record, &policy, Probe::Clean, NOW + 500, 0.5);
    let after = hit(&back, &policy, &burst(NOW + 501), 0.5);
    assert_eq!(back_after(after, &policy, NOW + 501), 1_000);
}

#[test]
fn hits_keep_arriving_without_winding_the_wait_back() {
    let policy = Policy::default();
    let mut record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    let parked_until = record.parked_until;
    for later in 1..500 {
        record = hit(&record, &policy, &burst(NOW + later), 0.5);
    }
    assert_eq!(record.parked_until, parked_until);
}

#[test]
fn the_probe_was_lost_with_the_process_that_sent_it() {
    let policy = Policy::default();
    let record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    assert_eq!(back_after(record, &policy, NOW + 510), 0);
}

#[test]
fn the_store_was_flushed() {
    let policy = default_block();
    let mut record = hit(&Record::default(), &policy, &burst(NOW), 0.5);
    assert!(parked(&record, NOW + 1));
    record = Record::default();
    assert!(!parked(&record, NOW + 1), "nothing is remembered, so nothing is kept out");
    let again = hit(&record, &policy, &burst(NOW + 2), 0.5);
    assert_eq!(back_after(again, &policy, NOW + 2), 600_000);
}

#[test]
fn the_settings_were_made_shorter_by_a_reload() {
    let patient = default_block();
    let hasty = Policy::new(Some(&Block {
        initial_backoff: Duration::from_secs(1),
        max_backoff: Duration::from_secs(2),
        reset_after: Duration::from_secs(10),
        ..Block::default()
    }));
    let mut record = hit(&Record::default(), &patient, &burst(NOW), 0.5);
    let mut now = NOW;
    for _ in 0..10 {
        now = probe_due(&record, &patient, now).expect("parked");
        record = probed(&record, &patient, LIMITED, now, 0.5);
    }
    let an_hour = 3_600_000;
    assert!(
        back_after(record, &hasty, now) <= an_hour + 1_000,
        "a rest of the old settings is cut to the new"
    );
}
