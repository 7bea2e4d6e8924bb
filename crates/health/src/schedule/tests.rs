use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;

const SETTINGS: Settings =
    Settings { interval_ms: 30_000, ephemeral_interval_ms: 10_000, concurrency: 20, deadline_ms: 11_000 };

fn rng() -> SmallRng {
    SmallRng::seed_from_u64(7)
}

fn one(settings: Settings) -> Schedule<u32> {
    Schedule::new(settings, &[vec![1]], 0)
}

/// Runs the schedule, every probe taking `takes` milliseconds and finding `standing`; the times of each probe.
fn run(schedule: &mut Schedule<u32>, until: u64, takes: u64, standing: Standing) -> Vec<(u64, u32)> {
    let mut rng = rng();
    let mut ends: Vec<(u64, u32)> = Vec::new();
    let mut begun = Vec::new();
    let mut now = 0;
    while now < until {
        for key in schedule.next(now, &mut rng) {
            begun.push((now, key));
            ends.push((now + takes, key));
        }
        let end = ends.iter().map(|(at, _)| *at).min();
        let Some(next) = [end, schedule.wake_at()].into_iter().flatten().min() else { break };
        now = next.max(now);
        for (_, key) in ends.extract_if(.., |(at, _)| *at <= now) {
            schedule.done(key, standing, now, &mut rng);
        }
    }
    begun
}

#[test]
fn the_first_pass_takes_one_of_each_chain_before_the_second_of_any() {
    let chains = [vec![10, 11, 12], vec![20], vec![30, 31]];
    let mut schedule = Schedule::new(SETTINGS, &chains, 0);
    assert_eq!(schedule.next(0, &mut rng()), [10, 20, 30, 11, 31, 12]);
}

// Kills: starting everything at once.
#[test]
fn no_more_are_in_flight_than_allowed() {
    let mut schedule = Schedule::new(Settings { concurrency: 3, ..SETTINGS }, &[(0..10).collect()], 0);
    let mut rng = rng();
    assert_eq!(schedule.next(0, &mut rng), [0, 1, 2]);
    assert!(schedule.next(1, &mut rng).is_empty());
    assert_eq!(schedule.wake_at(), Some(11_000), "when the first of them is lost");
    schedule.done(1, Standing::Good, 2, &mut rng);
    assert_eq!(schedule.next(2, &mut rng), [3]);
    assert!(!schedule.first_pass_is_over());
}

#[test]
fn a_concurrency_of_zero_still_probes() {
    let mut schedule = Schedule::new(Settings { concurrency: 0, ..SETTINGS }, &[vec![1, 2]], 0);
    let begun = run(&mut schedule, 1_000, 5, Standing::Good);
    assert_eq!(begun, [(0, 1), (5, 2)]);
    assert!(schedule.first_pass_is_over());
}

#[test]
fn many_targets_start_quickly_and_are_spread_over_the_interval() {
    let chains: Vec<Vec<u32>> =
        (0..1_000).map(|chain| (0..3).map(|place| chain * 3 + place).collect()).collect();
    let mut schedule = Schedule::new(Settings { concurrency: 100, ..SETTINGS }, &chains, 0);
    let begun = run(&mut schedule, 60_000, 10, Standing::Good);
    assert_eq!(begun[2_999].0, 290, "the first pass of 3000 at 100 abreast");
    let second = |from: u64| begun.iter().filter(|(at, _)| (from..from + 1_000).contains(at)).count();
    for from in (2_000..28_000).step_by(1_000) {
        assert!((50..200).contains(&second(from)), "{} probes in the second from {from}", second(from));
    }
}

#[test]
fn a_target_is_probed_on_the_interval_give_or_take_a_tenth() {
    let begun = run(&mut one(SETTINGS), 600_000, 50, Standing::Good);
    let gaps: Vec<u64> = begun.windows(2).skip(1).map(|pair| pair[1].0 - pair[0].0 - 50).collect();
    assert!(gaps.len() > 15 && gaps.iter().all(|gap| (27_000..=33_000).contains(gap)), "{gaps:?}");
    assert!(gaps.windows(2).any(|pair| pair[0] != pair[1]), "moved by chance");
}

#[test]
fn targets_out_of_service_or_in_doubt_are_probed_more_often() {
    let gap = |settings, standing| {
        let begun = run(&mut one(settings), 300_000, 0, standing);
        begun.get(1).map(|(at, _)| *at)
    };
    let within = |gap: Option<u64>, about: u64| gap.is_some_and(|gap| gap.abs_diff(about) <= about / 10);
    assert!(within(gap(SETTINGS, Standing::Bad), 10_000));
    assert!(within(gap(SETTINGS, Standing::Unsettled), 5_000));
    assert!(within(gap(SETTINGS, Standing::Skipped), 30_000));
    let hasty = Settings { interval_ms: 1_000, ..SETTINGS };
    assert!(within(gap(hasty, Standing::Bad), 1_000));
    assert!(within(gap(hasty, Standing::Unsettled), 1_000));
}

// Kills: an interval of 0 that probes without pause, or never again.
#[test]
fn with_interval_zero_only_those_out_of_service_are_probed_again() {
    let ephemeral = Settings { interval_ms: 0, ..SETTINGS };
    assert_eq!(run(&mut one(ephemeral), 600_000, 5, Standing::Good), [(0, 1)]);
    let bad = run(&mut one(ephemeral), 100_000, 5, Standing::Bad);
    assert!((9..=12).contains(&bad.len()), "{bad:?}");
    let mut schedule = one(ephemeral);
    run(&mut schedule, 1_000, 5, Standing::Good);
    assert_eq!(schedule.wake_at(), None);
    schedule.suspect(1, 50_000);
    assert_eq!(schedule.wake_at(), Some(51_000));
    assert_eq!(schedule.next(51_000, &mut rng()), [1]);
}

#[test]
fn zeros_do_not_spin() {
    let zeros = Settings { interval_ms: 0, ephemeral_interval_ms: 0, concurrency: 0, deadline_ms: 0 };
    assert!(run(&mut one(zeros), 10_000, 0, Standing::Bad).len() < 150);
}

#[test]
fn a_probe_in_flight_is_not_repeated() {
    let mut schedule = one(SETTINGS);
    let mut rng = rng();
    assert_eq!(schedule.next(0, &mut rng), [1]);
    schedule.suspect(1, 100);
    assert!(schedule.next(10_999, &mut rng).is_empty());
}

#[test]
fn a_lost_probe_is_given_up_and_repeated() {
    let mut schedule = one(SETTINGS);
    let mut rng = rng();
    assert_eq!(schedule.next(0, &mut rng), [1]);
    assert_eq!(schedule.wake_at(), Some(11_000));
    assert!(schedule.next(11_000, &mut rng).is_empty());
    let again = schedule.wake_at().expect("a next probe");
    assert!(again <= 22_000, "{again}");
    schedule.done(1, Standing::Good, 11_001, &mut rng);
    assert_eq!(schedule.wake_at(), Some(again), "an answer after the deadline changes nothing");
}

#[test]
fn suspicion_brings_a_probe_forward_and_never_puts_it_off() {
    let mut schedule = one(Settings { concurrency: 1, ..SETTINGS });
    let mut rng = rng();
    schedule.next(0, &mut rng);
    schedule.done(1, Standing::Bad, 0, &mut rng);
    schedule.suspect(1, 500);
    assert_eq!(schedule.wake_at(), Some(1_500));
    schedule.suspect(1, 1_000);
    assert_eq!(schedule.wake_at(), Some(1_500));
    assert_eq!(schedule.next(1_500, &mut rng), [1]);
    schedule.suspect(9, 1_500);
    // The turn that was brought forward is not taken again at its old time.
    schedule.done(1, Standing::Good, 1_510, &mut rng);
    assert!(schedule.next(20_000, &mut rng).is_empty());
}

#[test]
fn a_reload_keeps_turns_and_probes_newcomers_at_once() {
    let mut schedule = Schedule::new(SETTINGS, &[vec![1, 2]], 0);
    let mut rng = rng();
    schedule.next(0, &mut rng);
    schedule.done(1, Standing::Bad, 0, &mut rng);
    schedule.retarget(&[vec![1, 3]], 100);
    assert_eq!(schedule.next(100, &mut rng), [3]);
    schedule.done(2, Standing::Good, 200, &mut rng);
    schedule.done(3, Standing::Good, 200, &mut rng);
    assert!(schedule.first_pass_is_over());
    let begun = run(&mut schedule, 100_000, 5, Standing::Good);
    assert!(begun.iter().all(|(_, key)| [1, 3].contains(key)));
    assert!((9_000..=11_000).contains(&begun.iter().find(|(_, key)| *key == 1).expect("kept").0));
}

#[test]
fn a_target_that_leaves_and_comes_back_is_not_probed_twice_at_a_time() {
    let mut schedule = one(SETTINGS);
    let mut rng = rng();
    assert_eq!(schedule.next(0, &mut rng), [1]);
    schedule.retarget(&[vec![]], 10);
    schedule.retarget(&[vec![1]], 20);
    assert!(schedule.next(20, &mut rng).is_empty());
    schedule.done(1, Standing::Bad, 30, &mut rng);
    assert!(schedule.wake_at().is_some_and(|due| due <= 11_030));
}

proptest! {
    // Whatever answers, gets lost or is suspected: never two at a time of one target, never more than allowed,
    // and nobody out of service is forgotten.
    #[test]
    fn nobody_is_probed_twice_at_a_time_or_forgotten(
        seed in any::<u64>(),
        concurrency in 0..5_usize,
        steps in prop::collection::vec((0..6_u32, 0..4_u8, 0..9_000_u64), 0..80),
    ) {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut schedule = Schedule::new(Settings { concurrency, ..SETTINGS }, &[(0..6).collect()], 0);
        let mut flying: HashMap<u32, u64> = HashMap::new();
        let mut now = 0;
        for (key, step, later) in steps {
            now += later;
            flying.retain(|_, begun| now - *begun < SETTINGS.deadline_ms);
            for starting in schedule.next(now, &mut rng) {
                prop_assert!(flying.insert(starting, now).is_none(), "{starting} twice");
            }
            prop_assert!(flying.len() <= concurrency.max(1));
            let standing = match step {
                0 => Standing::Good,
                1 => Standing::Bad,
                2 => Standing::Unsettled,
                _ => { schedule.suspect(key, now); continue }
            };
            schedule.done(key, standing, now, &mut rng);
            flying.remove(&key);
        }
        let waiting = schedule.targets.values().filter(|target| target.waiting.is_some()).count();
        prop_assert_eq!(waiting + schedule.in_flight.len(), 6);
    }
}
