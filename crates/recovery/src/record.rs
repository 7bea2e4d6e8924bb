//! What is remembered of an account's episode, and what can be read off it without knowing the settings:
//! whether it is kept out of selection, and when it is expected back. It never changes a record.

use std::time::Duration;

pub(crate) const MINUTE_MS: u64 = 60_000;
pub(crate) const TEN_MINUTES_MS: u64 = 10 * MINUTE_MS;
pub(crate) const HOUR_MS: u64 = 60 * MINUTE_MS;
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;

/// Clocks of two processes may differ by this much before a record counts as written in the future.
pub(crate) const SKEW_MS: u64 = 5_000;
/// A probe this late means that nobody probes any more; then requests are the probes.
pub(crate) const OVERDUE_MS: u64 = MINUTE_MS;
/// What a probe may take after the wait, so that an announced opening is not too early.
const PROBE_ALLOWANCE_MS: u64 = 250;

/// Why an account is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reason {
    /// A rate limit without a stated wait.
    #[default]
    Burst,
    /// The provider stated how long to wait.
    Hinted,
    /// A quota whose reset is not known.
    Quota,
    /// A daily quota, until 00:00 UTC.
    QuotaDaily,
    /// The provider refuses our address.
    Ban,
    /// The provider refuses our key.
    Auth,
}

impl Reason {
    /// Whether the park rests on our estimate alone: no stated wait, no quota, no ban, no refused key.
    #[must_use]
    pub fn is_estimate(self) -> bool {
        self == Self::Burst
    }

    /// The name used in status pages and stored records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Burst => "burst",
            Self::Hinted => "hinted",
            Self::Quota => "quota",
            Self::QuotaDaily => "quota_daily",
            Self::Ban => "ban",
            Self::Auth => "auth",
        }
    }
}

/// One account's episode. All times are Unix milliseconds, 0 meaning "none"; the default is an account that was
/// never hit. Plain data: any combination of values is safe to pass to every function of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Record {
    /// When the account is expected back; 0 when it is not parked.
    pub parked_until: u64,
    /// When the next probe is due; meaningless when not parked.
    pub next_probe: u64,
    /// When this record was last changed.
    pub changed_at: u64,
    /// Failed probes of this cycle.
    pub attempts: u32,
    /// Clean probes in a row.
    pub successes: u32,
    /// The wait in progress, before chance moves it.
    pub wait_ms: u64,
    /// The first hit of this cycle.
    pub first_hit: u64,
    /// When the account last came back.
    pub returned_at: u64,
    /// Until when the provider itself asked us to stay away (a stated wait, or a quota's reset).
    pub asked_until: u64,
    /// Why the account is parked, or was.
    pub reason: Reason,
}

impl Record {
    /// Whether an episode is running, however late its probe is.
    #[must_use]
    pub fn in_episode(&self) -> bool {
        self.parked_until != 0
    }

    /// Whether the record was written by a clock that has since gone back.
    pub(crate) fn is_from_the_future(&self, now: u64) -> bool {
        self.changed_at > now.saturating_add(SKEW_MS)
    }

    /// Whether its probe is so late that nobody can be probing.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        now.saturating_sub(self.next_probe) > OVERDUE_MS
    }
}

/// Whether the account is kept out of selection. It is until probes end the episode; only when its probe is
/// overdue by a minute (no process is probing) are requests let through instead, and a hit on one goes on with
/// the episode.
#[must_use]
pub fn parked(record: &Record, now: u64) -> bool {
    record.in_episode() && !record.is_overdue(now)
}

/// The last instant at which [`parked`] says yes; 0 when the account is not parked. What a request compares with,
/// so that it need not read the record.
#[must_use]
pub fn parked_through(record: &Record) -> u64 {
    if record.in_episode() { record.next_probe.saturating_add(OVERDUE_MS) } else { 0 }
}

/// How long until the account is expected back, `None` when it is not parked. Includes the time for the probe,
/// so it is never zero.
#[must_use]
pub fn retry_after(record: &Record, now: u64) -> Option<Duration> {
    if !parked(record, now) {
        return None;
    }
    let wait = if record.is_from_the_future(now) { 0 } else { record.parked_until.saturating_sub(now) };
    Some(Duration::from_millis(wait.saturating_add(PROBE_ALLOWANCE_MS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    fn parked_for(wait: u64) -> Record {
        Record { parked_until: NOW + wait, next_probe: NOW + wait, changed_at: NOW, ..Record::default() }
    }

    #[test]
    fn a_wait_that_has_ended_does_not_release_before_the_probe() {
        let record = parked_for(500);
        for (now, expected) in [(NOW, true), (NOW + 500, true), (NOW + 500 + OVERDUE_MS, true)] {
            assert_eq!(parked(&record, now), expected, "at +{}", now - NOW);
        }
    }

    #[test]
    fn the_last_parked_instant_is_the_last_one() {
        let through = parked_through(&parked_for(500));
        assert!(parked(&parked_for(500), through) && !parked(&parked_for(500), through + 1));
        assert_eq!(parked_through(&Record::default()), 0);
    }

    #[test]
    fn an_account_that_nobody_probes_is_tried_with_requests() {
        assert!(!parked(&parked_for(500), NOW + 501 + OVERDUE_MS));
    }

    #[test]
    fn the_announced_opening_leaves_time_for_the_probe() {
        let after = |now| retry_after(&parked_for(2_000), now).map(|wait| wait.as_millis());
        assert_eq!(after(NOW), Some(2_250));
        assert_eq!(after(NOW + 2_100), Some(250));
        assert_eq!(retry_after(&Record::default(), NOW), None);
    }

    #[test]
    fn a_clock_that_went_back_does_not_announce_its_own_error() {
        assert_eq!(retry_after(&parked_for(2_000), NOW - DAY_MS), Some(Duration::from_millis(250)));
    }

    #[test]
    fn only_a_burst_without_a_stated_wait_is_our_own_estimate() {
        let all =
            [Reason::Burst, Reason::Hinted, Reason::Quota, Reason::QuotaDaily, Reason::Ban, Reason::Auth];
        assert_eq!(all.map(Reason::is_estimate), [true, false, false, false, false, false]);
    }
}
