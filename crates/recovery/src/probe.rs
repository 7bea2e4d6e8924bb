//! When the next probe of a parked account is due, and what its answer does: end the episode, wait longer, or
//! rest. It never sends a probe.

use std::time::Duration;

use crate::hit::{Kind, Refusal, expected_opening, wait_for};
use crate::policy::Policy;
use crate::record::{HOUR_MS, Reason, Record};

/// What a probe of a parked account found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The provider answered.
    Clean,
    /// The provider refused again.
    Limited {
        /// The limit.
        kind: Kind,
        /// The wait that the provider stated, as stated.
        hint: Option<Duration>,
    },
    /// No answer, a useless one, or the probe itself was lost.
    Failed,
}

/// When (Unix milliseconds) the account's next probe is due, in the past if it is late; `None` when the account
/// is not parked. Never further off than [`Policy::longest_wait_ms`], whatever the record says, and at once when
/// the clock has gone back behind the record.
#[must_use]
pub fn probe_due(record: &Record, policy: &Policy, now: u64) -> Option<u64> {
    if !record.in_episode() {
        return None;
    }
    if record.is_from_the_future(now) {
        return Some(now);
    }
    Some(record.next_probe.min(record.changed_at.saturating_add(policy.longest_wait_ms())))
}

/// The record after a probe; equal to `record` when no probe was due at `now`: another process was first, and
/// its answer counts. `jitter` is a chance in 0..=1.
#[must_use]
pub fn probed(record: &Record, policy: &Policy, outcome: Probe, now: u64, jitter: f64) -> Record {
    let due = probe_due(record, policy, now).is_some_and(|due| due <= now);
    match outcome {
        _ if !due => *record,
        Probe::Clean => clean(record, policy, now),
        Probe::Limited { kind, hint } => {
            let refusal = Refusal::new(policy, now, kind, hint);
            refused(record, policy, &refusal, now, jitter)
        }
        Probe::Failed => failed(record, policy, now, jitter),
    }
}

/// What the episode remembers stays in the record, for a hit that comes soon after.
fn clean(record: &Record, policy: &Policy, now: u64) -> Record {
    let successes = record.successes.saturating_add(1);
    if successes >= policy.required_successes {
        return Record {
            parked_until: 0,
            next_probe: 0,
            asked_until: 0,
            successes: 0,
            returned_at: now,
            changed_at: now,
            ..*record
        };
    }
    let next_probe = now.saturating_add(policy.initial_ms);
    Record {
        successes,
        next_probe,
        parked_until: expected_opening(next_probe, policy, successes),
        asked_until: 0,
        changed_at: now,
        ..*record
    }
}

/// The provider refused the probe. Quotas and longer requests replace what is known; a burst only escalates.
fn refused(record: &Record, policy: &Policy, refusal: &Refusal, now: u64, jitter: f64) -> Record {
    let asked_until = refusal.asked_until.max(record.asked_until);
    let news = refusal.asked_until > record.asked_until || asked_until <= now;
    let reason = if news { refusal.reason } else { record.reason };
    let told = Record { asked_until, reason, ..*record };
    let is_quota = matches!(refusal.reason, Reason::Quota | Reason::QuotaDaily);
    match refusal.own_wait() {
        Some(wait) if is_quota => wait_for(&told, policy, now, wait),
        _ if record.asked_until > now => {
            sooner(&wait_for(&told, policy, now, 0), policy, now, refusal.hint_ms)
        }
        _ => escalate(&told, policy, now, jitter),
    }
}

/// A provider that asked for hours and now speaks of seconds is probed after those seconds.
fn sooner(record: &Record, policy: &Policy, now: u64, hint_ms: u64) -> Record {
    if hint_ms == 0 {
        return *record;
    }
    let hinted = now.saturating_add(hint_ms.max(policy.initial_ms));
    Record { next_probe: record.next_probe.min(hinted), ..*record }
}

/// A probe that says nothing about the limit: before the time that the provider asked for it costs nothing.
fn failed(record: &Record, policy: &Policy, now: u64, jitter: f64) -> Record {
    match record.reason {
        _ if record.asked_until > now => wait_for(record, policy, now, 0),
        Reason::Quota => wait_for(record, policy, now, HOUR_MS),
        Reason::Burst | Reason::Hinted | Reason::QuotaDaily | Reason::Ban | Reason::Auth => {
            escalate(record, policy, now, jitter)
        }
    }
}

/// The next longer wait; after the last retry of a cycle a rest, and after the rest a fresh cycle.
fn escalate(record: &Record, policy: &Policy, now: u64, jitter: f64) -> Record {
    let attempts = record.attempts.saturating_add(1);
    if let Some(cycle) = policy.cycle {
        let left = cycle.reset_after_ms.saturating_sub(now.saturating_sub(record.first_hit));
        if left == 0 {
            let fresh = Record { attempts: 0, wait_ms: policy.initial_ms, first_hit: now, ..*record };
            return wait_for(&fresh, policy, now, policy.initial_ms);
        }
        if attempts >= cycle.max_retries {
            return wait_for(&Record { attempts, ..*record }, policy, now, left);
        }
    }
    let wait_ms = policy.next_probe(record.wait_ms, now.saturating_sub(record.first_hit));
    wait_for(&Record { attempts, wait_ms, ..*record }, policy, now, policy.spread_out(wait_ms, jitter))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit::{Hit, hit};
    use crate::policy::Block;
    use crate::record::{DAY_MS, MINUTE_MS, TEN_MINUTES_MS, parked};

    const NOW: u64 = 1_800_000_000_000;
    const LIMITED: Probe = Probe::Limited { kind: Kind::Burst, hint: None };

    fn limited(kind: Kind, hint_s: u64) -> Probe {
        Probe::Limited { kind, hint: (hint_s > 0).then(|| Duration::from_secs(hint_s)) }
    }

    fn parked_by(policy: &Policy, kind: Kind, hint_s: u64) -> Record {
        let hint = (hint_s > 0).then(|| Duration::from_secs(hint_s));
        hit(&Record::default(), policy, &Hit { now: NOW, hint, kind, window_ms: 60_000, gap_ms: 0 }, 0.5)
    }

    fn block(initial_s: u64, max_s: u64, retries: u32, successes: u32, reset_s: u64) -> Policy {
        Policy::new(Some(&Block {
            initial_backoff: Duration::from_secs(initial_s),
            backoff_multiplier: 2.0,
            max_backoff: Duration::from_secs(max_s),
            max_retries: retries,
            required_successes: successes,
            reset_after: Duration::from_secs(reset_s),
        }))
    }

    /// The waits between probes, each answered as listed, in seconds.
    fn waits(policy: &Policy, mut record: Record, outcomes: &[Probe]) -> Vec<f64> {
        let mut now = NOW;
        let mut waits = Vec::new();
        for outcome in outcomes {
            let due = probe_due(&record, policy, now).expect("parked until the last outcome");
            waits.push((due - now) as f64 / 1_000.0);
            now = due;
            record = probed(&record, policy, *outcome, now, 0.5);
        }
        if let Some(due) = probe_due(&record, policy, now) {
            waits.push((due - now) as f64 / 1_000.0);
        }
        waits
    }

    #[test]
    fn one_clean_probe_ends_an_episode_without_a_block() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 0);
        let back = probed(&record, &policy, Probe::Clean, NOW + 500, 0.5);
        assert!(!parked(&back, NOW + 500));
        assert_eq!((back.returned_at, back.wait_ms), (NOW + 500, 500));
        assert_eq!(probe_due(&back, &policy, NOW + 500), None);
    }

    #[test]
    fn failing_probes_wait_ever_longer_and_never_give_up() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 0);
        let expected = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0, 300.0];
        for outcome in [LIMITED, Probe::Failed] {
            assert_eq!(waits(&policy, record, &[outcome; 12]), expected, "{outcome:?}");
        }
    }

    // Kills: `>=` on one success too few, and giving up between two clean probes.
    #[test]
    fn a_block_demands_its_clean_probes_in_a_row() {
        let policy = block(30, 300, 2, 2, 3_600);
        let record = parked_by(&policy, Kind::Burst, 0);
        assert_eq!(waits(&policy, record, &[Probe::Clean, Probe::Clean]), [30.0, 30.0]);
        let broken = [Probe::Clean, LIMITED, Probe::Clean, Probe::Clean];
        assert_eq!(waits(&policy, record, &broken), [30.0, 30.0, 60.0, 30.0]);
    }

    // Kills: leaving the account parked for good after the last retry, as the predecessor did.
    #[test]
    fn after_the_last_retry_it_rests_until_the_reset_and_begins_again() {
        let policy = block(30, 300, 3, 1, 3_600);
        let record = parked_by(&policy, Kind::Burst, 0);
        // 30 + 60 + 120 s of probes, the rest of the hour, then a fresh cycle.
        let expected = [30.0, 60.0, 120.0, 3_390.0, 30.0, 60.0, 120.0, 3_390.0, 30.0];
        assert_eq!(waits(&policy, record, &[LIMITED; 8]), expected);
        assert_eq!(waits(&policy, record, &[LIMITED, LIMITED, LIMITED, Probe::Clean]), expected[..4]);
    }

    #[test]
    fn a_stated_wait_seeds_the_waits_after_it() {
        let policy = Policy::default();
        let seeded = |hint_s| waits(&policy, parked_by(&policy, Kind::Burst, hint_s), &[LIMITED; 3]);
        assert_eq!(seeded(7), [7.0, 14.0, 28.0, 56.0]);
        assert_eq!(seeded(400), [400.0, 300.0, 300.0, 300.0]);
    }

    #[test]
    fn a_probe_refused_with_a_stated_wait_waits_at_least_that() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 0);
        let outcomes = [limited(Kind::Burst, 20), limited(Kind::Burst, 1), LIMITED];
        assert_eq!(waits(&policy, record, &outcomes), [0.5, 20.0, 2.0, 4.0]);
    }

    #[test]
    fn a_long_stated_wait_is_probed_every_ten_minutes_without_using_up_retries() {
        let policy = block(30, 300, 2, 1, 86_400);
        let record = parked_by(&policy, Kind::Burst, 2_000);
        let outcomes = [LIMITED, Probe::Failed, LIMITED, LIMITED];
        assert_eq!(waits(&policy, record, &outcomes), [600.0, 600.0, 600.0, 200.0, 300.0]);
    }

    #[test]
    fn a_provider_that_now_speaks_of_seconds_is_probed_after_seconds() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 7_200);
        assert_eq!(waits(&policy, record, &[limited(Kind::Burst, 5), Probe::Clean]), [600.0, 5.0]);
        let patient = block(30, 300, 10, 1, 3_600);
        let record = parked_by(&patient, Kind::Burst, 7_200);
        assert_eq!(waits(&patient, record, &[limited(Kind::Burst, 5), Probe::Clean]), [600.0, 30.0]);
    }

    #[test]
    fn a_quota_is_probed_every_hour() {
        let policy = block(30, 300, 2, 1, 3_600);
        let record = parked_by(&policy, Kind::Quota { daily: false }, 0);
        let still = limited(Kind::Quota { daily: false }, 0);
        assert_eq!(waits(&policy, record, &[still, Probe::Failed, still, Probe::Clean]), [3_600.0; 4]);
    }

    #[test]
    fn a_daily_quota_is_probed_at_its_reset_and_closely_after_it() {
        let policy = Policy::default();
        let evening = NOW - NOW % DAY_MS + DAY_MS - 90 * MINUTE_MS;
        let daily = Kind::Quota { daily: true };
        let first = Hit { now: evening, hint: None, kind: daily, window_ms: 60_000, gap_ms: 0 };
        let mut record = hit(&Record::default(), &policy, &first, 0.5);
        let mut now = evening;
        let mut minutes = Vec::new();
        for outcome in [limited(daily, 0), limited(daily, 0), limited(daily, 0), Probe::Clean] {
            let due = probe_due(&record, &policy, now).expect("parked");
            minutes.push((due - now) / MINUTE_MS);
            now = due;
            record = probed(&record, &policy, outcome, now, 0.5);
        }
        assert_eq!(minutes, [60, 30, 1, 1]);
        assert!(!record.in_episode());
    }

    #[test]
    fn a_burst_that_turns_out_to_be_a_quota_waits_like_one() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 0);
        let outcome = limited(Kind::Quota { daily: false }, 0);
        let quota = probed(&record, &policy, outcome, NOW + 500, 0.5);
        assert_eq!((quota.reason, quota.next_probe), (Reason::Quota, NOW + 500 + HOUR_MS));
    }

    // Kills: counting every replica's probe (attempts burned N times faster, successes of two mixed).
    #[test]
    fn the_answer_of_a_second_prober_changes_nothing() {
        let policy = block(30, 300, 3, 2, 3_600);
        let record = parked_by(&policy, Kind::Burst, 0);
        for first in [Probe::Clean, LIMITED, Probe::Failed] {
            let once = probed(&record, &policy, first, NOW + 30_000, 0.5);
            for second in [Probe::Clean, LIMITED, Probe::Failed] {
                assert_eq!(probed(&once, &policy, second, NOW + 30_050, 0.5), once, "{first:?}, {second:?}");
            }
        }
    }

    #[test]
    fn answers_for_an_account_that_is_back_are_ignored() {
        let policy = Policy::default();
        let back = Record { returned_at: NOW, wait_ms: 500, ..Record::default() };
        for late in [Probe::Clean, LIMITED, Probe::Failed] {
            assert_eq!(probed(&back, &policy, late, NOW + 5, 0.5), back);
        }
    }

    #[test]
    fn a_clock_that_went_back_brings_the_probe_forward() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 3_600);
        let earlier = NOW - DAY_MS;
        assert_eq!(probe_due(&record, &policy, earlier), Some(earlier));
        let again = probed(&record, &policy, LIMITED, earlier, 0.5);
        assert_eq!(probe_due(&again, &policy, earlier), Some(earlier + TEN_MINUTES_MS));
        assert!(!probed(&record, &policy, Probe::Clean, earlier, 0.5).in_episode());
    }

    #[test]
    fn a_slightly_slow_clock_waits_as_usual() {
        let policy = Policy::default();
        let record = parked_by(&policy, Kind::Burst, 0);
        assert_eq!(probe_due(&record, &policy, NOW - 50), Some(NOW + 500));
    }
}
