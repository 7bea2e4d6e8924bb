//! What a hit does to a record: it opens an episode, goes on with one that seemed over, or adds what it knows to
//! one that is running. It never shortens and never restarts an episode.

use std::time::Duration;

use crate::policy::{Policy, millis};
use crate::record::{DAY_MS, HOUR_MS, MINUTE_MS, Reason, Record, TEN_MINUTES_MS};

/// A quick account's hit goes on with the episode within this part of a window.
const QUICK_AGAIN: u64 = 8;

/// What kind of limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A rate limit.
    Burst,
    /// A quota; `daily` when the refusal speaks of a day, which ends at 00:00 UTC.
    Quota { daily: bool },
    /// The provider refuses our address.
    Address,
    /// The provider refuses our key.
    Auth,
}

/// A verdict that a limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Unix milliseconds.
    pub now: u64,
    /// The wait that the provider stated, as stated; zero counts as none.
    pub hint: Option<Duration>,
    /// The limit.
    pub kind: Kind,
    /// A hit this soon (milliseconds) after the account's return goes on with the episode.
    pub window_ms: u64,
    /// Between two requests (milliseconds), if they come at a pace: no quick wait is shorter.
    pub gap_ms: u64,
}

/// The record after a hit; equal to `record` when the hit says nothing new (then there is nothing to write).
/// `jitter` is a chance in 0..=1.
#[must_use]
pub fn hit(record: &Record, policy: &Policy, hit: &Hit, jitter: f64) -> Record {
    if record.in_episode() && !record.is_overdue(hit.now) {
        return straggler(record, policy, hit);
    }
    let goes_on = record.in_episode() || returned_lately(record, policy, hit);
    let base = if goes_on { *record } else { Record { first_hit: hit.now, ..Record::default() } };
    park(&base, policy, hit, jitter)
}

/// Within a window; where waits are quick, within a part of it: the level has been lowered since.
fn returned_lately(record: &Record, policy: &Policy, hit: &Hit) -> bool {
    let lately = if policy.quick { hit.window_ms / QUICK_AGAIN } else { hit.window_ms };
    record.returned_at != 0 && hit.now.saturating_sub(record.returned_at) <= lately
}

/// Starts a wait: the stated one, the quota's, or the one after the last of `base`.
fn park(base: &Record, policy: &Policy, hit: &Hit, jitter: f64) -> Record {
    let refusal = Refusal::new(policy, hit.now, hit.kind, hit.hint);
    let nominal = policy.next_wait(base.wait_ms, hit.window_ms, hit.gap_ms);
    let (wait, wait_ms) = match refusal.own_wait() {
        Some(wait) => (wait, refusal.hint_ms.max(base.wait_ms).min(policy.max_ms)),
        None => (policy.spread_out(nominal, jitter), nominal),
    };
    let episode = Record {
        wait_ms,
        first_hit: if base.first_hit == 0 { hit.now } else { base.first_hit },
        asked_until: refusal.asked_until,
        reason: refusal.reason,
        ..*base
    };
    wait_for(&episode, policy, hit.now, wait)
}

/// A hit while the account is parked: a call that was under way. Only a later end than the one known counts.
fn straggler(record: &Record, policy: &Policy, hit: &Hit) -> Record {
    let refusal = Refusal::new(policy, hit.now, hit.kind, hit.hint);
    let Some(wait) = refusal.own_wait() else { return broken_row(record, policy) };
    let told = Record { asked_until: refusal.asked_until, reason: refusal.reason, ..*record };
    let later = wait_for(&told, policy, hit.now, wait);
    let known = refusal.reason == record.reason && refusal.asked_until <= record.asked_until;
    if known || later.parked_until <= record.parked_until {
        return broken_row(record, policy);
    }
    Record { next_probe: later.next_probe.max(record.next_probe), ..later }
}

/// Clean probes count only in a row, and a hit breaks it.
fn broken_row(record: &Record, policy: &Policy) -> Record {
    if record.successes == 0 {
        return *record;
    }
    Record { successes: 0, parked_until: expected_opening(record.next_probe, policy, 0), ..*record }
}

/// A refusal with its stated wait bounded and its quota's reset worked out.
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    /// Unix milliseconds; 0 when the provider asked for nothing.
    pub(crate) asked_until: u64,
    /// The stated wait as far as it is believed; 0 when there is none.
    pub(crate) hint_ms: u64,
}

impl Refusal {
    pub(crate) fn new(policy: &Policy, now: u64, kind: Kind, hint: Option<Duration>) -> Self {
        let hint_ms = hint.map_or(0, millis).min(policy.longest_hint_ms());
        let asked_until = match kind {
            _ if hint_ms > 0 => now.saturating_add(hint_ms),
            Kind::Quota { daily: true } => next_utc_midnight(now),
            Kind::Quota { daily: false } | Kind::Burst | Kind::Address | Kind::Auth => 0,
        };
        Self { reason: reason(kind, hint_ms > 0), asked_until, hint_ms }
    }

    /// The wait that the refusal itself decides, apart from what was asked for: none beyond it, or a quota's
    /// hour. `None`: the backoff decides.
    pub(crate) fn own_wait(&self) -> Option<u64> {
        match (self.asked_until, self.reason) {
            (0, Reason::Quota) => Some(HOUR_MS),
            (0, _) => None,
            _ => Some(0),
        }
    }
}

fn reason(kind: Kind, hinted: bool) -> Reason {
    match kind {
        Kind::Burst if hinted => Reason::Hinted,
        Kind::Burst => Reason::Burst,
        Kind::Quota { daily: true } => Reason::QuotaDaily,
        Kind::Quota { daily: false } => Reason::Quota,
        Kind::Address => Reason::Ban,
        Kind::Auth => Reason::Auth,
    }
}

fn next_utc_midnight(now: u64) -> u64 {
    (now / DAY_MS).saturating_add(1).saturating_mul(DAY_MS)
}

/// The record waiting from `now`: `wait` milliseconds, or longer if the provider asked for more; a long request
/// is probed meanwhile.
pub(crate) fn wait_for(record: &Record, policy: &Policy, now: u64, wait: u64) -> Record {
    let asked = record.asked_until.saturating_sub(now);
    let span = if asked > wait { asked.min(wait.max(poll_interval(record, now))) } else { wait };
    let next_probe = now.saturating_add(span);
    Record {
        next_probe,
        parked_until: expected_opening(next_probe.max(record.asked_until), policy, 0),
        successes: 0,
        changed_at: now,
        ..*record
    }
}

/// How often a provider that asked for a long wait is probed meanwhile: hourly up to a quota's reset, otherwise
/// every ten minutes. Resets at midnight come late by minutes, so a day begins with a probe each minute.
fn poll_interval(record: &Record, now: u64) -> u64 {
    let until_midnight = record.reason == Reason::QuotaDaily && record.asked_until.is_multiple_of(DAY_MS);
    match (until_midnight, now % DAY_MS < TEN_MINUTES_MS) {
        (true, true) => MINUTE_MS,
        (true, false) => HOUR_MS,
        (false, _) => TEN_MINUTES_MS,
    }
}

/// When the account is back if the probe at `first_probe` and all that must follow it are clean. Never 0, which
/// would mean "not parked".
pub(crate) fn expected_opening(first_probe: u64, policy: &Policy, successes: u32) -> u64 {
    let more = policy.required_successes.saturating_sub(successes).saturating_sub(1);
    first_probe.saturating_add(policy.initial_ms.saturating_mul(u64::from(more))).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Block;

    const NOW: u64 = 1_800_000_000_000;
    const SECOND: u64 = 1_000;

    fn a_hit(now: u64, kind: Kind, hint_s: u64) -> Hit {
        let hint = (hint_s > 0).then(|| Duration::from_secs(hint_s));
        Hit { now, hint, kind, window_ms: 60 * SECOND, gap_ms: 0 }
    }

    fn burst(now: u64) -> Hit {
        a_hit(now, Kind::Burst, 0)
    }

    #[test]
    fn a_first_hit_waits_as_its_kind_demands() {
        // Each row: what was refused, the wait until the first probe, the wait until the expected opening.
        let check = |kind, hint_s, probe: u64, opening: u64, reason| {
            let record = hit(&Record::default(), &Policy::default(), &a_hit(NOW, kind, hint_s), 0.5);
            let found = (record.next_probe - NOW, record.parked_until - NOW, record.reason);
            assert_eq!(found, (probe, opening, reason), "{kind:?} hinted {hint_s} s");
        };
        let midnight = DAY_MS - NOW % DAY_MS;
        check(Kind::Burst, 0, 500, 500, Reason::Burst);
        check(Kind::Burst, 7, 7_000, 7_000, Reason::Hinted);
        check(Kind::Burst, 600, 600_000, 600_000, Reason::Hinted);
        check(Kind::Burst, 3_600, 600_000, 3_600_000, Reason::Hinted);
        check(Kind::Burst, 999_999_999, 600_000, DAY_MS, Reason::Hinted);
        check(Kind::Quota { daily: false }, 0, HOUR_MS, HOUR_MS, Reason::Quota);
        check(Kind::Quota { daily: true }, 0, HOUR_MS, midnight, Reason::QuotaDaily);
        check(Kind::Quota { daily: true }, 1_200, 600_000, 1_200_000, Reason::QuotaDaily);
        check(Kind::Address, 0, 500, 500, Reason::Ban);
        check(Kind::Auth, 0, 500, 500, Reason::Auth);
    }

    #[test]
    fn a_hint_is_believed_up_to_the_longest_backoff_when_that_is_more_than_a_day() {
        let block = Block { max_backoff: Duration::from_secs(200_000), ..Block::default() };
        let policy = Policy::new(Some(&block));
        let record = hit(&Record::default(), &policy, &a_hit(NOW, Kind::Burst, 999_999_999), 0.5);
        assert_eq!(record.asked_until - NOW, 200_000 * SECOND);
    }

    #[test]
    fn the_opening_counts_every_probe_that_must_be_clean() {
        let block =
            Block { required_successes: 3, initial_backoff: Duration::from_secs(10), ..Block::default() };
        let record = hit(&Record::default(), &Policy::new(Some(&block)), &burst(NOW), 0.5);
        assert_eq!((record.next_probe - NOW, record.parked_until - NOW), (10_000, 30_000));
    }

    // Kills: treating a second hit as a first one (the predecessor restarted the episode at every 429).
    #[test]
    fn a_second_hit_without_news_changes_nothing() {
        let policy = Policy::default();
        let first = hit(&Record::default(), &policy, &burst(NOW), 1.0);
        for later in [0, 1, 599, 600, 700] {
            assert_eq!(hit(&first, &policy, &burst(NOW + later), 0.0), first, "+{later}");
        }
        let hinted = hit(&Record::default(), &policy, &a_hit(NOW, Kind::Burst, 60), 1.0);
        assert_eq!(hit(&hinted, &policy, &a_hit(NOW + 10, Kind::Burst, 5), 0.0), hinted);
        // The same quota again: its hourly probe must not be put off.
        for daily in [true, false] {
            let spent = |now| a_hit(now, Kind::Quota { daily }, 0);
            let quota = hit(&Record::default(), &policy, &spent(NOW), 1.0);
            assert_eq!(hit(&quota, &policy, &spent(NOW + 60 * SECOND), 0.0), quota);
        }
    }

    #[test]
    fn a_second_hit_that_states_a_longer_wait_extends_the_episode() {
        let policy = Policy::default();
        let first = hit(&Record::default(), &policy, &burst(NOW), 0.5);
        let told = hit(&Record { attempts: 3, ..first }, &policy, &a_hit(NOW + 100, Kind::Burst, 30), 0.5);
        assert_eq!((told.parked_until, told.next_probe), (NOW + 30_100, NOW + 30_100));
        assert_eq!((told.attempts, told.first_hit, told.reason), (3, NOW, Reason::Hinted));
    }

    #[test]
    fn a_hit_breaks_the_row_of_clean_probes() {
        let block = Block::default();
        let policy = Policy::new(Some(&block));
        let first = hit(&Record::default(), &policy, &burst(NOW), 0.5);
        let half_way = Record { successes: 1, parked_until: first.next_probe, ..first };
        let after = hit(&half_way, &policy, &burst(NOW + 5), 0.5);
        assert_eq!((after.successes, after.next_probe), (0, first.next_probe));
        assert_eq!(after.parked_until, first.parked_until);
    }

    // Kills: forgetting at the return (one cheap clean probe would then reset the wait to half a second).
    #[test]
    fn a_hit_within_a_window_of_the_return_goes_on_with_the_episode() {
        let policy = Policy::default();
        let back = Record {
            returned_at: NOW,
            wait_ms: 4_000,
            attempts: 3,
            first_hit: NOW - 9_000,
            ..Record::default()
        };
        let check = |after: u64, wait, attempts, first_hit| {
            let record = hit(&back, &policy, &burst(NOW + after), 0.5);
            let found = (record.parked_until - NOW - after, record.attempts, record.first_hit);
            assert_eq!(found, (wait, attempts, first_hit), "+{after}");
        };
        check(0, 8_000, 3, NOW - 9_000);
        check(60 * SECOND, 8_000, 3, NOW - 9_000);
        check(60 * SECOND + 1, 500, 0, NOW + 60 * SECOND + 1);
    }

    #[test]
    fn a_stored_record_without_a_wait_starts_from_the_initial_backoff() {
        let policy = Policy::default();
        let stored = Record { attempts: 4, returned_at: NOW, first_hit: NOW, ..Record::default() };
        let record = hit(&stored, &policy, &burst(NOW + 10), 0.5);
        assert_eq!((record.wait_ms, record.attempts), (500, 4));
    }

    #[test]
    fn a_hit_on_an_account_that_nobody_probes_parks_it_again_for_longer() {
        let policy = Policy::default();
        let first = hit(&Record::default(), &policy, &burst(NOW), 0.5);
        let later = first.next_probe + HOUR_MS;
        let record = hit(&first, &policy, &burst(later), 0.5);
        assert_eq!((record.parked_until, record.wait_ms, record.first_hit), (later + 1_000, 1_000, NOW));
    }

    #[test]
    fn the_first_minutes_of_a_day_are_probed_closely() {
        let midnight = NOW - NOW % DAY_MS + DAY_MS;
        let quota = |now| {
            hit(&Record::default(), &Policy::default(), &a_hit(now, Kind::Quota { daily: true }, 0), 0.5)
                .next_probe
                - now
        };
        assert_eq!(quota(midnight + SECOND), MINUTE_MS);
        assert_eq!(quota(midnight + TEN_MINUTES_MS), HOUR_MS);
        assert_eq!(quota(midnight - SECOND), SECOND);
    }

    #[test]
    fn the_ends_of_every_range_are_harmless() {
        let all = u64::MAX;
        let full = Record {
            parked_until: all,
            next_probe: all,
            changed_at: all,
            attempts: u32::MAX,
            successes: u32::MAX,
            wait_ms: all,
            first_hit: all,
            returned_at: all,
            asked_until: all,
            reason: Reason::Quota,
        };
        for record in [Record::default(), full, Record { parked_until: 0, ..full }] {
            for now in [0, 1, all] {
                let hint = Some(Duration::MAX);
                let extreme =
                    Hit { now, hint, kind: Kind::Quota { daily: true }, window_ms: all, gap_ms: all };
                assert!(hit(&record, &Policy::default(), &extreme, 1.0).in_episode());
            }
        }
    }
}
