//! The steady law at work on one gate: what is admitted, and what its outcomes teach.

use aimd::{Learned, Mode, Params};
use ledger::{CeilingKind, Cost, Evidence, Gate, Sender, Take};

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
