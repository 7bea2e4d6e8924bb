//! Those who stand behind others: what these need is left to them, under every kind of ceiling.

use aimd::{Mode, Params};
use ledger::{Cost, Evidence, Gate, Holder, Ledger, Limit, Plan, Presence, Sender, StoreMs, Take, Unit};

const START: u64 = 1_700_000_040_000;

fn limit(amount: u32) -> Limit {
    Limit { amount, unit: Unit::Requests, window_ms: 1000, smooth: false }
}

fn learned(mode: Mode) -> Gate {
    let gate = Gate::new(Vec::new(), Some(Params { mode, window_ms: Some(1000), ..Params::default() }));
    for at in (START - 1_000..START).step_by(10) {
        gate.charge(Cost::requests(1), Sender::Client, at);
    }
    gate.refused(&Evidence::client(START), START + 50).expect("a hundred were seen");
    gate
}

/// Five tokens of ten are here, and the store has the others.
fn leased() -> Gate {
    let gate = Gate::leased(vec![limit(10)], Holder(1), 4);
    let (lease, mut store, mut presence) =
        (&gate.leases()[0], Ledger::new(Plan::of(&limit(10))), Presence::default());
    assert!(matches!(gate.try_take(Cost::requests(5), START), Take::Doubt));
    let ask = lease.ask(START).expect("somebody wants five");
    presence.heard(ask.holder, ask.knows, StoreMs(START));
    let grant = store.grant(&ask, &presence, StoreMs(START));
    assert!((5..10).contains(&grant.tokens), "{grant:?}");
    lease.granted(&grant, START, START);
    gate
}

type Make = fn() -> Gate;

/// How many in a row go at once.
fn room(gate: &Gate, now: u64) -> u32 {
    let goes = || match gate.try_take(Cost::requests(1), now) {
        Take::Granted(ticket) => gate.sent(ticket, now),
        Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => false,
    };
    (0..1000).take_while(|_| goes()).count() as u32
}

/// Kills: a law or a kind of ceiling that leaves nothing, or leaves one too many.
#[test]
fn exactly_what_those_ahead_need_is_left_to_them() {
    let kinds: [(&str, Make, u64); 4] = [
        ("static", || Gate::new(vec![limit(7)], None), START),
        ("leased", leased, START),
        ("aimd", || learned(Mode::Aimd), START + 1_500),
        ("steady", || learned(Mode::Steady), START + 1_500),
    ];
    for (kind, gate, now) in kinds {
        let room = room(&gate(), now);
        assert!(room > 1, "{kind}: {room}");
        for (ahead, fits) in [(0, true), (room - 1, true), (room, false), (room + 1000, false)] {
            let gate = gate();
            let taken = gate.try_take_behind(Cost::requests(ahead), Cost::requests(1), now);
            assert_eq!(
                matches!(taken, Take::Granted(_)),
                fits,
                "{kind}: behind {ahead} of {room}: {taken:?}"
            );
        }
    }
}

/// Kills: tokens of one ceiling lost because another is needed by those ahead, units taken for requests.
#[test]
fn those_ahead_count_under_every_ceiling() {
    let units = Limit { unit: Unit::ComputeUnits, ..limit(100) };
    let gate = Gate::new(vec![limit(10), units], None);
    let (ahead, cost) = (Cost { requests: 2, units: 60 }, Cost { requests: 1, units: 50 });
    assert!(matches!(gate.try_take_behind(ahead, cost, START), Take::Dry { .. }), "60 + 50 units of 100");
    assert_eq!(gate.room(1, START), 10, "the first one's token was put back");
    let cheap = Cost { units: 40, ..cost };
    assert!(matches!(gate.try_take_behind(ahead, cheap, START), Take::Granted(_)));
}

/// Kills: a learned ceiling that tells somebody far behind the opening of whoever is first.
#[test]
fn who_stands_behind_is_told_when_its_own_turn_comes() {
    let gate = learned(Mode::Aimd);
    let now = START + 50;
    let when = |ahead| match gate.try_take_behind(Cost::requests(ahead), Cost::requests(1), now) {
        Take::Dry { again_at, .. } => again_at,
        granted @ (Take::Granted(_) | Take::Doubt | Take::TooBig { .. }) => panic!("{granted:?}"),
    };
    assert!(when(0) > now && when(20) > when(0), "{} and {}", when(0) - now, when(20) - now);
}
