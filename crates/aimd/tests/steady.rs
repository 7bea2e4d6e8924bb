//! What holds of a steady level, whatever happens to it.

use aimd::Learned;
use aimd::steady::{Level, Look, Refusal, Rise, Seen, Trial, back, refused, served};
use proptest::prelude::*;

const NOW: u64 = 1_800_000_000_000;
const SECOND: u64 = 1_000;
const LEAST: f64 = 3.0;

fn refusal(sent_at: u64, used: &[(u64, f64)]) -> Refusal<'_> {
    Refusal {
        sent_at,
        used,
        held: 0.0,
        burst: 1.0,
        proven: 1.0,
        requests: 1,
        probe: false,
        named_window_ms: None,
        outlasted: f64::INFINITY,
        stated: None,
        round_trip_ms: 100,
        least: LEAST,
        chance: 0.5,
    }
}

fn seen(sent_at: u64, used: f64) -> Seen {
    Seen {
        sent_at,
        used,
        held: 0.0,
        burst: 1.0,
        answers: 1.0,
        clipped: false,
        round_trip_ms: 100,
        shorter_ms: None,
    }
}

/// A level of 199 per second, refused at 200.
fn found() -> Option<Level> {
    let mut known = None;
    let moved = refused(&mut known, &refusal(NOW, &[(1_000, 200.0), (10_000, 200.0)]), NOW + 100);
    assert_eq!(moved.map(|moved| (moved.window_ms, moved.from, moved.to)), Some((1_000, None, 199.0)));
    known
}

/// Serves evenly from `from` on for `seconds`, all of the ceiling of the time or `part` of it.
fn use_it(known: &mut Option<Level>, from: u64, seconds: u64, part: f64) -> u64 {
    let (level, mut look) = (known.as_mut().expect("a level"), Look::default());
    let until = from + seconds * SECOND;
    for at in (from..until).step_by(50) {
        served(
            level,
            &mut look,
            &Seen { answers: level.level / 20.0, ..seen(at, part * level.ceiling()) },
            at + 100,
        );
    }
    until
}

/// Kills: growth by time, growth by answers alone.
#[test]
fn nothing_grows_without_use_of_all_of_it() {
    let mut known = found();
    let before = known.expect("found").level;
    let until = use_it(&mut known, NOW + 1_000, 600, 0.9);
    assert_eq!(known.expect("found").level, before);
    // A week with a request an hour.
    let mut look = Look::default();
    for hour in 0..168 {
        let at = until + hour * 3_600 * SECOND;
        served(known.as_mut().expect("found"), &mut look, &seen(at, 1.0), at + 100);
    }
    assert_eq!(known.expect("found").ceiling(), before);
}

/// Kills: a trial that needs no use above the level, and one that never ends.
#[test]
fn a_limit_that_trebled_is_found_within_a_minute() {
    let mut known = found();
    let until = use_it(&mut known, NOW + 1_000, 60, 1.0);
    assert!(known.expect("found").level > 600.0, "{known:?} at {until}");
}

/// Kills: a cut by what was refused after a single refusal, and two cuts in one episode.
#[test]
fn only_a_second_refusal_lowers_the_level_and_only_once() {
    let mut known = found();
    use_it(&mut known, NOW + 1_000, 3, 0.5);
    let level = known.expect("found").level;
    let at = NOW + 5_000;
    let used = [(1_000, 150.0), (10_000, 1_500.0)];
    refused(&mut known, &refusal(at, &used), at + 100);
    assert!((known.expect("found").level - 0.995 * level).abs() < 0.01, "kills: halving on a stray");
    refused(&mut known, &refusal(at + 10, &used), at + 110);
    let confirmed = known.expect("found").level;
    assert!((140.0..150.0).contains(&confirmed), "{confirmed}");
    for late in 20..90 {
        refused(&mut known, &refusal(at + late, &[(1_000, 20.0), (10_000, 200.0)]), at + 100 + late);
    }
    assert_eq!(known.expect("found").level, confirmed, "one episode");
}

/// Kills: a fall that goes on for as long as something is refused every other window, by chance or not.
#[test]
fn a_fall_is_followed_for_two_windows_and_no_longer() {
    let mut known = found();
    let at = NOW + 5_000;
    let mut kept = |at| {
        let before = known.expect("found").level;
        refused(&mut known, &refusal(at, &[(1_000, 0.8 * before)]), at + 20);
        known.expect("found").level / before
    };
    let (first, second) = (kept(at), kept(at + 10));
    assert!(first > 0.99 && second < 0.9, "refused twice: {first}, {second}");
    assert!(kept(at + 1_500) < 0.9, "one is enough now");
    for later in [2_900, 4_300, 5_700] {
        let kept = kept(at + later);
        assert!((kept - 0.995).abs() < 1e-6, "{kept} after {later} ms");
    }
}

/// Trials apart. Kills: patience that counts from the last confirmed refusal and not from the last one: what is given back
/// each window would be refused each window, with nothing paid.
#[test]
fn a_level_that_is_refused_time_and_again_is_not_climbed_unpaid() {
    let mut known = found();
    let mut at = NOW + 10_000;
    for round in 0..30 {
        let level = known.as_mut().expect("found");
        (level.debt, level.next) = (40.0, u64::MAX);
        let before = level.level;
        at = use_it(&mut known, at, 4, 1.0);
        assert!(known.expect("found").ceiling() <= before, "round {round}: {known:?}");
        let used = [(1_000, before), (10_000, 10.0 * before)];
        refused(&mut known, &refusal(at, &used), at + 100);
        at += SECOND;
    }
    let before = known.expect("found").level;
    known.as_mut().expect("found").debt = 40.0;
    use_it(&mut known, at, 70, 1.0);
    assert!(known.expect("found").level > before, "once it is quiet: {known:?}");
}

/// Kills: a level deep in debt that is tried oftener than one that owes little: five a minute refuse a tenth of all. And one
/// that is tried after a minute however short its window: a limit per second that trebled was found after a minute and a half.
#[test]
fn who_owes_much_is_not_tried_the_sooner() {
    for (window_ms, deep) in [(1_000, 30), (10_000, 20), (60_000, 20)] {
        let due = |level, debt| {
            let mut known = found().expect("found");
            (known.level, known.debt, known.window_ms) = (level, debt, window_ms);
            (known.trial_due() - known.settled) / window_ms
        };
        for level in [5.0, 60.0, 2_000.0] {
            assert!(due(level, 40.0) >= due(level, 1.0), "{level}");
        }
        assert_eq!([due(5.0, 40.0), due(2_000.0, 40.0), due(2_000.0, 1.0)], [60, deep, 14], "{window_ms}");
    }
}

/// Kills: a longer window for a limit that wavers, and none for one that remembers longer.
#[test]
fn a_rise_that_falls_back_twice_lengthens_the_window_if_it_was_high() {
    let window_after = |times: f64| {
        let mut known = found();
        let level = known.as_mut().expect("found");
        let (base, at) = (level.level, NOW + 30_000);
        level.rise =
            Rise { base, top: times * base, at: at - 5_000, falses: 1, false_at: at - 10_000, good: base };
        let used = [(1_000, 190.0), (10_000, 1_950.0)];
        refused(&mut known, &refusal(at, &used), at + 100);
        refused(&mut known, &refusal(at + 10, &used), at + 110);
        known.expect("found").window_ms
    };
    assert_eq!((window_after(1.17), window_after(1.3)), (1_000, 10_000));
}

/// Kills: a limit per minute where refusals by chance come at a level per second: a minute at its pace is the same each time.
#[test]
fn a_longer_window_suits_only_what_the_levels_pace_did_not_fill() {
    let window_after = |part: f64| {
        let mut known = found();
        for minute in 1..6 {
            let (level, at) = (known.expect("found").level, NOW + 60_000 * minute);
            // Since it rested just now, the last second is not full.
            let used = [(1_000, 0.5 * level), (10_000, 9.0 * level), (60_000, part * 60.0 * 199.0)];
            refused(&mut known, &refusal(at, &used), at + 100);
        }
        known.expect("found").window_ms
    };
    assert_eq!([0.95, 0.8, 0.5].map(window_after), [1_000, 1_000, 60_000]);
}

/// Kills: a failed trial that takes something from the level.
#[test]
fn a_refused_trial_lowers_nothing() {
    let mut known = found();
    let level = known.expect("found").level;
    let mut at = NOW + 1_000;
    while known.expect("found").trial == Trial::None {
        at = use_it(&mut known, at, 1, 1.0);
    }
    let used = [(1_000, level + 0.5)];
    let moved = refused(&mut known, &refusal(at, &used), at + 100);
    assert!(moved.is_some(), "the ceiling fell");
    assert!((known.expect("found").level - level).abs() < 0.01 * level, "{known:?}");
    assert_eq!(known.expect("found").trial, Trial::None);
}

/// Kills: a level that falls for a burst, a burst blamed that is served all the time, and a depth of less than a request.
#[test]
fn a_burst_that_was_never_served_is_blamed_before_the_level() {
    let used = [(1_000, 120.0), (10_000, 1_200.0)];
    let after = |burst, proven| {
        let mut known = found();
        let at = NOW + 5_000;
        refused(&mut known, &Refusal { burst, proven, ..refusal(at, &used) }, at + 100);
        known.expect("found")
    };
    let before = found().expect("found");
    let blamed = after(20.0, 8.0);
    assert_eq!(blamed.level, before.level);
    let depth = blamed.depth * blamed.ceiling();
    assert!((18.9..19.1).contains(&depth), "one less than was refused: {depth}");
    let usual = after(8.0, 8.0);
    assert!(usual.level < before.level && usual.depth == before.depth, "{usual:?}");
    let mut shallow = found();
    for second in 5..10 {
        let at = NOW + second * SECOND;
        let one = Refusal { burst: 2.0, proven: 1.0, ..refusal(at, &used[..1]) };
        refused(&mut shallow, &one, at + 100);
    }
    let shallow = shallow.expect("found");
    assert!((shallow.depth * shallow.ceiling() - 1.0).abs() < 0.01, "{shallow:?}");
    let mut two = found();
    let level = two.as_mut().expect("found");
    level.depth = 2.0 / level.level;
    let at = NOW + 5_000;
    refused(&mut two, &Refusal { burst: 1.9, proven: 1.7, ..refusal(at, &used[..1]) }, at + 100);
    let two = two.expect("found");
    let depth = two.depth * two.ceiling();
    assert!((depth - 1.7).abs() < 0.01, "kills: less than what was served all the time: {depth}");
}

/// Kills: a trial that waits for use which a shallow pace cannot reach.
#[test]
fn under_a_shallow_pace_who_is_held_back_counts_as_use() {
    let rises = |part, held| {
        let mut known = found();
        let level = known.as_mut().expect("a level");
        level.depth = 1.0 / level.level;
        let mut look = Look::default();
        for at in (NOW + 1_000..NOW + 30_000).step_by(50) {
            let used = part * level.level;
            served(level, &mut look, &Seen { held, answers: 10.0, ..seen(at, used) }, at + 100);
        }
        level.level
    };
    assert!(rises(0.7, 200.0) > 205.0 && rises(0.7, 0.0) < 200.0);
    assert!(rises(0.1, 2_000.0) < 200.0, "kills: growth by a burst that is turned away");
}

/// Kills: taking the level for what an account grants that refuses although it rests.
#[test]
fn an_account_that_refuses_for_long_is_measured() {
    let mut known = found();
    let at = NOW + 5_000;
    refused(&mut known, &refusal(at, &[(1_000, 100.0)]), at + 100);
    let still = Refusal { probe: true, ..refusal(at + 500, &[(1_000, 80.0)]) };
    refused(&mut known, &still, at + 600);
    let free = Refusal { probe: true, ..refusal(at + 800, &[(1_000, 120.0)]) };
    back(&mut known, &free, at + 900);
    let level = known.expect("found").level;
    assert!((99.0..121.0).contains(&level), "{level}");
}

/// Two replicas that decided at once: the store's decision holds, and a refusal it does not know of.
#[test]
fn beside_anothers_decision_ours_gives_way_and_our_refusal_does_not() {
    let theirs = Level { decisions: 9, level: 210.0, ..found().expect("found") };
    let ours = Level { decisions: 9, level: 205.0, ..theirs };
    assert_eq!(ours.beside(&theirs), theirs);
    let hit = Level { decisions: 8, level: 150.0, hit: theirs.hit + 500, ..theirs };
    let both = hit.beside(&theirs);
    assert_eq!((both.level, both.decisions, both.hit), (150.0, 10, hit.hit), "kills: forgetting the refusal");
    assert_eq!(theirs.beside(&hit), theirs, "kills: going back to an older record");
}

/// Kills: debt for what several processes refused of the first level (they merge their records, and each merging is a decision),
/// and none for a trial.
#[test]
fn finding_the_first_level_is_not_owed_and_a_trial_is() {
    let mut known = found();
    for late in 1..6 {
        let ours = Level { hit: known.expect("found").hit + late, ..known.expect("found") };
        let theirs = Level { decisions: ours.decisions + 1, ..known.expect("found") };
        known = Some(ours.beside(&theirs));
        let probe = Refusal { probe: true, ..refusal(NOW + 100 + late, &[(1_000, 200.0)]) };
        refused(&mut known, &probe, NOW + 200);
    }
    let level = known.expect("found");
    assert!(level.decisions > 4 && level.debt == 0.0, "{level:?}");
    let mut at = NOW + 1_000;
    while known.expect("found").trial == Trial::None {
        at = use_it(&mut known, at, 1, 1.0);
    }
    refused(&mut known, &refusal(at, &[(1_000, level.level + 0.5)]), at + 100);
    assert_eq!(known.expect("found").debt, 1.0);
}

fn event() -> impl Strategy<Value = (u8, u64, f64, f64)> {
    (0..6u8, 0..5_000u64, 0.0..2_000.0f64, 0.0..60_000.0f64)
}

proptest! {
    /// Kills: a level under the least, not a number, or beyond twice what was used; a record longer than 200 bytes or
    /// read back as another.
    #[test]
    fn a_level_is_sound_whatever_comes(events in prop::collection::vec(event(), 1..300)) {
        let (mut known, mut look, mut now) = (None, Look::default(), NOW);
        let mut most: f64 = LEAST;
        for (what, passed, short, long) in events {
            now += passed;
            most = most.max(short).max(long);
            let used = [(1_000, short), (10_000, short.max(long / 6.0)), (60_000, long)];
            let refusal = refusal(now.saturating_sub(passed.min(300)), &used);
            match (what, &mut known) {
                (0, known) => { refused(known, &refusal, now); }
                (1, known) => { refused(known, &Refusal { probe: true, ..refusal }, now); }
                (2, known) => { back(known, &Refusal { probe: true, ..refusal }, now); }
                (_, Some(level)) => { served(level, &mut look, &seen(refusal.sent_at, short), now); }
                (_, None) => {}
            }
            let Some(level) = known else { continue };
            prop_assert!(level.level >= LEAST.min(level.level.ceil()) && level.level.is_finite());
            prop_assert!(level.ceiling() <= 4.0 * most + 8.0, "{} of {most}", level.ceiling());
            let line = Learned::Steady(Box::new(level)).encode();
            prop_assert!(line.len() <= 200, "{} bytes: {line}", line.len());
            let Ok(Learned::Steady(read)) = Learned::decode(&line) else { panic!("unreadable: {line}") };
            prop_assert!((read.level - level.level).abs() < 0.001 && read.decisions == level.decisions);
            prop_assert_eq!(Learned::Steady(read.clone()).encode(), line);
        }
    }
}

/// Kills: a line of another law taken for one's own, and a replica of the other law that sees no ceiling.
#[test]
fn each_law_reads_the_others_record() {
    let level = Learned::Steady(Box::new(found().expect("found")));
    let params = aimd::Params::default();
    let as_aimd = Learned::decode(&level.encode()).expect("a line").into_aimd(&params);
    assert_eq!(as_aimd.spans[0].ceiling(&params, NOW), Some(199));
    let as_steady = Learned::Aimd(as_aimd).into_steady(&params).expect("an estimate");
    assert_eq!((as_steady.window_ms, as_steady.ceiling()), (1_000, 199.0));
    for bad in ["", "2", "2|", "3|1|1000", "2|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0"] {
        assert!(Learned::decode(bad).is_err(), "{bad}");
    }
}
