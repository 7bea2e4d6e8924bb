//! From any record and after any events, an account whose provider is free is back within one wait.

use std::time::Duration;

use proptest::prelude::*;
use recovery::{
    Block, Hit, Kind, Policy, Probe, Reason, Record, hit, parked, parked_through, probe_due, probed,
    retry_after,
};

const NOW: u64 = 1_800_000_000_000;
/// Clocks of two processes may differ by this much.
const SKEW: u64 = 5_000;

#[derive(Debug, Clone, Copy)]
enum Event {
    Hit(Kind, Option<Duration>, u64),
    /// A probe that was sent when it was due, and answered.
    Probed(Probe),
    /// A probe that was sent when it was due, and never heard of again.
    Lost,
    /// An answer out of turn: another process probed too.
    Stray(Probe),
    Forward(u64),
    Back(u64),
    Restart,
    Flush,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Burst),
        any::<bool>().prop_map(|daily| Kind::Quota { daily }),
        Just(Kind::Address),
        Just(Kind::Auth),
    ]
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..2_000_u64, 0..200_000_000_u64, any::<u64>()]
}

fn hint() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of(time().prop_map(Duration::from_millis))
}

fn outcome() -> impl Strategy<Value = Probe> {
    prop_oneof![
        Just(Probe::Clean),
        (kind(), hint()).prop_map(|(kind, hint)| Probe::Limited { kind, hint }),
        Just(Probe::Failed),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (kind(), hint(), time()).prop_map(|(kind, hint, window)| Event::Hit(kind, hint, window)),
        3 => outcome().prop_map(Event::Probed),
        1 => Just(Event::Lost),
        1 => outcome().prop_map(Event::Stray),
        1 => time().prop_map(Event::Forward),
        1 => time().prop_map(Event::Back),
        1 => Just(Event::Restart),
        1 => Just(Event::Flush),
    ]
}

fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), NOW - 100_000_000..NOW + 100_000_000, any::<u64>()]
}

fn reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(vec![
        Reason::Burst,
        Reason::Hinted,
        Reason::Quota,
        Reason::QuotaDaily,
        Reason::Ban,
        Reason::Auth,
    ])
}

prop_compose! {
    fn record()(
        (parked_until, next_probe, changed_at) in (moment(), moment(), moment()),
        (attempts, successes, wait_ms) in (any::<u32>(), any::<u32>(), time()),
        (first_hit, returned_at, asked_until) in (moment(), moment(), moment()),
        reason in reason(),
    ) -> Record {
        Record {
            parked_until, next_probe, changed_at, attempts, successes, wait_ms, first_hit, returned_at,
            asked_until, reason,
        }
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    let seconds = 1..100_000_u64;
    let block = (seconds.clone(), any::<f64>(), seconds.clone(), 0..6_u32, 0..6_u32, seconds).prop_map(
        |(initial, backoff_multiplier, max, max_retries, required_successes, reset)| {
            Policy::new(Some(&Block {
                initial_backoff: Duration::from_secs(initial),
                backoff_multiplier,
                max_backoff: Duration::from_secs(max),
                max_retries,
                required_successes,
                reset_after: Duration::from_secs(reset),
            }))
        },
    );
    prop_oneof![Just(Policy::default()), block]
}

/// An account in a world with one clock.
struct World {
    record: Record,
    policy: Policy,
    now: u64,
    jitter: f64,
}

impl World {
    fn apply(&mut self, event: Event) {
        match event {
            Event::Hit(kind, hint, window_ms) => {
                let event = Hit { now: self.now, hint, kind, window_ms, gap_ms: 0 };
                self.record = hit(&self.record, &self.policy, &event, self.jitter);
            }
            Event::Probed(outcome) => {
                self.go_to_probe();
                self.answer(outcome);
            }
            Event::Lost => self.go_to_probe(),
            Event::Stray(outcome) => self.answer(outcome),
            Event::Forward(by) => self.now = self.now.saturating_add(by),
            Event::Back(by) => self.now = self.now.saturating_sub(by),
            Event::Restart => self.record = Record::decode(&self.record.encode()).expect("own text reads"),
            Event::Flush => self.record = Record::default(),
        }
    }

    fn go_to_probe(&mut self) {
        if let Some(due) = probe_due(&self.record, &self.policy, self.now) {
            self.now = self.now.max(due);
        }
    }

    fn answer(&mut self, outcome: Probe) {
        self.record = probed(&self.record, &self.policy, outcome, self.now, self.jitter);
    }
}

proptest! {
    // Kills: resting for ever after the last retry, believing times of a clock that went back, a stray answer
    // that pushes the next probe out, a wait that overflows.
    #[test]
    fn an_account_is_back_within_one_wait_of_its_provider_being_free(
        record in record(),
        policy in policy(),
        now in moment(),
        jitter in any::<f64>(),
        events in prop::collection::vec(event(), 0..40),
    ) {
        let mut world = World { record, policy, now, jitter };
        for event in events {
            world.apply(event);
        }
        // At the end of time nothing can become due any more; a clock that goes back is an event like any other.
        world.now = world.now.min(u64::MAX / 2);
        let free_from = world.now;
        let first_due = probe_due(&world.record, &policy, world.now).unwrap_or(free_from);
        prop_assert!(first_due <= free_from.saturating_add(policy.longest_wait_ms() + SKEW));
        // A block demands five clean probes at most here.
        for _ in 0..5 {
            world.apply(Event::Probed(Probe::Clean));
        }
        prop_assert!(!parked(&world.record, world.now), "{:?}", world.record);
        prop_assert!(!world.record.in_episode());
        prop_assert_eq!(retry_after(&world.record, world.now), None);
    }

    #[test]
    fn a_second_hit_never_shortens_or_restarts(
        policy in policy(),
        first in kind(),
        second in kind(),
        (hint_1, hint_2) in (hint(), hint()),
        how_late in 0.0..=1.0,
        attempts in 0..20_u32,
        jitter in 0.0..1.0,
    ) {
        let at = |now, kind, hint| Hit { now, hint, kind, window_ms: 60_000, gap_ms: 0 };
        let opened = hit(&Record::default(), &policy, &at(NOW, first, hint_1), jitter);
        let opened = Record { attempts, ..opened };
        let later = ((parked_through(&opened) - NOW) as f64 * how_late) as u64;
        prop_assert!(parked(&opened, NOW + later));
        let again = hit(&opened, &policy, &at(NOW + later, second, hint_2), 1.0 - jitter);
        prop_assert!(again.parked_until >= opened.parked_until);
        prop_assert!(again.next_probe >= opened.next_probe);
        prop_assert_eq!(
            (again.attempts, again.first_hit, again.wait_ms),
            (opened.attempts, opened.first_hit, opened.wait_ms)
        );
    }

    #[test]
    fn a_stated_wait_of_ten_minutes_or_less_is_never_cut_short(
        policy in policy(), seconds in 1..=600_u64, kind in kind(), jitter in 0.0..1.0,
    ) {
        let hint = Some(Duration::from_secs(seconds));
        let record = hit(&Record::default(), &policy, &Hit { now: NOW, hint, kind, window_ms: 1_000, gap_ms: 0 }, jitter);
        prop_assert!(record.next_probe >= NOW + seconds * 1_000);
        prop_assert!(retry_after(&record, NOW) >= hint);
    }

    #[test]
    fn any_record_reads_back_as_written(record in record()) {
        prop_assert_eq!(Record::decode(&record.encode()), Ok(record));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "[0-9;a-z_-]{0,60}") {
        let _ = Record::decode(&text);
    }
}
