//! The figures that learning must reach, on a virtual clock.

use simulator::convergence::{Figure, all, fleets, saw_tooth};

const SEED: u64 = 7;

#[test]
fn every_scenario_reaches_its_figure() {
    let missed: Vec<String> = all(120)
        .iter()
        .flat_map(|scenario| {
            let verdicts = scenario.plan.run(SEED).into_iter().map(|outcome| scenario.figure.judge(&outcome));
            let missed = verdicts.filter(|verdict| !verdict.reached);
            missed
                .map(|verdict| format!("{}, seed {SEED}: {}", scenario.name, verdict.measured))
                .collect::<Vec<_>>()
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Kills: a decrease from the ceiling alone, growth by another step, a window that is not the configured one.
#[test]
fn a_hidden_limit_of_fifty_is_a_saw_tooth() {
    let outcome = saw_tooth().run(SEED).remove(0);
    let cuts: Vec<u64> = outcome.decreases.iter().map(|(_, to)| *to).collect();
    assert!(cuts.len() >= 4 && cuts.iter().all(|to| (24..=28).contains(to)), "{cuts:?}");
    let (_, high) = outcome.ceilings();
    assert!((50..=55).contains(&high), "{high}");
    let (shortest, mean) = outcome.period().expect("several cuts");
    assert!(shortest >= 12.0 && mean <= 15.0, "{shortest} {mean}");
}

/// Kills: a block's end anchored at the receipt of its grant, a share that is not kept back for the silent, a share
/// spent in the window of the loss, spending before subtracting.
#[test]
fn replicas_never_exceed_a_shared_limit() {
    for shared in fleets(40) {
        let spending = shared.fleet.run(SEED);
        let (most, used, per_call) = (spending.most(), spending.used(), spending.per_call());
        assert!(
            shared.holds(&spending),
            "{}, seed {SEED}: {most} most, {used} used, {per_call} per call",
            shared.name
        );
    }
}

#[test]
fn without_the_store_all_replicas_together_spend_half() {
    let lost =
        fleets(40).into_iter().find(|shared| shared.name.contains("lost for good")).expect("it is listed");
    let spending = lost.fleet.run(SEED);
    assert!(spending.windows[12..].iter().all(|n| (400..=500).contains(n)), "{:?}", spending.windows);
}

#[test]
fn the_same_seed_is_the_same_run() {
    assert_eq!(saw_tooth().run(3), saw_tooth().run(3));
    assert_ne!(saw_tooth().run(3), saw_tooth().run(4));
}

/// The figures themselves can fail.
#[test]
fn a_figure_out_of_reach_is_missed() {
    let outcome = saw_tooth().run(SEED).remove(0);
    assert!(!Figure::Used(0.99).judge(&outcome).reached);
    assert!(!Figure::UsedWithPeriod(0.5, 20.0).judge(&outcome).reached);
    assert!(!Figure::FollowsUp(2.0, 45).judge(&outcome).reached);
}
