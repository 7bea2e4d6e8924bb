//! Is this process ready for requests, and what is it doing without? Ready once health has been seen (every chain
//! has a good endpoint) and the shared store, or ten seconds have passed, and until it is told to stop; losing the
//! store or the checker later degrades it, but N replicas must not leave the service together. Pure.

use std::fmt;

/// How long the first view of health is waited for, in milliseconds.
const LONGEST_START_MS: u64 = 10_000;

/// What is known when readiness is asked.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Milliseconds since the process started.
    pub uptime_ms: u64,
    /// Each chain, and whether it has a good endpoint.
    pub chains: &'a [(&'a str, bool)],
    /// Whether the shared store answers; `true` when there is none.
    pub store_reachable: bool,
    /// Whether a checker is at work: another process's records are fresh, or our own first pass is over.
    pub checked: bool,
    /// Whether the checker is a process of its own.
    pub separate: bool,
    /// Whether the process has been told to stop.
    pub stopping: bool,
}

/// Something the process does without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Degraded {
    /// The shared store.
    Store,
    /// A health checker.
    Checker,
    /// Every good endpoint of this chain.
    Chain(String),
}

impl fmt::Display for Degraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store => f.write_str("store"),
            Self::Checker => f.write_str("health_checker"),
            Self::Chain(chain) => write!(f, "chain {chain}"),
        }
    }
}

/// How losing the store or the checker is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    /// Once ready, ready until the stop.
    Lenient,
    /// The predecessor's rule (`READY_STRICT`): not ready without the store, nor when the checker has been gone
    /// for this long.
    Strict {
        /// `HEALTH_CHECKER_GRACE_PERIOD`, in milliseconds.
        grace_ms: u64,
    },
}

/// The memory of earlier answers.
#[derive(Debug, Clone)]
pub struct Readiness {
    grace: Grace,
    passed: bool,
    unchecked_since: Option<u64>,
}

impl Readiness {
    /// A process that has just started.
    #[must_use]
    pub fn new(grace: Grace) -> Self {
        Self { grace, passed: false, unchecked_since: None }
    }

    /// `Ok` when ready, otherwise the reason that `/ready` gives.
    ///
    /// # Errors
    /// When the process should get no requests: before its first view of health, and while it stops.
    pub fn ask(&mut self, view: &View<'_>) -> Result<(), &'static str> {
        if view.stopping {
            return Err("shutting_down");
        }
        match self.grace {
            Grace::Lenient => self.lenient(view),
            Grace::Strict { grace_ms } => self.strict(view, grace_ms),
        }
    }

    /// Whether the health of chains can still change the answer.
    #[must_use]
    pub fn depends_on_chains(&self) -> bool {
        self.grace == Grace::Lenient && !self.passed
    }

    fn lenient(&mut self, view: &View<'_>) -> Result<(), &'static str> {
        let seen = view.store_reachable && view.chains.iter().all(|(_, good)| *good);
        self.passed |= view.uptime_ms >= LONGEST_START_MS || seen;
        match view.store_reachable {
            _ if self.passed => Ok(()),
            false => Err("valkey_connection_failed"),
            true => Err("initial_health_check_in_progress"),
        }
    }

    fn strict(&mut self, view: &View<'_>, grace_ms: u64) -> Result<(), &'static str> {
        if !view.store_reachable {
            return Err("valkey_connection_failed");
        }
        if view.checked {
            self.passed = true;
            self.unchecked_since = None;
            return Ok(());
        }
        let since = *self.unchecked_since.get_or_insert(view.uptime_ms);
        match view.separate {
            _ if self.passed && view.uptime_ms.saturating_sub(since) < grace_ms => Ok(()),
            true => Err("health_checker_service_not_ready"),
            false if self.passed => Err("health_checker_not_ready"),
            false => Err("initial_health_check_in_progress"),
        }
    }
}

impl View<'_> {
    /// What the process does without.
    #[must_use]
    pub fn degraded(&self) -> Vec<Degraded> {
        let store = (!self.store_reachable).then_some(Degraded::Store);
        let checker = (!self.checked).then_some(Degraded::Checker);
        let chains = self.chains.iter().filter(|(_, good)| !good);
        let chains = chains.map(|(chain, _)| Degraded::Chain((*chain).to_owned()));
        store.into_iter().chain(checker).chain(chains).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[(&str, bool)] = &[("main", true), ("test", true)];
    const HALF: &[(&str, bool)] = &[("main", true), ("test", false)];

    fn view<'a>(uptime_ms: u64, chains: &'a [(&'a str, bool)]) -> View<'a> {
        View { uptime_ms, chains, store_reachable: true, checked: true, separate: false, stopping: false }
    }

    #[test]
    fn ready_when_every_chain_has_a_good_endpoint_or_after_ten_seconds() {
        let check = |uptime, chains, ready| {
            let found = Readiness::new(Grace::Lenient).ask(&view(uptime, chains)).is_ok();
            assert_eq!(found, ready, "{uptime} ms, {chains:?}");
        };
        check(0, GOOD, true);
        check(0, &[], true);
        check(9_999, HALF, false);
        check(10_000, HALF, true);
    }

    // Kills: N replicas leaving the service together when the store or the checker is lost.
    #[test]
    fn once_ready_only_the_stop_ends_it() {
        let mut readiness = Readiness::new(Grace::Lenient);
        assert!(readiness.ask(&view(5, GOOD)).is_ok());
        let lost = View { store_reachable: false, checked: false, ..view(6, HALF) };
        assert!(readiness.ask(&lost).is_ok());
        assert_eq!(readiness.ask(&View { stopping: true, ..view(7, GOOD) }), Err("shutting_down"));
    }

    #[test]
    fn a_store_that_is_unreachable_at_the_start_delays_by_ten_seconds_at_most() {
        let mut readiness = Readiness::new(Grace::Lenient);
        let without = |uptime| View { store_reachable: false, ..view(uptime, GOOD) };
        assert_eq!(readiness.ask(&without(9_000)), Err("valkey_connection_failed"));
        assert!(readiness.ask(&without(10_000)).is_ok());
        assert_eq!(without(10_000).degraded()[0], Degraded::Store);
    }

    #[test]
    fn what_is_missing_is_listed_by_name() {
        let view = View { store_reachable: false, checked: false, ..view(5, HALF) };
        let names: Vec<_> = view.degraded().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["store", "health_checker", "chain test"]);
        assert!(
            super::View { store_reachable: true, checked: true, chains: GOOD, ..view }.degraded().is_empty()
        );
    }

    #[test]
    fn the_strict_rule_has_a_grace_period_that_begins_with_the_first_failing_answer() {
        let mut readiness = Readiness::new(Grace::Strict { grace_ms: 60_000 });
        let unchecked = |uptime| View { checked: false, ..view(uptime, HALF) };
        assert_eq!(readiness.ask(&unchecked(20_000)), Err("initial_health_check_in_progress"));
        assert!(readiness.ask(&view(21_000, HALF)).is_ok());
        assert!(readiness.ask(&unchecked(30_000)).is_ok());
        assert!(readiness.ask(&unchecked(89_999)).is_ok());
        assert_eq!(readiness.ask(&unchecked(90_000)), Err("health_checker_not_ready"));
        assert!(readiness.ask(&view(91_000, HALF)).is_ok());
        let lost = View { store_reachable: false, ..view(92_000, GOOD) };
        assert_eq!(readiness.ask(&lost), Err("valkey_connection_failed"));
    }

    // Kills: a separate checker that is away told as a pass of our own that is not over, before and after the grace.
    #[test]
    fn the_strict_rule_names_a_separate_checker() {
        let mut readiness = Readiness::new(Grace::Strict { grace_ms: 60_000 });
        let unchecked = |uptime| View { checked: false, separate: true, ..view(uptime, HALF) };
        assert_eq!(readiness.ask(&unchecked(5)), Err("health_checker_service_not_ready"));
        assert!(readiness.ask(&View { checked: true, ..unchecked(10) }).is_ok());
        assert!(readiness.ask(&unchecked(20)).is_ok());
        assert_eq!(readiness.ask(&unchecked(60_020)), Err("health_checker_service_not_ready"));
    }
}
