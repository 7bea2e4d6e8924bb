//! What the steady law reaches on a virtual clock, in a short draw: the whole table is the example `laws`.

use aimd::Mode;
use simulator::convergence::{Contest, Score, drawn, listed, steps};

const SEED: u64 = 11;

fn shortened(name: &str, mode: Mode) -> Contest {
    let all = listed(mode).into_iter().chain(steps(mode));
    let entry = all.into_iter().find(|entry| entry.name == name).expect(name);
    entry.contest
}

fn check(name: &str, seconds: (f64, f64), reached: impl Fn(&Score) -> bool) {
    let contest = Contest { seconds, ..shortened(name, Mode::Steady) };
    let score = contest.run(SEED);
    assert!(reached(&score), "{name}, seed {SEED}: {score:?}");
}

/// Kills: use counted at the answer, a pace that leaves gaps, trials that are not paid for.
#[test]
fn nearly_all_of_a_limit_is_used_and_nearly_nothing_refused() {
    let both = |score: &Score| score.used >= 0.95 && score.refused <= 0.002;
    check("fixed 200 per 1 s, 200 per window, fixed", (150.0, 250.0), both);
    check("rolling 200 per 1 s, 200 per window, rolling", (150.0, 250.0), both);
    check("counter 200 per 1 s, 200 per window, counter", (150.0, 250.0), both);
}

/// Kills: probes of a park that ends before the pace has anything to send, and trials of small levels that nothing pays for:
/// together they were a tenth of what was sent.
#[test]
fn of_five_a_minute_few_are_refused() {
    let few = |score: &Score| score.used >= 0.75 && score.refused <= 0.04;
    check("fixed 5 per 60 s, 5 per 1 and 60 s", (9_000.0, 30_000.0), few);
    check("rolling 5 per 60 s, 5 per 1 and 60 s", (9_000.0, 30_000.0), few);
}

/// Kills: parts that follow chance, which cost a twentieth of the limit, and replicas that know nothing of each other's use.
#[test]
fn four_replicas_use_nearly_as_much_together() {
    let name = "rolling 200 per 10 s, 200 per window, rolling";
    let together = Contest { replicas: 4, ..shortened(name, Mode::Steady) };
    let score = Contest { seconds: (600.0, 900.0), ..together }.run(SEED);
    assert!(score.used >= 0.95 && score.refused <= 0.002, "seed {SEED}: {score:?}");
}

/// The second minute after a start that knows nothing. Kills: a first level far too low that is climbed slowly, because each of
/// the replicas took the others' use at another time, or owed what finding it cost.
#[test]
fn four_replicas_find_a_long_window_within_a_minute() {
    let contest =
        Contest { replicas: 4, ..shortened("rolling 200 per 10 s, 200 per window, rolling", Mode::Steady) };
    for seed in [2, 4, 17, 21] {
        let score = Contest { seconds: (60.0, 60.0), ..contest.clone() }.run(seed);
        assert!(score.used >= 0.92 && score.refused <= 0.005, "seed {seed}: {score:?}");
    }
}

/// Kills: a law that is none, and runs that depend on anything but their seed.
#[test]
fn a_run_follows_from_its_seed_and_its_law() {
    let name = "rolling 200 per 1 s, 200 per window, rolling";
    let run = |mode, seed| Contest { seconds: (30.0, 60.0), ..shortened(name, mode) }.run(seed);
    assert_eq!(run(Mode::Steady, 3), run(Mode::Steady, 3));
    assert_ne!(run(Mode::Steady, 3), run(Mode::Steady, 4));
    assert_ne!(run(Mode::Steady, 3), run(Mode::Aimd, 3));
}

/// A short draw for both laws. Kills: a law that is good on the listed limits only.
#[test]
fn of_limits_drawn_by_chance_steady_uses_more_than_aimd() {
    let median = |mode| {
        let small = |contest: &Contest| contest.hidden.window_s == 1.0 && contest.hidden.limit <= 300.0;
        let all = drawn(60, 77, mode).into_iter().map(|entry| entry.contest).filter(small).take(5);
        let mut used: Vec<f64> =
            all.map(|contest| Contest { seconds: (150.0, 100.0), ..contest }.run(SEED).used).collect();
        used.sort_by(f64::total_cmp);
        used[used.len() / 2]
    };
    let (steady, aimd) = (median(Mode::Steady), median(Mode::Aimd));
    assert!(steady >= 0.92 && steady > aimd + 0.1, "steady {steady}, aimd {aimd}, seed {SEED}");
}
