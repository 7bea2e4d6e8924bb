//! How far each endpoint of a chain is behind. The best head is the highest that two endpoints agree on. Blocks
//! are measured at different moments, so they are compared as of one moment, at the chain's observed pace; with a
//! pace, rounding forgives one block. It excludes nobody: the caller compares the lag with its setting. Pure.

/// A pace is told by this many blocks, or by this long (milliseconds): less would be chance.
const BLOCKS_FOR_A_PACE: u64 = 5;
const TIME_FOR_A_PACE_MS: u64 = 20_000;
/// However many blocks: this soon (milliseconds) they tell of a node that catches up.
const SHORTEST_PACE_MS: u64 = 1_000;

/// The highest block that two endpoints have reached; with one endpoint, its own.
pub fn agreed_head(blocks: impl IntoIterator<Item = u64>) -> Option<u64> {
    let mut best: Option<u64> = None;
    let mut second: Option<u64> = None;
    for block in blocks {
        if best.is_none_or(|best| block > best) {
            second = best.replace(block);
        } else if second.is_none_or(|second| block > second) {
            second = Some(block);
        }
    }
    second.or(best)
}

/// The newest blocks that the endpoints of one chain told, by the endpoint's place in the chain.
#[derive(Debug, Clone)]
pub struct Heads {
    seen: Vec<Option<Seen>>,
    fresh_for_ms: u64,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    block: u64,
    at: u64,
    /// Where the next pace is counted from: a block and its time.
    since: (u64, u64),
    /// Blocks per millisecond.
    pace: Option<f64>,
}

impl Heads {
    /// For `endpoints` places; a block older than `fresh_for_ms` is not compared any more.
    #[must_use]
    pub fn new(endpoints: usize, fresh_for_ms: u64) -> Self {
        Self { seen: vec![None; endpoints], fresh_for_ms }
    }

    /// The endpoint at `place` told its newest block, by a probe or in passing. Places out of range are ignored.
    pub fn observe(&mut self, place: usize, block: u64, now: u64) {
        let Some(slot) = self.seen.get_mut(place) else { return };
        *slot = Some(match *slot {
            None => Seen { block, at: now, since: (block, now), pace: None },
            Some(before) => before.moved_to(block, now),
        });
    }

    /// The endpoint at `place` is out of service, or gone: its block counts no more.
    pub fn forget(&mut self, place: usize) {
        if let Some(slot) = self.seen.get_mut(place) {
            *slot = None;
        }
    }

    /// The newest block that the endpoint is known to have.
    #[must_use]
    pub fn known(&self, place: usize) -> Option<u64> {
        self.seen.get(place).copied().flatten().map(|seen| seen.block)
    }

    /// The best head as measured: no endpoint is assumed to have moved on.
    #[must_use]
    pub fn best_known(&self, now: u64) -> Option<u64> {
        agreed_head(self.fresh(now).map(|seen| seen.block))
    }

    /// How many blocks the endpoint is behind the best head at `now`; `None` when its block is not known.
    #[must_use]
    pub fn lag(&self, place: usize, now: u64) -> Option<u64> {
        let own = (*self.seen.get(place)?)?;
        if !self.is_fresh(&own, now) {
            return None;
        }
        let pace = self.pace(now);
        let best = agreed_head(self.fresh(now).map(|seen| seen.expected(now, pace, f64::floor)))?;
        Some(best.saturating_sub(own.expected(now, pace, f64::ceil)))
    }

    fn fresh(&self, now: u64) -> impl Iterator<Item = &Seen> {
        self.seen.iter().flatten().filter(move |seen| self.is_fresh(seen, now))
    }

    fn is_fresh(&self, seen: &Seen, now: u64) -> bool {
        now.saturating_sub(seen.at) < self.fresh_for_ms
    }

    /// The chain's pace: the lower median, so that neither a node that catches up nor one that hangs decides;
    /// none while only one endpoint tells one.
    fn pace(&self, now: u64) -> f64 {
        let mut paces: Vec<f64> = self.fresh(now).filter_map(|seen| seen.pace).collect();
        paces.sort_by(f64::total_cmp);
        if paces.len() < 2 { 0.0 } else { paces[(paces.len() - 1) / 2] }
    }
}

impl Seen {
    fn moved_to(self, block: u64, now: u64) -> Self {
        let (from, began) = self.since;
        let elapsed = now.saturating_sub(began);
        let Some(gained) = block.checked_sub(from) else {
            // The chain, or the node behind a balancer, went back: count from here.
            return Self { block, at: now, since: (block, now), pace: self.pace };
        };
        let enough = gained >= BLOCKS_FOR_A_PACE && elapsed >= SHORTEST_PACE_MS;
        if enough || elapsed >= TIME_FOR_A_PACE_MS {
            return Self { block, at: now, since: (block, now), pace: Some(gained as f64 / elapsed as f64) };
        }
        Self { block, at: now, ..self }
    }

    fn expected(&self, now: u64, pace: f64, round: fn(f64) -> f64) -> u64 {
        let gained = round(pace * now.saturating_sub(self.at) as f64);
        // The cast saturates.
        self.block.saturating_add(gained as u64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_best_head_is_the_highest_that_two_agree_on() {
        let check = |blocks: &[u64], expected| {
            assert_eq!(agreed_head(blocks.iter().copied()), expected, "{blocks:?}");
        };
        check(&[], None);
        check(&[7], Some(7));
        check(&[7, 9], Some(7));
        check(&[9, 7], Some(7));
        check(&[9, 9, 7], Some(9));
        // One endpoint that dreams of the future convicts nobody.
        check(&[100, 101, 9_999_999, 100], Some(101));
    }

    fn heads(blocks: &[u64]) -> Heads {
        let mut heads = Heads::new(blocks.len(), 100_000);
        for (place, block) in blocks.iter().enumerate() {
            heads.observe(place, *block, 1_000);
        }
        heads
    }

    fn lags(heads: &Heads, now: u64) -> Vec<Option<u64>> {
        (0..heads.seen.len()).map(|place| heads.lag(place, now)).collect()
    }

    #[test]
    fn lag_counts_from_the_best_head() {
        assert_eq!(lags(&heads(&[100, 100, 90]), 1_000), [Some(0), Some(0), Some(10)]);
        assert_eq!(lags(&heads(&[100, 98]), 1_000), [Some(0), Some(0)]);
        assert_eq!(lags(&heads(&[5]), 1_000), [Some(0)]);
    }

    #[test]
    fn an_old_block_is_not_compared() {
        let mut heads = heads(&[100, 100, 90]);
        heads.observe(0, 200, 101_000);
        assert_eq!(lags(&heads, 101_000), [Some(0), None, None]);
        heads.forget(0);
        assert_eq!(heads.best_known(101_000), None);
    }

    // A chain of four blocks a second, probed at different moments of a thirty-second interval: comparing raw
    // numbers would find the first 80 behind.
    #[test]
    fn measures_of_different_moments_are_compared_as_of_one() {
        let block_at = |now: u64| 1_000 + now / 250;
        let mut heads = Heads::new(3, 100_000);
        for round in 0..3_u64 {
            for place in 0..3 {
                let now = round * 30_000 + place as u64 * 10_000;
                let stuck = if place == 2 { block_at(now.min(31_000)) } else { block_at(now) };
                heads.observe(place, stuck, now);
            }
        }
        let lags = lags(&heads, 80_000);
        assert!(lags[0] <= Some(1) && lags[1] <= Some(1), "{lags:?}");
        assert!(lags[2] >= Some(190), "the one that hangs is found: {lags:?}");
    }

    // Kills: rounding an endpoint's own expected block down, which finds everybody one behind at times.
    #[test]
    fn half_a_block_is_not_behind() {
        let mut heads = heads(&[100, 100, 100]);
        for (place, now) in [(0, 21_000), (1, 22_000), (2, 22_000)] {
            heads.observe(place, 100 + (now - 1_000) / 2_000, now);
        }
        heads.observe(1, 111, 23_000);
        heads.observe(2, 111, 23_000);
        heads.observe(0, 110, 22_000);
        assert_eq!(heads.lag(0, 23_000), Some(0));
    }

    // Kills: taking two measures a moment apart for the chain's pace (one block in a second is no pace of one per
    // second), and never finding one where blocks are told all the time.
    #[test]
    fn a_pace_takes_time_or_blocks() {
        let dense = |every: u64, until: u64| {
            let mut heads = Heads::new(2, 1_000_000);
            for now in (0..=until).step_by(100) {
                heads.observe(0, 1_000 + now / every, now);
                heads.observe(1, 1_000 + now / every, now);
            }
            heads.pace(until) * 1_000.0
        };
        assert_eq!(dense(12_000, 13_000), 0.0);
        assert_eq!(dense(250, 900), 0.0);
        assert!((3.0..=5.0).contains(&dense(250, 5_000)));
        assert!((0.04..=0.1).contains(&dense(12_000, 45_000)));
    }

    #[test]
    fn one_endpoint_alone_tells_no_pace() {
        let mut heads = heads(&[100, 100]);
        heads.observe(0, 10_000, 21_000);
        assert_eq!(heads.pace(21_000), 0.0);
    }

    #[test]
    fn what_an_endpoint_is_known_to_have_is_never_assumed() {
        let mut heads = heads(&[100, 100]);
        heads.observe(0, 104, 5_000);
        heads.observe(1, 104, 5_000);
        assert_eq!((heads.known(0), heads.best_known(60_000)), (Some(104), Some(104)));
        assert_eq!(heads.known(7), None);
    }

    proptest! {
        #[test]
        fn two_endpoints_have_the_best_head(blocks in prop::collection::vec(any::<u64>(), 2..40)) {
            let head = agreed_head(blocks.iter().copied()).expect("some");
            prop_assert!(blocks.iter().filter(|block| **block >= head).count() >= 2);
            prop_assert!(blocks.iter().filter(|block| **block > head).count() <= 1);
        }

        #[test]
        fn no_measure_overflows(
            measures in prop::collection::vec((0..4_usize, any::<u64>(), any::<u64>()), 0..20), now in any::<u64>(),
        ) {
            let mut heads = Heads::new(3, u64::MAX);
            for (place, block, at) in measures {
                heads.observe(place, block, at);
            }
            for place in 0..4 {
                let _ = heads.lag(place, now);
            }
        }
    }
}
