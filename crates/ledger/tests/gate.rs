//! One account's gate, over the memory store: exact, all or nothing, and honest about when again.

use aimd::Params;
use ledger::{CeilingKind, Cost, Door, Evidence, Gate, Limit, Sender, Take, Ticket, Unit};
use proptest::prelude::*;

const START: u64 = 1_700_000_040_000;

fn limit(amount: u32, window_ms: u64) -> Limit {
    Limit { amount, unit: Unit::Requests, window_ms, smooth: false }
}

fn units(amount: u32, window_ms: u64) -> Limit {
    Limit { unit: Unit::ComputeUnits, ..limit(amount, window_ms) }
}

fn granted(take: Take) -> Option<Ticket> {
    match take {
        Take::Granted(ticket) => Some(ticket),
        Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => None,
    }
}

fn dry(take: &Take) -> Option<u64> {
    match take {
        Take::Dry { again_at, .. } => Some(*again_at),
        Take::Granted(_) | Take::Doubt | Take::TooBig { .. } => None,
    }
}

/// Takes and sends at once.
fn pass(gate: &Gate, cost: Cost, now: u64) -> bool {
    granted(gate.try_take(cost, now)).is_some_and(|ticket| gate.sent(ticket, now))
}

fn passes(gate: &Gate, n: u32, now: u64) -> u32 {
    (0..n).map(|_| u32::from(pass(gate, Cost::requests(1), now))).sum()
}

#[test]
fn without_ceilings_the_gate_is_open() {
    let gate = Gate::new(Vec::new(), None);
    assert!(gate.open());
    assert_eq!(passes(&gate, 100, START), 100);
    assert_eq!((gate.use_24h(START), gate.utilisation(START), gate.snapshot(START)), (100, None, Vec::new()));
    assert!(Gate::new(Vec::new(), Some(Params::default())).open());
    assert!(!Gate::new(vec![limit(1, 1000)], Some(Params::default())).open());
}

#[test]
fn five_times_the_demand_gets_exactly_the_limit() {
    let gate = Gate::new(vec![limit(1000, 1000)], None);
    for second in 0..5 {
        let start = START + second * 1000;
        let got: u32 = (0..1000).map(|ms| passes(&gate, 5, start + ms)).sum();
        assert_eq!(got, 1000, "second {second}");
    }
}

#[test]
fn probes_take_tokens_and_wait_for_none() {
    let gate = Gate::new(vec![limit(5, 60_000)], None);
    gate.charge(Cost::requests(1), Sender::Probe, START);
    assert_eq!(passes(&gate, 50, START), 4);
    gate.charge(Cost::requests(3), Sender::Probe, START + 1);
    assert_eq!(passes(&gate, 50, START + 59_999), 0);
    assert_eq!(passes(&gate, 50, START + 60_000), 5);
    assert_eq!(gate.use_24h(START + 60_000), 13);
}

#[test]
fn smooth_spends_a_tenth_per_tenth() {
    let gate = Gate::new(vec![Limit { smooth: true, ..limit(100, 1000) }], None);
    let tenths: Vec<u32> = (0..20).map(|tenth| passes(&gate, 50, START + tenth * 100)).collect();
    assert_eq!(tenths, vec![10; 20]);
    let slow = Gate::new(vec![Limit { smooth: true, ..limit(2, 1000) }], None);
    let again = dry(&slow.try_take(Cost::requests(1), START)).expect("the first tenth holds none");
    assert_eq!(again, START + 400);
    assert_eq!(passes(&slow, 9, again), 1);
}

#[test]
fn a_ticket_whose_window_has_ended_is_not_sent() {
    let gate = Gate::new(vec![limit(5, 1000)], None);
    let early = granted(gate.try_take(Cost::requests(1), START)).expect("fresh");
    let late = granted(gate.try_take(Cost::requests(1), START)).expect("fresh");
    assert!(gate.sent(early, START + 999));
    assert!(!gate.sent(late, START + 1000));
    assert_eq!(gate.use_24h(START + 1000), 1);
}

/// Kills: taking from the first limit and keeping it when the second is dry.
#[test]
fn several_limits_are_all_or_nothing() {
    let gate = Gate::new(vec![limit(10, 1000), limit(15, 60_000), units(100, 1000)], None);
    let dear = Cost { requests: 1, units: 60 };
    assert!(pass(&gate, dear, START));
    assert!(!pass(&gate, dear, START));
    assert_eq!(gate.room(4, START), 9);
    assert_eq!(passes(&gate, 20, START), 9);
    assert_eq!(passes(&gate, 20, START + 1000), 5);
    let again = dry(&gate.try_take(Cost::requests(1), START + 1000));
    assert_eq!(again, Some(START + 60_000));
    let views: Vec<(u64, u64)> = gate.snapshot(START + 1000).iter().map(|v| (v.limit, v.used)).collect();
    assert_eq!(views, [(10, 5), (15, 15), (100, 0)]);
    // 15 a minute is the tightest over a day.
    let expected = 15.0 / (15.0 * 1440.0);
    assert!((gate.utilisation(START + 1000).expect("limited") - expected).abs() < 1e-9);
}

#[test]
fn what_never_fits_says_how_much_would() {
    let gate = Gate::new(vec![limit(10, 1000), units(100, 1000)], None);
    for (cost, expected) in [
        (Cost::requests(10), None),
        (Cost::requests(11), Some(10)),
        (Cost { requests: 10, units: 200 }, Some(5)),
        (Cost { requests: 20, units: 100 }, Some(10)),
    ] {
        let largest = match gate.try_take(cost, START) {
            Take::TooBig { largest } => Some(largest),
            Take::Granted(_) | Take::Dry { .. } | Take::Doubt => None,
        };
        assert_eq!(largest, expected, "{cost:?}");
        assert_eq!(gate.when_again(cost, START).is_none(), expected.is_some(), "{cost:?}");
    }
}

fn learning(window_ms: Option<u64>) -> Gate {
    Gate::new(Vec::new(), Some(Params { window_ms, ..Params::default() }))
}

#[test]
fn a_hit_closes_the_gate_at_half_and_use_ages_out_of_it() {
    let gate = learning(Some(60_000));
    let sent: Vec<u64> = (0..20).map(|i| START + i * 200).collect();
    assert!(sent.iter().all(|at| passes(&gate, 1, *at) == 1));
    let hit = START + 3_800;
    let cut = gate.refused(&Evidence::client(hit), hit).expect("twenty were seen");
    // The refused one is left out: 19 were observed.
    assert_eq!((cut.from, cut.to, gate.open()), (None, 9, false));
    let Take::Dry { again_at, kind } = gate.try_take(Cost::requests(1), hit + 10) else {
        panic!("20 are in use")
    };
    // Twelve of the twenty must have left, the last of which was sent 3.8 s into their slot, and requests may come
    // 50 ms closer together than they were sent. Kills a slot that leaves over its whole length, and a bare window.
    assert_eq!((again_at, kind), (START + 62_343, CeilingKind::Learned));
    assert_eq!(passes(&gate, 30, again_at - 1), 0);
    assert_eq!(passes(&gate, 30, again_at), 1);
    assert_eq!(gate.snapshot(again_at)[0].limit, 9);
    assert_eq!(passes(&gate, 30, START + 66_000), 9);
    assert_eq!(gate.snapshot(START + 66_000)[0].limit, 10);
}

/// Kills a gate that lets the eleventh through as soon as a window has passed: on its way it may overtake.
#[test]
fn what_was_sent_counts_until_the_next_one_cannot_overtake_it() {
    let gate = learning(Some(1_000));
    assert_eq!(passes(&gate, 10, START), 10);
    gate.refused(&Evidence::client(START), START).expect("ten were seen");
    assert_eq!(passes(&gate, 9, START + 1_040), 0);
    assert_eq!(gate.snapshot(START + 1_040)[0].used, 0);
    assert_eq!(passes(&gate, 9, START + 1_052), 4);
}

#[test]
fn rooms_held_count_and_are_freed_when_dropped() {
    let gate = learning(Some(60_000));
    passes(&gate, 21, START);
    gate.refused(&Evidence::client(START), START);
    let now = START + 66_000;
    let first = granted(gate.try_take(Cost::requests(6), now)).expect("11 fit");
    assert!(granted(gate.try_take(Cost::requests(6), now)).is_none());
    assert_eq!(gate.room(0, now), 5);
    drop(first);
    let second = granted(gate.try_take(Cost::requests(6), now)).expect("freed");
    assert!(gate.sent(second, now));
    assert_eq!(gate.room(0, now), 5);
    assert!(matches!(gate.try_take(Cost::requests(12), now), Take::TooBig { largest: 11 }));
}

#[test]
fn probes_and_refusals_are_no_evidence() {
    let gate = learning(Some(60_000));
    gate.charge(Cost::requests(30), Sender::Probe, START);
    passes(&gate, 4, START);
    let probe = Evidence { probe: true, ..Evidence::client(START) };
    assert_eq!(gate.refused(&probe, START), None);
    assert_eq!(gate.refused(&Evidence::client(START), START), None);
    assert!(gate.open());
    passes(&gate, 8, START);
    // 12 clients' requests, two of them refused. Kills observing probes or refused ones.
    let cut = gate.refused(&Evidence::client(START), START).expect("ten were served");
    assert_eq!(cut.to, 5);
}

#[test]
fn three_windows_gate_together() {
    let gate = learning(None);
    for second in 0..10 {
        passes(&gate, 10, START + second * 1100);
        gate.served(START + second * 1100, START + second * 1100 + 50);
    }
    let now = START + 10_000;
    passes(&gate, 1, now);
    let cut = gate.refused(&Evidence::client(now), now + 50).expect("plenty seen");
    assert_eq!((cut.window_ms, cut.to), (1000, 5));
    assert_eq!(passes(&gate, 20, now + 1100), 5);
    let named = Evidence { named_window_ms: Some(60_000), ..Evidence::client(now + 2000) };
    let cut = gate.refused(&named, now + 2050).expect("another window, another episode");
    assert_eq!((cut.window_ms, cut.to), (60_000, 52));
    assert_eq!(passes(&gate, 20, now + 3000), 0);
    assert_eq!(gate.snapshot(now + 3000).len(), 2);
}

#[test]
fn what_was_learned_survives_a_restart_and_reaches_others() {
    let gate = learning(Some(60_000));
    passes(&gate, 21, START);
    gate.refused(&Evidence::client(START), START);
    let record = gate.export().expect("it learns");
    let other = Params { window_ms: Some(1000), ..Params::default() };
    let restored = Gate::restored(Vec::new(), Some(other), Some(record.clone()));
    assert_eq!((restored.open(), restored.snapshot(START)[0].limit), (false, 10));
    let neighbour = learning(Some(60_000));
    assert!(neighbour.adopt(&record, START) && !neighbour.open());
    assert!(!learning(Some(1000)).adopt(&record, START));
    assert!(!Gate::new(Vec::new(), None).adopt(&record, START));
}

#[test]
fn overflow_is_reopened_by_any_success() {
    let gate = learning(Some(60_000));
    passes(&gate, 20, START);
    gate.refused(&Evidence::client(START), START);
    assert!(gate.enter_overflow(START + 1) && !gate.enter_overflow(START + 1));
    let refused = Evidence { overflow: true, ..Evidence::client(START + 1) };
    assert_eq!(gate.refused(&refused, START + 70_000), None);
    assert_eq!(gate.overflow(START + 70_000), Door::Closed { until: START + 71_000 });
    gate.served(START + 70_100, START + 70_100);
    assert_eq!(gate.overflow(START + 70_100), Door::Open);
}

#[derive(Debug, Clone)]
enum Step {
    Take(Cost),
    GiveBack(usize),
    Send(usize),
    Charge(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..8u32, 0..30u32).prop_map(|(requests, units)| Step::Take(Cost { requests, units })),
        1 => any::<usize>().prop_map(Step::GiveBack),
        2 => any::<usize>().prop_map(Step::Send),
        1 => (0..3u32).prop_map(Step::Charge),
        1 => (0..1500u64).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Whatever is taken, given back and sent when: no aligned window of any limit is sent more than it holds, and
    /// the moment announced is kept and not announced early or late.
    #[test]
    fn no_window_of_any_limit_is_exceeded(steps in prop::collection::vec(step(), 1..200), smooth in any::<bool>()) {
        let limits = vec![Limit { smooth, ..limit(20, 1000) }, limit(50, 5000), units(90, 2000)];
        let gate = Gate::new(limits.clone(), None);
        let (mut now, mut held, mut log) = (START, Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Take(cost) => match gate.try_take(cost, now) {
                    Take::Granted(ticket) => held.push(ticket),
                    Take::Dry { again_at, .. } => {
                        prop_assert!(again_at > now);
                        prop_assert_eq!(gate.when_again(cost, now), Some(again_at));
                        prop_assert_ne!(gate.when_again(cost, again_at - 1), Some(again_at - 1));
                    }
                    Take::TooBig { .. } | Take::Doubt => {}
                },
                Step::GiveBack(i) if !held.is_empty() => gate.give_back(held.swap_remove(i % held.len())),
                Step::Send(i) if !held.is_empty() => {
                    let ticket = held.swap_remove(i % held.len());
                    let cost = ticket.cost();
                    if gate.sent(ticket, now) {
                        log.push((now, cost));
                    }
                }
                Step::Charge(n) if gate.room(0, now) >= u64::from(n) => {
                    gate.charge(Cost::requests(n), Sender::Probe, now);
                    log.push((now, Cost::requests(n)));
                }
                Step::Wait(ms) => now += ms,
                Step::GiveBack(_) | Step::Send(_) | Step::Charge(_) => {}
            }
        }
        for limit in &limits {
            let of = |cost: &Cost| if limit.unit == Unit::Requests { cost.requests } else { cost.units };
            for (at, _) in &log {
                let window = at / limit.window_ms;
                let sent: u32 = log.iter().filter(|(t, _)| t / limit.window_ms == window).map(|(_, c)| of(c)).sum();
                prop_assert!(sent <= limit.amount, "{sent} in window {window} of {limit:?}");
            }
        }
    }

    /// What a refused part of several limits had taken is there again, to the token.
    #[test]
    fn give_backs_are_exact(costs in prop::collection::vec((0..9u32, 0..40u32), 1..60)) {
        let gate = Gate::new(vec![limit(30, 1000), limit(40, 60_000), units(100, 1000)], None);
        let mut held = Vec::new();
        for (requests, units) in costs {
            let before = gate.snapshot(START);
            match gate.try_take(Cost { requests, units }, START) {
                Take::Granted(ticket) => held.push(ticket),
                Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => {
                    prop_assert_eq!(gate.snapshot(START), before);
                }
            }
        }
        held.into_iter().for_each(|ticket| gate.give_back(ticket));
        prop_assert!(gate.snapshot(START).iter().all(|view| view.used == 0));
    }

    /// A learned ceiling is never exceeded by what has tickets, and opens when it says.
    #[test]
    fn a_learned_ceiling_holds_over_any_trailing_window(
        waits in prop::collection::vec((1..4u32, 0..400u64), 1..300),
    ) {
        let gate = learning(Some(1000));
        passes(&gate, 21, START);
        gate.refused(&Evidence::client(START), START);
        let (mut now, mut log) = (START + 2000, Vec::new());
        for (n, wait) in waits {
            now += wait;
            match gate.try_take(Cost::requests(n), now) {
                Take::Granted(ticket) => {
                    prop_assert!(gate.sent(ticket, now));
                    log.push((now / 100, n));
                    let trailing: u32 = log.iter().filter(|(slot, _)| slot + 10 > now / 100).map(|(_, n)| n).sum();
                    prop_assert!(u64::from(trailing) <= gate.snapshot(now)[0].limit);
                }
                Take::Dry { again_at, .. } => {
                    prop_assert!(again_at > now);
                    now = again_at;
                    prop_assert!(pass(&gate, Cost::requests(n), again_at), "announced for {again_at}");
                    log.push((again_at / 100, n));
                }
                Take::TooBig { .. } | Take::Doubt => prop_assert!(false, "a ceiling of ten"),
            }
        }
    }
}
