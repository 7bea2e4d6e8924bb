//! How much a replica wants of a lease: what it took from its block and what it could not have. Decides how much to
//! ask for, and whether there is anybody to ask for.

use crate::{Block, LocalMs};

/// A replica without demand for so many windows leases nothing ahead: idle replicas must not hoard.
const IDLE_WINDOWS: u64 = 10;
/// How often a replica that spends means to ask.
const REFILL_MS: u64 = 100;

#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// What the block held when it was last looked at.
    held: u32,
    spent: u32,
    missed: u32,
    last: Option<LocalMs>,
    last_ask: Option<LocalMs>,
    rate_per_s: f64,
}

impl Demand {
    /// `n` tokens were wanted and not there.
    pub(crate) fn missed(&mut self, n: u32, now: LocalMs) {
        self.missed = self.missed.saturating_add(n);
        self.last = Some(now);
    }

    /// Notes what was taken from the block since it was last looked at: before anything is put into it.
    pub(crate) fn settle(&mut self, block: &Block) {
        let untaken = block.untaken();
        self.spent = self.spent.saturating_add(self.held.saturating_sub(untaken));
        self.held = untaken;
    }

    /// The block was filled.
    pub(crate) fn refilled(&mut self, block: &Block) {
        self.held = block.untaken();
    }

    /// Tokens to be expected until the answer to the next ask, if each takes `way_ms`. A rising rate counts at once, a
    /// falling one by halves.
    pub(crate) fn measure(&mut self, way_ms: u64, now: LocalMs) -> u32 {
        if self.spent > 0 {
            self.last = Some(now);
        }
        if let Some(last) = self.last_ask {
            let seconds = now.since(last).max(1) as f64 / 1000.0;
            let rate = f64::from(self.spent.saturating_add(self.missed)) / seconds;
            self.rate_per_s = if rate > self.rate_per_s { rate } else { 0.5 * (self.rate_per_s + rate) };
        }
        (self.spent, self.missed, self.last_ask) = (0, 0, Some(now));
        self.within(REFILL_MS.saturating_add(way_ms.saturating_mul(2)))
    }

    /// Tokens to be expected in so many milliseconds.
    pub(crate) fn within(&self, ms: u64) -> u32 {
        (self.rate_per_s * ms as f64 / 1000.0).ceil() as u32
    }

    /// Whether nothing was wanted in the last windows of `period_ms`.
    pub(crate) fn is_idle(&self, period_ms: u64, now: LocalMs) -> bool {
        let lately = period_ms.saturating_mul(IDLE_WINDOWS);
        self.last.is_none_or(|last| now.since(last) > lately)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_ended_unspent_are_no_demand() {
        let (block, mut demand) = (Block::default(), Demand::default());
        assert!(demand.is_idle(1000, LocalMs(0)));
        block.install(1, 100, LocalMs(1000));
        demand.refilled(&block);
        block.take(30, LocalMs(0));
        demand.settle(&block);
        demand.measure(0, LocalMs(0));
        assert!(!demand.is_idle(1000, LocalMs(10_000)) && demand.is_idle(1000, LocalMs(10_001)));
        // The seventy that are left end with their window. Kills counting what a new block replaces.
        demand.settle(&block);
        block.install(2, 50, LocalMs(2000));
        demand.refilled(&block);
        demand.settle(&block);
        assert_eq!(demand.measure(0, LocalMs(1000)), 0);
    }

    #[test]
    fn a_rising_rate_counts_at_once() {
        let mut demand = Demand::default();
        demand.measure(0, LocalMs(0));
        demand.missed(500, LocalMs(900));
        assert_eq!(demand.measure(0, LocalMs(1000)), 50);
        // Kills a slow store that is asked for as little as a fast one.
        assert_eq!(demand.measure(200, LocalMs(2000)), 25 * 5);
    }
}
