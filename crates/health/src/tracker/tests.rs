use proptest::prelude::*;

use super::*;

const RULES: Rules = Rules {
    down_after: 2,
    up_after: 3,
    eject_after: 2,
    return_after: 2,
    proxied: true,
    fresh_for_ms: 100_000,
};

fn tracker() -> Tracker {
    Tracker::new(RULES)
}

/// Ejected at `at` by two failed calls.
fn ejected(at: u64) -> Tracker {
    let mut tracker = tracker();
    assert_eq!(tracker.failed(at - 10, at - 5), None);
    assert_eq!(tracker.failed(at - 10, at), Some(Change::Ejected));
    tracker
}

/// Probes a second apart, the state after each: `g` good, `.` bad.
fn states(probes: &str) -> String {
    let mut tracker = tracker();
    let mut now = 1_000;
    let mut state = |probe| {
        now += 1_000;
        tracker.probe_result(now - 100, now, probe == 'g');
        if tracker.view(now).rank == Rank::Good { 'g' } else { '.' }
    };
    probes.chars().map(&mut state).collect()
}

#[test]
fn the_first_probe_counts_at_once_and_changes_are_debounced() {
    let check = |probes, expected: &str| assert_eq!(states(probes), expected, "probes {probes}");
    check("g", "g");
    check(".", ".");
    check("g.g.g", "ggggg");
    check("g..", "gg.");
    check(".ggg", "...g");
    check(".gg.ggg", "......g");
}

#[test]
fn ranks_follow_what_was_seen_last() {
    let check = |seen: Option<bool>, after: u64, rank| {
        let mut tracker = tracker();
        if let Some(ok) = seen {
            tracker.probe_result(0, 1_000, ok);
        }
        let view = tracker.view(1_000 + after);
        assert_eq!((view.rank, view.usable), (rank, rank != Rank::Excluded), "seen {seen:?}, {after} ms ago");
    };
    check(None, 0, Rank::Unseen);
    check(Some(true), 0, Rank::Good);
    check(Some(true), 900_000, Rank::Good);
    check(Some(false), 99_999, Rank::Excluded);
    check(Some(false), 100_000, Rank::ExpiredBad);
    assert!(
        Rank::Good < Rank::Unseen && Rank::Unseen < Rank::ExpiredBad && Rank::ExpiredBad < Rank::Excluded
    );
}

// Kills: counting failures without a success in between as consecutive.
#[test]
fn failures_in_a_row_eject_at_once() {
    let mut tracker = tracker();
    assert_eq!(tracker.failed(0, 1), None);
    assert_eq!(tracker.served(0, 2), None);
    assert_eq!(tracker.failed(0, 3), None);
    assert_eq!(tracker.failed(0, 4), Some(Change::Ejected));
    assert_eq!(tracker.view(4).rank, Rank::Excluded);
    assert_eq!(tracker.failed(0, 5), None, "once");
}

#[test]
fn without_ephemeral_checks_proxied_calls_say_nothing() {
    let mut tracker = Tracker::new(Rules { proxied: false, ..RULES });
    tracker.warned(0);
    for now in 1..100 {
        assert_eq!(tracker.failed(now, now), None);
    }
    assert!(tracker.view(100).usable);
    assert!(!tracker.take_trial(u64::MAX));
}

// Kills: counting a probe that began before the ejection.
#[test]
fn an_ejection_ends_after_good_probes_begun_after_it() {
    let mut tracker = ejected(1_000);
    assert_eq!(tracker.probe_result(900, 1_100, true), Some(Change::Up));
    assert_eq!(tracker.probe_result(1_000, 1_200, true), None);
    assert_eq!(tracker.probe_result(1_300, 1_400, true), None);
    assert_eq!(tracker.probe_result(1_500, 1_600, false), None, "breaks the row");
    assert_eq!(tracker.probe_result(1_700, 1_800, true), None);
    assert!(!tracker.view(1_800).usable);
    assert_eq!(tracker.probe_result(1_900, 2_000, true), Some(Change::Returned));
    assert!(tracker.view(2_000).usable);
}

// Kills: keeping the failures of before the return (one failure would then eject again, as the predecessor did).
#[test]
fn after_the_return_the_count_begins_anew() {
    let mut tracker = ejected(1_000);
    tracker.probe_result(1_100, 1_200, true);
    tracker.probe_result(1_300, 1_400, true);
    assert_eq!(tracker.failed(1_350, 1_500), None, "sent before the return");
    assert_eq!(tracker.failed(1_500, 1_600), None);
    assert_eq!(tracker.failed(1_500, 1_700), Some(Change::Ejected));
}

#[test]
fn a_probe_found_bad_is_not_undone_by_the_end_of_an_ejection() {
    let mut tracker = ejected(1_000);
    tracker.probe_result(1_100, 1_200, false);
    assert_eq!(tracker.served(6_000, 6_100), Some(Change::Returned));
    assert_eq!(tracker.view(6_100).rank, Rank::Excluded);
}

#[test]
fn trials_come_after_five_seconds_doubling_to_a_minute() {
    let mut tracker = ejected(1_000);
    let mut now = 1_000;
    let mut waits = Vec::new();
    for _ in 0..6 {
        let due = tracker.view(now).trial_due.expect("ejected");
        waits.push(due - now);
        assert!(!tracker.take_trial(due - 1));
        assert!(tracker.take_trial(due));
        assert!(!tracker.take_trial(due), "one call only");
        tracker.failed(due, due + 10);
        now = due + 10;
    }
    assert_eq!(waits, [5_000, 10_000, 20_000, 40_000, 60_000, 60_000]);
}

#[test]
fn a_trial_that_is_answered_ends_the_ejection() {
    let mut tracker = ejected(1_000);
    assert_eq!(tracker.served(990, 1_050), None, "was under way at the ejection");
    assert!(tracker.take_trial(6_000));
    assert_eq!(tracker.served(6_000, 6_050), Some(Change::Returned));
    assert!(tracker.view(6_050).usable);
    assert_eq!(tracker.view(6_050).trial_due, None);
}

// Kills: waiting for the report of a trial whose client went away.
#[test]
fn a_trial_that_is_lost_is_repeated_after_the_same_wait() {
    let mut tracker = ejected(1_000);
    assert!(tracker.take_trial(6_000));
    assert_eq!(tracker.view(6_000).trial_due, Some(11_000));
    assert!(tracker.take_trial(11_000));
}

#[test]
fn failures_that_are_no_trial_leave_the_trial_alone() {
    let mut tracker = ejected(1_000);
    tracker.failed(995, 5_900);
    assert_eq!(tracker.view(5_900).trial_due, Some(6_000));
    assert_eq!(tracker.view(5_900).failed_at, 5_900);
    assert!(tracker.take_trial(6_000));
    tracker.failed(995, 6_010);
    assert_eq!(tracker.view(6_010).trial_due, Some(11_000), "the trial is still out");
    tracker.failed(6_000, 6_020);
    assert_eq!(tracker.view(6_020).trial_due, Some(16_020));
}

#[test]
fn a_warning_makes_one_failure_enough_for_a_minute() {
    let eject = |after: u64| {
        let mut tracker = tracker();
        tracker.warned(1_000);
        tracker.failed(1_000 + after, 1_000 + after)
    };
    assert_eq!(eject(59_999), Some(Change::Ejected));
    assert_eq!(eject(60_000), None);
    let mut warned = tracker();
    warned.warned(1_000);
    assert!(warned.view(1_001).usable, "a warning alone excludes nobody");
}

#[test]
fn reports_of_another_process_are_taken_as_they_are() {
    let report = |healthy, ok, begun| Report { healthy, ok, begun, measured_at: begun + 50 };
    let mut tracker = ejected(1_000);
    assert_eq!(tracker.reported(&report(true, true, 2_000)), Some(Change::Up));
    assert_eq!(tracker.reported(&report(true, true, 2_000)), None, "read twice, counted once");
    assert_eq!(tracker.reported(&report(false, false, 1_500)), None, "older than what is known");
    assert_eq!(tracker.reported(&report(true, true, 3_000)), Some(Change::Returned));
    assert_eq!(tracker.reported(&report(false, false, 4_000)), Some(Change::Down));
    assert_eq!(tracker.view(4_100).rank, Rank::Excluded);
}

// Kills: probing a dead endpoint every few seconds for as long as it is ejected.
#[test]
fn the_next_probe_comes_soon_while_the_evidence_disagrees() {
    let check = |mut tracker: Tracker, probes: &str, standing| {
        for (now, probe) in (2_000..).zip(probes.chars()) {
            tracker.probe_result(now, now, probe == 'g');
        }
        assert_eq!(tracker.standing(), standing, "probes {probes}");
    };
    check(tracker(), "", Standing::Bad);
    check(tracker(), "g", Standing::Good);
    check(tracker(), "g.", Standing::Unsettled);
    check(tracker(), "g..", Standing::Bad);
    check(tracker(), "g..g", Standing::Unsettled);
    check(ejected(1_000), "g", Standing::Unsettled);
    check(ejected(1_000), ".", Standing::Bad);
    check(ejected(1_000), "gg", Standing::Good);
}

#[test]
fn fresh_means_three_intervals_and_a_timeout() {
    assert_eq!(Rules::fresh_for(30_000, 10_000, 5_000), 95_000);
    assert_eq!(Rules::fresh_for(0, 30_000, 5_000), 95_000);
    assert_eq!(Rules::fresh_for(u64::MAX, 0, 1), u64::MAX);
}

proptest! {
    // An endpoint that answers is in service again, whatever was seen before.
    #[test]
    fn good_probes_always_bring_it_back(events in prop::collection::vec((0..5_u8, 0..20_000_u64), 0..60)) {
        let mut tracker = tracker();
        let mut now = 1_000;
        for (event, later) in events {
            now += later;
            match event {
                0 => drop(tracker.probe_result(now - 10, now, false)),
                1 => drop(tracker.failed(now - 10, now)),
                2 => drop(tracker.served(now - 10, now)),
                3 => drop(tracker.take_trial(now)),
                _ => tracker.warned(now),
            }
        }
        for probe in 1..=3 {
            tracker.probe_result(now + probe * 10, now + probe * 10 + 5, true);
        }
        prop_assert_eq!(tracker.view(now + 40).rank, Rank::Good);
        prop_assert_eq!(tracker.standing(), Standing::Good);
    }
}
