//! Is one endpoint, over one protocol, usable, and how does it rank? Two kinds of evidence, kept apart: probes
//! (ours or another process's), whose first result counts at once and whose changes are debounced; and proxied
//! calls, whose failures in a row eject the endpoint locally at once. Health is the probes' view and no live
//! ejection. It never decides who is asked: if every endpoint is excluded, the caller excludes none.

use crate::schedule::Standing;

/// How much evidence it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Bad probes in a row that turn a good endpoint bad.
    pub down_after: u32,
    /// Good probes in a row that turn a bad endpoint good (`EPHEMERAL_CHECKS_HEALTHY_THRESHOLD` when those are
    /// the only checks).
    pub up_after: u32,
    /// Failed calls in a row that eject (`ENDPOINT_FAILURE_THRESHOLD`).
    pub eject_after: u32,
    /// Good probes in a row, begun after the ejection, that end it (`ENDPOINT_SUCCESS_THRESHOLD`).
    pub return_after: u32,
    /// Whether proxied calls count at all (`EPHEMERAL_CHECKS_ENABLED`).
    pub proxied: bool,
    /// How long a probe's result is believed, in milliseconds.
    pub fresh_for_ms: u64,
}

impl Rules {
    /// How long a result is believed when probes come at these intervals and may take `timeout_ms`.
    #[must_use]
    pub fn fresh_for(interval_ms: u64, ephemeral_interval_ms: u64, timeout_ms: u64) -> u64 {
        interval_ms.max(ephemeral_interval_ms).saturating_mul(3).saturating_add(timeout_ms)
    }
}

/// The order in which usable endpoints of a tier are preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// Last seen good.
    Good,
    /// Never seen: usable, last in its tier.
    Unseen,
    /// Last seen bad, too long ago to exclude it.
    ExpiredBad,
    /// Seen bad just now, or ejected.
    Excluded,
}

/// What selection needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Whether the endpoint may be selected.
    pub usable: bool,
    /// Its place.
    pub rank: Rank,
    /// From when one repeatable call may be tried on an ejected endpoint; `None` when it is not ejected.
    pub trial_due: Option<u64>,
    /// The last bad probe or counted failure; 0 if none. Orders the endpoints of a chain that has no usable one.
    pub failed_at: u64,
}

/// A transition, for logs and for publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Probes found it good.
    Up,
    /// Probes found it bad.
    Down,
    /// Proxied calls failed.
    Ejected,
    /// The ejection ended.
    Returned,
}

/// What another process measured, already debounced there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Its debounced state.
    pub healthy: bool,
    /// Its latest probe.
    pub ok: bool,
    /// When that probe began.
    pub begun: u64,
    /// When it ended.
    pub measured_at: u64,
}

const FIRST_TRIAL_MS: u64 = 5_000;
const LONGEST_TRIAL_MS: u64 = 60_000;

/// The evidence about one endpoint over one protocol.
#[derive(Debug, Clone)]
pub struct Tracker {
    rules: Rules,
    seen: Option<Seen>,
    /// Failed calls in a row.
    failures: u32,
    ejection: Option<Ejection>,
    /// When the last ejection ended: what began before says nothing.
    returned_at: u64,
    /// Until when one own failure is enough, because another replica ejected the endpoint.
    warned_until: u64,
    failed_at: u64,
}

/// The probes' view.
#[derive(Debug, Clone, Copy)]
struct Seen {
    good: bool,
    at: u64,
    /// When the newest counted probe began.
    begun: u64,
    /// Results in a row that contradict `good`.
    against: u32,
}

#[derive(Debug, Clone, Copy)]
struct Ejection {
    since: u64,
    good_probes: u32,
    trial_due: u64,
    trial_wait: u64,
    trial_begun: Option<u64>,
}

impl Tracker {
    /// An endpoint of which nothing is known.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, seen: None, failures: 0, ejection: None, returned_at: 0, warned_until: 0, failed_at: 0 }
    }

    /// Other rules from now on; what is known stays.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        if !rules.proxied {
            self.ejection = None;
        }
    }

    /// A probe of ours, begun at `begun`, that found the endpoint good or not. A probe that met a rate limit or
    /// never left the machine is no result.
    pub fn probe_result(&mut self, begun: u64, now: u64, ok: bool) -> Option<Change> {
        let change = self.debounce(begun, now, ok);
        self.probe_while_ejected(begun, now, ok).or(change)
    }

    /// What another process found. A report older than the last one says nothing new.
    pub fn reported(&mut self, report: &Report) -> Option<Change> {
        let Report { healthy, ok, begun, measured_at } = *report;
        let before = self.seen.replace(Seen { good: healthy, at: measured_at, begun, against: 0 });
        if let Some(before) = before.filter(|seen| seen.begun >= begun) {
            self.seen = Some(before);
            return None;
        }
        if !ok {
            self.failed_at = self.failed_at.max(measured_at);
        }
        let change = flip(before.map(|seen| seen.good), healthy);
        self.probe_while_ejected(begun, measured_at, ok).or(change)
    }

    fn debounce(&mut self, begun: u64, now: u64, ok: bool) -> Option<Change> {
        if !ok {
            self.failed_at = self.failed_at.max(now);
        }
        let Some(seen) = &mut self.seen else {
            self.seen = Some(Seen { good: ok, at: now, begun, against: 0 });
            return flip(None, ok);
        };
        seen.at = now;
        seen.begun = begun;
        if ok == seen.good {
            seen.against = 0;
            return None;
        }
        seen.against = seen.against.saturating_add(1);
        let needed = if ok { self.rules.up_after } else { self.rules.down_after };
        if seen.against < needed {
            return None;
        }
        *seen = Seen { good: ok, at: now, begun, against: 0 };
        flip(Some(!ok), ok)
    }

    fn probe_while_ejected(&mut self, begun: u64, now: u64, ok: bool) -> Option<Change> {
        let ejection = self.ejection.as_mut().filter(|ejection| begun > ejection.since)?;
        ejection.good_probes = if ok { ejection.good_probes.saturating_add(1) } else { 0 };
        if ejection.good_probes < self.rules.return_after {
            return None;
        }
        self.end_ejection(now)
    }

    /// A proxied call, sent at `begun`, was answered.
    pub fn served(&mut self, begun: u64, now: u64) -> Option<Change> {
        if !self.rules.proxied {
            return None;
        }
        self.failures = 0;
        // Calls that were under way at the ejection prove nothing; any later answer is a trial that succeeded.
        match &self.ejection {
            Some(ejection) if begun > ejection.since => self.end_ejection(now),
            Some(_) | None => None,
        }
    }

    /// A proxied call, sent at `begun`, failed in a way that counts (see [`crate::mark()`]).
    pub fn failed(&mut self, begun: u64, now: u64) -> Option<Change> {
        if !self.rules.proxied || begun < self.returned_at {
            return None;
        }
        self.failed_at = self.failed_at.max(now);
        if let Some(ejection) = &mut self.ejection {
            ejection.trial_failed(begun, now);
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        let needed = if now < self.warned_until { 1 } else { self.rules.eject_after };
        if self.failures < needed {
            return None;
        }
        self.ejection = Some(Ejection::new(now));
        Some(Change::Ejected)
    }

    /// Another replica ejected the endpoint: for a while one failure of our own is enough.
    pub fn warned(&mut self, now: u64) {
        self.warned_until = now.saturating_add(LONGEST_TRIAL_MS);
    }

    /// Takes the trial that is due: `true` for one caller, who then sends one repeatable call and reports what
    /// became of it. If it never does, the next trial comes after the same wait.
    pub fn take_trial(&mut self, now: u64) -> bool {
        let Some(ejection) = self.ejection.as_mut().filter(|ejection| ejection.trial_due <= now) else {
            return false;
        };
        ejection.trial_begun = Some(now);
        ejection.trial_due = now.saturating_add(ejection.trial_wait);
        true
    }

    /// What probes make of it; `None`: not probed yet.
    #[must_use]
    pub fn probed(&self) -> Option<bool> {
        self.seen.map(|seen| seen.good)
    }

    /// What is known at `now`.
    #[must_use]
    pub fn view(&self, now: u64) -> View {
        let rank = if self.ejection.is_some() { Rank::Excluded } else { self.probed_rank(now) };
        View {
            usable: rank != Rank::Excluded,
            rank,
            trial_due: self.ejection.map(|ejection| ejection.trial_due),
            failed_at: self.failed_at,
        }
    }

    /// How soon the next probe should come: soon while probes contradict each other, or contradict an ejection.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match self.seen {
            Some(seen) if seen.against > 0 => Standing::Unsettled,
            Some(Seen { good: true, .. }) if self.ejection.is_some() => Standing::Unsettled,
            Some(Seen { good: true, .. }) => Standing::Good,
            Some(_) | None => Standing::Bad,
        }
    }

    /// When the view after `now` becomes another one although nothing happens; `None`: never.
    #[must_use]
    pub fn grows_old_at(&self, now: u64) -> Option<u64> {
        let bad = self.seen.filter(|seen| self.ejection.is_none() && !seen.good)?;
        Some(bad.at.saturating_add(self.rules.fresh_for_ms)).filter(|at| *at > now)
    }

    /// A good endpoint stays good when its checker falls silent: losing the checker must not reorder the fleet.
    fn probed_rank(&self, now: u64) -> Rank {
        match self.seen {
            None => Rank::Unseen,
            Some(Seen { good: true, .. }) => Rank::Good,
            Some(seen) if now.saturating_sub(seen.at) < self.rules.fresh_for_ms => Rank::Excluded,
            Some(_) => Rank::ExpiredBad,
        }
    }

    fn end_ejection(&mut self, now: u64) -> Option<Change> {
        self.ejection = None;
        self.failures = 0;
        self.returned_at = now;
        Some(Change::Returned)
    }
}

impl Ejection {
    fn new(now: u64) -> Self {
        Self {
            since: now,
            good_probes: 0,
            trial_due: now.saturating_add(FIRST_TRIAL_MS),
            trial_wait: FIRST_TRIAL_MS,
            trial_begun: None,
        }
    }

    /// Only the trial's own failure makes the next one wait longer; what was sent before it is old news.
    fn trial_failed(&mut self, begun: u64, now: u64) {
        if self.trial_begun.take_if(|trial| begun >= *trial).is_some() {
            self.trial_wait = self.trial_wait.saturating_mul(2).min(LONGEST_TRIAL_MS);
            self.trial_due = now.saturating_add(self.trial_wait);
        }
    }
}

fn flip(before: Option<bool>, after: bool) -> Option<Change> {
    match (before, after) {
        (Some(true), true) | (Some(false), false) => None,
        (_, true) => Some(Change::Up),
        (_, false) => Some(Change::Down),
    }
}

#[cfg(test)]
#[path = "tracker/tests.rs"]
mod tests;
