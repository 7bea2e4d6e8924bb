//! Whether the store of limits is used, or each process counts alone. Opened by any failure, closed by its own probe
//! only: an answer that was asked for before the failure says nothing about now.

/// How requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Where all replicas count.
    Shared,
    /// Here, up to this replica's part.
    Share,
    /// Not at all: what has a limit is refused.
    Deny,
}

/// What was over when a probe closed the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// How long, in milliseconds.
    pub lasted_ms: u64,
}

/// A probe under way.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    openings: u64,
}

/// Times are of any clock that does not go back.
#[derive(Clone, Copy, Debug)]
pub struct Breaker {
    /// Since when it is open: the first failure, whatever fails after it.
    since: Option<u64>,
    openings: u64,
}

impl Breaker {
    /// One that is open until a first probe has succeeded.
    #[must_use]
    pub fn open(now: u64) -> Breaker {
        Breaker { since: Some(now), openings: 1 }
    }

    /// A command failed; true: it opened just now.
    pub fn failed(&mut self, now: u64) -> bool {
        if self.since.is_some() {
            return false;
        }
        self.since = Some(now);
        self.openings += 1;
        true
    }

    /// A probe begins.
    #[must_use]
    pub fn probe(&self) -> Probe {
        Probe { openings: self.openings }
    }

    /// A probe succeeded. Some: the breaker was open before it, and is closed now.
    pub fn succeeded(&mut self, probe: Probe, now: u64) -> Option<Outage> {
        if probe.openings != self.openings {
            return None;
        }
        let since = self.since.take()?;
        Some(Outage { lasted_ms: now.saturating_sub(since) })
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// How requests are counted at `now`: alone for `grace_ms` from the first failure, then, if `denies`, not at all.
    #[must_use]
    pub fn mode(&self, now: u64, grace_ms: u64, denies: bool) -> Mode {
        match self.since {
            None => Mode::Shared,
            Some(since) if denies && now.saturating_sub(since) >= grace_ms => Mode::Deny,
            Some(_) => Mode::Share,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> Breaker {
        let mut breaker = Breaker::open(0);
        assert!(breaker.succeeded(breaker.probe(), 0).is_some());
        breaker
    }

    /// Kills: a success that was asked for before the failure and closes it; one that opens at every failure.
    #[test]
    fn only_a_probe_begun_after_the_failure_closes_it() {
        let mut breaker = closed();
        let stale = breaker.probe();
        assert!(breaker.failed(10) && !breaker.failed(20));
        assert_eq!(breaker.succeeded(stale, 30), None);
        assert!(breaker.is_open());
        assert_eq!(breaker.succeeded(breaker.probe(), 40), Some(Outage { lasted_ms: 30 }));
        assert_eq!(breaker.mode(41, 0, true), Mode::Shared);
        assert_eq!(breaker.succeeded(breaker.probe(), 50), None, "nothing was over");
    }

    /// Kills: a grace that each failure begins anew, and one that a recovery does not renew.
    #[test]
    fn the_grace_runs_from_the_first_failure() {
        let mut breaker = closed();
        breaker.failed(1_000);
        breaker.failed(1_900);
        assert_eq!(breaker.mode(1_999, 1_000, true), Mode::Share);
        assert_eq!(breaker.mode(2_000, 1_000, true), Mode::Deny);
        assert_eq!(breaker.mode(9_000, 1_000, false), Mode::Share);
        breaker.succeeded(breaker.probe(), 9_500);
        breaker.failed(9_600);
        assert_eq!(breaker.mode(10_000, 1_000, true), Mode::Share);
    }
}
