//! What holds of every ceiling, whatever happens to it.

use aimd::{Evidence, Params, Record, Witness, decrease};
use proptest::prelude::*;

/// Any number, the extremes often.
fn extreme() -> BoxedStrategy<u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX - 1), Just(u64::MAX), any::<u64>(), 0..100_000u64].boxed()
}

fn params() -> impl Strategy<Value = Params> {
    let window = prop_oneof![Just(None), Just(Some(1000)), Just(Some(60_000)), Just(Some(u64::MAX))];
    let interval = prop_oneof![Just(1000u64), Just(60_000), Just(u64::MAX)];
    let least = prop_oneof![Just(1u64), 1..50u64, Just(u64::MAX)];
    (0.001..0.999, interval, least, window).prop_map(
        |(decrease_factor, increase_interval_ms, min_estimate, window_ms)| Params {
            decrease_factor,
            increase_interval_ms,
            min_estimate,
            window_ms,
            ..Params::default()
        },
    )
}

#[derive(Debug, Clone)]
enum Event {
    Served { used: [u64; 3], sent_at: u64 },
    Refused { observed: [u64; 3], sent_at: u64, named: Option<u64> },
}

fn event(time: BoxedStrategy<u64>) -> impl Strategy<Value = (Event, u64)> {
    let uses = || [extreme(), extreme(), extreme()];
    let named = prop_oneof![Just(None), extreme().prop_map(Some)];
    let served = (uses(), time.clone()).prop_map(|(used, sent_at)| Event::Served { used, sent_at });
    let refused = (uses(), time.clone(), named).prop_map(|(observed, sent_at, named)| Event::Refused {
        observed,
        sent_at,
        named,
    });
    (prop_oneof![served, refused], time)
}

fn apply(record: &mut Record, params: &Params, event: &Event, now: u64) -> Option<aimd::Decrease> {
    match event {
        Event::Served { used, sent_at } => {
            record.served(used, *sent_at);
            None
        }
        Event::Refused { observed, sent_at, named } => {
            let evidence = Evidence {
                sent_at: *sent_at,
                observed,
                used: observed,
                named_window_ms: *named,
                witness: Witness::Client,
            };
            let cut = decrease(record, params, &evidence, now)?;
            *record = cut.record.clone();
            Some(cut)
        }
    }
}

proptest! {
    /// Never below the minimum, never up, no overflow, whatever the numbers and however the clock jumps.
    #[test]
    fn a_decrease_never_raises_and_keeps_the_minimum(
        params in params(),
        events in prop::collection::vec(event(extreme()), 1..40),
    ) {
        let mut record = Record::new(&params);
        for (event, now) in &events {
            if let Some(cut) = apply(&mut record, &params, event, *now) {
                prop_assert!(cut.from.is_none_or(|from| cut.to <= from), "{cut:?}");
                prop_assert!(cut.to >= params.min_estimate, "{cut:?}");
                prop_assert_eq!(record.spans[cut.span].ceiling(&params, *now), Some(cut.to));
            }
            for span in &record.spans {
                prop_assert!(span.ceiling(&params, *now).is_none_or(|c| c >= params.min_estimate));
            }
            let read = Record::decode(&record.encode()).expect("our own line");
            prop_assert_eq!(read.encode().replace('r', "h"), record.encode().replace('r', "h"));
        }
    }

    /// Refusals heard in any order, with a clock that only goes on: cuts of one span lie a window apart, and
    /// no cut is owed to an attempt that was sent before the one before.
    #[test]
    fn one_decrease_per_cooldown_and_episode(
        events in prop::collection::vec(event((0..200_000u64).boxed()), 1..200),
        window in prop_oneof![Just(None), Just(Some(1000u64)), Just(Some(7000))],
    ) {
        let params = Params { window_ms: window, ..Params::default() };
        let mut record = Record::new(&params);
        let mut events = events;
        events.sort_by_key(|(_, now)| *now);
        let mut cuts: Vec<(usize, u64)> = Vec::new();
        for (event, now) in &events {
            let Some(cut) = apply(&mut record, &params, event, *now) else { continue };
            let Event::Refused { sent_at, .. } = event else { unreachable!("only refusals cut") };
            prop_assert!(cuts.last().is_none_or(|(_, at)| sent_at > at));
            let of_span = cuts.iter().rev().find(|(span, _)| *span == cut.span);
            prop_assert!(of_span.is_none_or(|(_, at)| now - at >= cut.window_ms));
            cuts.push((cut.span, *now));
        }
    }

    /// Growth never falls in time, stays in its bound, and a clock that goes back gives none.
    #[test]
    fn growth_is_monotone_and_bounded(
        params in params(),
        observed in extreme(),
        clean in extreme(),
        cut_at in extreme(),
        mut times in prop::collection::vec(extreme(), 2..20),
    ) {
        let mut record = Record::new(&params);
        let hit = Event::Refused { observed: [observed; 3], sent_at: cut_at, named: None };
        let Some(cut) = apply(&mut record, &params, &hit, cut_at) else { return Ok(()) };
        record.served(&[clean; 3], cut_at.saturating_add(1));
        times.sort_unstable();
        let span = &record.spans[cut.span];
        let bound = observed.max(clean.saturating_mul(2)).max(cut.to);
        let mut last = 0;
        for now in times {
            let ceiling = span.ceiling(&params, now).expect("just cut");
            prop_assert!(ceiling >= last && ceiling <= bound, "{ceiling} at {now}");
            prop_assert!(now > cut_at || ceiling == cut.to);
            if let Some(next) = span.next_growth(&params, now) {
                prop_assert!(next > now || next == u64::MAX);
                prop_assert!(next == u64::MAX || span.ceiling(&params, next) > Some(ceiling));
                prop_assert_eq!(span.ceiling(&params, next - 1).max(Some(ceiling)), Some(ceiling));
            }
            last = ceiling;
        }
    }
}
