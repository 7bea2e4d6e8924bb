//! The steady law at work on one gate: what is admitted, and what its outcomes teach.

use aimd::{Learned, Mode, Params};
use ledger::{CeilingKind, Cost, Evidence, Footprint, Gate, Sender, Take};

const NOW: u64 = 1_800_000_000_000;

fn gate() -> Gate {
    Gate::new(Vec::new(), Some(Params { mode: Mode::Steady, ..Params::default() }))
}

/// A gate whose level is 99.5 per second.
fn found() -> Gate {
    let gate = gate();
    assert!(gate.open());
    for at in (NOW - 1_000..NOW).step_by(10) {
        gate.charge(Cost::requests(1), Sender::Client, at);
    }
    gate.charge(Cost::requests(1), Sender::Client, NOW);
    gate.refused(&Evidence::client(NOW), NOW + 100).expect("a first level");
    let views = gate.snapshot(NOW + 100);
    assert!(views[0].window_ms == 1_000 && (97..=101).contains(&views[0].limit), "{views:?}");
    gate
}

/// How many of those that come every `step` ms for `seconds` are admitted, and the most in a tenth of a second.
fn admitted(gate: &Gate, from: u64, seconds: u64, step: usize) -> (u64, u64) {
    let (mut all, mut most, mut tenth) = (0, 0, (0, 0));
    for at in (from..from + 1_000 * seconds).step_by(step) {
        let Take::Granted(ticket) = gate.try_take(Cost::requests(1), at) else { continue };
        assert!(gate.sent(ticket, at));
        all += 1;
        tenth = if tenth.0 == at / 100 { (tenth.0, tenth.1 + 1) } else { (at / 100, 1) };
        most = most.max(tenth.1);
    }
    (all, most)
}

/// Kills: a gate without a pace, which lets a whole window through at once and then nothing.
#[test]
fn a_level_is_spread_over_its_window() {
    let gate = found();
    let (all, most) = admitted(&gate, NOW + 5_000, 10, 2);
    assert!((960..=1_010).contains(&all), "{all}");
    // The first burst is an eighth of the level deep.
    assert!(most <= 24, "{most} in a tenth of a second");
}

/// Kills: an opening that is announced too early, or as a configured ceiling.
#[test]
fn who_is_turned_away_is_told_when_to_come() {
    let gate = found();
    let mut at = NOW + 5_000;
    let again_at = loop {
        match gate.try_take(Cost::requests(1), at) {
            Take::Granted(ticket) => assert!(gate.sent(ticket, at)),
            Take::Dry { again_at, kind } => {
                assert_eq!(kind, CeilingKind::Learned);
                break again_at;
            }
            other @ (Take::Doubt | Take::TooBig { .. }) => panic!("{other:?}"),
        }
        at += 1;
    };
    assert!((at + 1..at + 20).contains(&again_at), "{} ms", again_at - at);
    assert!(matches!(gate.try_take(Cost::requests(1), again_at), Take::Granted(_)));
    assert!(matches!(gate.try_take(Cost::requests(500), again_at), Take::TooBig { largest: 97..=101 }));
}

/// Kills: a record that is lost on its way through the store, and one that goes back.
#[test]
fn a_level_is_handed_on() {
    let (first, second) = (found(), gate());
    let record = first.export().expect("a level");
    assert!(second.adopt(&Learned::decode(&record.encode()).expect("a line"), NOW + 200));
    assert!(!second.open());
    assert_eq!(first.snapshot(NOW + 5_000)[0].limit, second.snapshot(NOW + 5_000)[0].limit);
    assert!(gate().export().is_none(), "nothing is known before the first refusal");
}

/// Kills: a refused probe, a quota or an overflow that lowers a level.
#[test]
fn what_proves_nothing_lowers_nothing() {
    let gate = found();
    let level = gate.export();
    let client = Evidence::client(NOW + 3_000);
    assert_eq!(gate.refused(&Evidence { quota: true, ..client }, NOW + 3_100), None);
    assert!(gate.enter_overflow(NOW + 3_100));
    assert_eq!(gate.refused(&Evidence { overflow: true, ..client }, NOW + 3_100), None);
    assert_eq!(gate.export(), level);
}

/// Two gates with one level of 99.5 per second, asked every so many ms, that tell each other of themselves ten times a second.
/// What each sent in the last ten seconds.
fn shared(steps: [u64; 2]) -> [Vec<u64>; 2] {
    let gates = [found(), gate()];
    assert!(gates[1].adopt(&gates[0].export().expect("a level"), NOW + 200));
    let (from, until) = (NOW + 5_000, NOW + 35_000);
    let mut sent = [Vec::new(), Vec::new()];
    for at in from..until {
        if at % 100 == 0 {
            let told = gates.each_ref().map(|gate| gate.footprint(at).expect("it is shared"));
            gates[0].beside(&told[1], at);
            gates[1].beside(&told[0], at);
        }
        for ((gate, step), sent) in gates.iter().zip(steps).zip(&mut sent) {
            if at % step == 0
                && let Take::Granted(ticket) = gate.try_take(Cost::requests(1), at)
            {
                assert!(gate.sent(ticket, at));
                sent.push(at);
            }
        }
    }
    let lively = |at| gates.each_ref().map(|gate| gate.is_lively(at));
    assert_eq!(
        (lively(until), lively(until + 2_000)),
        ([true; 2], [false; 2]),
        "kills: telling for ever, or never"
    );
    let used = gates.each_ref().map(|gate| gate.snapshot(until)[0].used);
    assert!(used.iter().all(|used| (93..=105).contains(used)), "each sees the use of both: {used:?}");
    sent.map(|sent| sent.into_iter().filter(|at| *at >= until - 10_000).collect())
}

/// Kills: a level for each process, and a part of it that is lost between them.
#[test]
fn processes_share_one_level_and_one_pace() {
    for (steps, share) in [([5, 5], 0.5), ([4, 12], 0.75)] {
        let [one, other] = shared(steps);
        let mut all = [&one[..], &other].concat();
        all.sort_unstable();
        let most =
            |ms: u64| all.iter().map(|at| all.iter().filter(|b| (*at..at + ms).contains(b)).count()).max();
        assert!((960..=1_015).contains(&all.len()), "{} in ten seconds", all.len());
        assert!(most(1_000) <= Some(103) && most(100) <= Some(16), "{:?}, {:?}", most(1_000), most(100));
        let part = one.len() as f64 / all.len() as f64;
        assert!((part - share).abs() < 0.05, "{part} for {steps:?}");
    }
}

/// Kills: what gathered in a park that another process's probe ended, sent at once by each of them.
#[test]
fn a_park_leaves_no_burst_behind() {
    let (gate, untouched) = (found(), found());
    let at = NOW + 5_000;
    let at_once = |gate: &Gate| (0..20).filter(|_| take_and_send(gate, at)).count();
    gate.rested(at);
    assert!(at_once(&untouched) > 8 && at_once(&gate) <= 1);
    assert!((8..=12).contains(&admitted(&gate, at + 1, 1, 100).0), "kills: a gate that stays closed");
}

fn take_and_send(gate: &Gate, at: u64) -> bool {
    match gate.try_take(Cost::requests(1), at) {
        Take::Granted(ticket) => gate.sent(ticket, at),
        Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => false,
    }
}

/// Kills: a process that takes what others use for room, and one that goes on counting who has gone.
#[test]
fn what_others_use_is_evidence() {
    let (one, other) = (gate(), Footprint { wanted: 30_000, used: vec![(1_000, 30_000), (10_000, 300_000)] });
    one.beside(&other, NOW);
    for at in (NOW - 1_000..NOW).step_by(100) {
        one.charge(Cost::requests(1), Sender::Client, at);
    }
    one.charge(Cost::requests(1), Sender::Client, NOW);
    let lowered = one.refused(&Evidence::client(NOW), NOW + 10).expect("a first level");
    assert_eq!((lowered.window_ms, lowered.to), (1_000, 40), "ten of ours and thirty of theirs");
    let seen = |gate: &Gate| gate.snapshot(NOW + 10)[0].used;
    assert_eq!(seen(&one), 41);
    one.beside(&Footprint::default(), NOW + 20);
    assert!(seen(&one) <= 11);
}

/// Kills: the bound on a measured level taken from what others use once they rest, which is far below what was refused.
#[test]
fn what_a_refused_probe_outlasted_is_what_all_used_then() {
    let gate = found();
    let others = |used| Footprint { wanted: 30_000, used: vec![(1_000, used), (10_000, used)] };
    let probe = |at| Evidence { probe: true, ..Evidence::client(at) };
    gate.beside(&others(30_000), NOW + 400);
    gate.refused(&probe(NOW + 500), NOW + 600);
    gate.beside(&others(0), NOW + 700);
    gate.back(&probe(NOW + 800), NOW + 900);
    let level = gate.level().expect("measured");
    assert!(
        (78.0..84.0).contains(&level.refused) && level.level < 52.0,
        "fifty of ours, thirty of theirs: {level:?}"
    );
}

/// A gate that is asked for a fiftieth of what others are asked for, with a level of 99.5 per `window_ms`, or of `n`. They
/// use twenty.
fn beside_idle_others(n: u64, window_ms: u64) -> Gate {
    let gate = Gate::new(
        Vec::new(),
        Some(Params { mode: Mode::Steady, window_ms: Some(window_ms), ..Params::default() }),
    );
    assert!(gate.open());
    for k in 0..=n {
        gate.charge(Cost::requests(1), Sender::Client, NOW - window_ms + k * window_ms / n);
    }
    gate.refused(&Evidence::client(NOW), NOW + 100).expect("a first level");
    gate.beside(&idle(window_ms, 20), NOW + 2 * window_ms);
    gate
}

fn idle(window_ms: u64, used: u64) -> Footprint {
    Footprint { wanted: 1_000_000_000, used: vec![(window_ms, 1_000 * used)] }
}

/// Kills: parts to which each process keeps although the others use little, the same where what is told is old, and where
/// nothing is told any more.
#[test]
fn of_a_long_window_what_others_leave_is_used() {
    let (long, short) = (beside_idle_others(100, 60_000), beside_idle_others(100, 1_000));
    let at = NOW + 120_000;
    let (all, _) = admitted(&long, at, 60, 100);
    assert!((72..=82).contains(&all), "{all} beside twenty");
    assert!(admitted(&short, NOW + 2_000, 1, 2).0 <= 4);
    let shallow = beside_idle_others(30, 60_000);
    assert!(admitted(&shallow, at, 60, 100).0 <= 4, "kills: two at once where few may come at once");
    let cut_off = beside_idle_others(100, 60_000);
    cut_off.served(at + 3_950, at + 4_000);
    assert!(admitted(&cut_off, at + 4_000, 60, 100).0 <= 4, "kills: what nobody vouches for");
}

/// Five or six a minute. Kills: a pace for each process, so that two come together, and one that is held back for ever.
#[test]
fn where_requests_are_seconds_apart_all_keep_one_pace() {
    let (gate, at) = (beside_idle_others(6, 60_000), NOW + 120_000);
    let told = |used, at| gate.beside(&idle(60_000, used), at);
    told(0, at);
    assert!(take_and_send(&gate, at + 30_000) && !take_and_send(&gate, at + 31_000));
    for tenth in 0..200 {
        told(0, at + 31_000 + 100 * tenth);
    }
    // Another sends one.
    told(1, at + 51_000);
    let next = (51..90).find(|second| {
        told(1, at + 1_000 * second);
        take_and_send(&gate, at + 1_000 * second)
    });
    assert!((60..=66).contains(&next.expect("its turn comes")), "{next:?}");
}

/// Kills: a stated limit that is not believed, believed again each time it is said, or believed of another window.
#[test]
fn a_stated_limit_is_the_refused_level_once() {
    let gate = found();
    let stated =
        |limit, at| Evidence { named_window_ms: Some(1_000), stated: Some(limit), ..Evidence::client(at) };
    let lowered = gate.refused(&stated(200, NOW + 3_000), NOW + 3_100).expect("news");
    assert_eq!((lowered.window_ms, lowered.to), (1_000, 199));
    let level = gate.level().expect("known");
    assert!((level.refused - 200.0).abs() < 0.01, "{level:?}");
    // Another process hears it for the first time, and knows what was learned. Kills: "once" for each of them.
    let other = self::gate();
    other.adopt(&Learned::decode(&gate.export().expect("a level").encode()).expect("a line"), NOW + 4_000);
    assert_eq!(other.refused(&stated(201, NOW + 4_000), NOW + 4_100).map(|lowered| lowered.to), Some(198));
    // It states 200 and takes less: what is learned then stands.
    for at in [20_000, 20_050, 40_000, 40_050] {
        gate.refused(&stated(200, NOW + at), NOW + at + 100);
    }
    let level = gate.level().expect("known");
    assert!(level.level < 150.0, "{level:?}");
    gate.refused(&Evidence { named_window_ms: Some(7_000), ..stated(50, NOW + 60_000) }, NOW + 60_100);
    assert!(gate.level().expect("known").refused < 150.0, "kills: a window that is not ours");
}

/// Kills: a gate that stays open, one that stays closed, and one that a daily quota closes for a day.
#[test]
fn nothing_left_closes_until_the_reset() {
    let gate = found();
    let at = NOW + 5_000;
    gate.close(at + 86_400_000, at);
    assert!(matches!(gate.try_take(Cost::requests(1), at), Take::Granted(_)));
    gate.close(at + 400, at);
    assert!(
        matches!(gate.try_take(Cost::requests(1), at + 1), Take::Dry { again_at, .. } if again_at == at + 400)
    );
    assert_eq!(gate.when_again(Cost::requests(1), at + 1), Some(at + 400));
    assert!(matches!(gate.try_take(Cost::requests(1), at + 400), Take::Granted(_)));
}
