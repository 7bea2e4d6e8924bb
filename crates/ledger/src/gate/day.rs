//! The use of an account over 24 hours, by which endpoints are compared: its own, and what other processes tell of
//! theirs. It holds nobody back.

use std::collections::BTreeMap;

use crate::{CeilingView, Gate, Unit};

const DAY_MS: f64 = 86_400_000.0;

impl Gate {
    /// Requests of the last 24 hours.
    #[must_use]
    pub fn use_24h(&self, now: u64) -> u64 {
        self.usage.total(now)
    }

    /// Counts `n` requests that were never sent, so that a newcomer starts level with its tier.
    pub fn lift_24h(&self, n: u32, now: u64) {
        self.usage.lift(n, now);
    }

    /// Goes on from the 24-hour use of `before`.
    pub fn carry_24h(&self, before: &Self, now: u64) {
        self.usage.carry(&before.usage, now);
    }

    /// What this process dispatched in the last 24 hours, by the hour's number, newest first.
    #[must_use]
    pub fn own_24h(&self, now: u64) -> Vec<(u64, u32)> {
        self.usage.own(now)
    }

    /// What all other processes dispatched, by the hour's number.
    pub fn adopt_24h(&self, others: &BTreeMap<u64, u32>, now: u64) {
        self.usage.adopt(others, now);
    }

    /// 24-hour use ÷ what the tightest ceiling on requests allows in 24 hours; `None` without such a ceiling.
    #[must_use]
    pub fn utilisation(&self, now: u64) -> Option<f64> {
        let per_day = |view: &CeilingView| view.limit as f64 * DAY_MS / view.window_ms.max(1) as f64;
        let requests = |view: &CeilingView| view.unit == Unit::Requests;
        let ceiling =
            self.snapshot(now).iter().filter(|view| requests(view)).map(per_day).reduce(f64::min)?;
        Some(self.use_24h(now) as f64 / ceiling.max(f64::MIN_POSITIVE))
    }
}
