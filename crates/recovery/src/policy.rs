//! How long waits are and what ends them: one account's settings, made safe to compute with. It never looks at
//! a record.

use std::time::Duration;

use crate::record::{DAY_MS, HOUR_MS, TEN_MINUTES_MS};

/// Shortest first wait; a block cannot make the prober spin.
const MIN_INITIAL_MS: u64 = 100;

/// A tiny stated wait does not make the waits after it tiny.
const SHORTEST_STEP_MS: u64 = 500;

/// An account's `rate_limit_recovery` block, with the defaults for fields that the file leaves out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The first wait, and the wait between clean probes.
    pub initial_backoff: Duration,
    /// Growth of the wait per failed probe; anything below 1 or not finite counts as 1.
    pub backoff_multiplier: f64,
    /// The longest wait between two probes of a cycle.
    pub max_backoff: Duration,
    /// Failed probes per cycle; then the account rests until `reset_after`.
    pub max_retries: u32,
    /// Clean probes in a row that end the episode.
    pub required_successes: u32,
    /// From the first hit until a fresh cycle begins.
    pub reset_after: Duration,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            initial_backoff: Duration::from_secs(300),
            backoff_multiplier: 2.0,
            max_backoff: Duration::from_secs(7_200),
            max_retries: 10,
            required_successes: 2,
            reset_after: Duration::from_secs(86_400),
        }
    }
}

/// A quick first wait is this part of the window, and never shorter than a probe's own way.
const QUICK_PART: u64 = 50;
const QUICKEST_MS: u64 = 20;
/// And for so long after the first hit a quick account is probed again within this part of the time since then, though no
/// oftener than twice a second or its pace: what it granted in its window is told the better, the sooner its return is seen.
/// Two of the longest windows.
const QUICK_FOR_MS: u64 = 120_000;
const OF_THE_TIME: u64 = 4;

/// The rules of one account's episodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    pub(crate) initial_ms: u64,
    pub(crate) multiplier: f64,
    pub(crate) max_ms: u64,
    pub(crate) required_successes: u32,
    /// Half the width of the chance added to a wait, as a share of it.
    pub(crate) spread: f64,
    /// The first wait is a part of the window that the hit is about.
    pub(crate) quick: bool,
    pub(crate) cycle: Option<Cycle>,
}

/// A bound on the probes of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) max_retries: u32,
    pub(crate) reset_after_ms: u64,
}

impl Policy {
    /// The rules for an account: those of its block, to the letter, or, without one, 500 ms ± 20 % doubling to
    /// 300 s, ended by one clean probe and never given up.
    #[must_use]
    pub fn new(block: Option<&Block>) -> Self {
        match block {
            Some(block) => Self::of_block(block),
            None => Self {
                initial_ms: 500,
                multiplier: 2.0,
                max_ms: 300_000,
                required_successes: 1,
                spread: 0.2,
                quick: false,
                cycle: None,
            },
        }
    }

    /// Without a block: of an account that keeps a level and a pace, so that a refusal is rare and says little. The first
    /// wait is a fiftieth of its window, 20 ms at least; the others double from there.
    #[must_use]
    pub fn quick(self) -> Self {
        Self { quick: self.cycle.is_none(), ..self }
    }

    fn of_block(block: &Block) -> Self {
        let initial_ms = millis(block.initial_backoff).max(MIN_INITIAL_MS);
        let multiplier = block.backoff_multiplier;
        Self {
            initial_ms,
            multiplier: if multiplier.is_finite() { multiplier.max(1.0) } else { 1.0 },
            max_ms: millis(block.max_backoff).max(initial_ms),
            required_successes: block.required_successes.max(1),
            spread: 0.0,
            quick: false,
            cycle: Some(Cycle {
                max_retries: block.max_retries.max(1),
                reset_after_ms: millis(block.reset_after),
            }),
        }
    }

    /// The longest time, in milliseconds, that can pass between two probes of a parked account.
    #[must_use]
    pub fn longest_wait_ms(&self) -> u64 {
        let longest = self.spread_out(self.max_ms, 1.0).max(HOUR_MS).max(TEN_MINUTES_MS);
        self.cycle.map_or(longest, |cycle| longest.max(cycle.reset_after_ms))
    }

    /// The longest explicit wait that is believed.
    pub(crate) fn longest_hint_ms(&self) -> u64 {
        self.max_ms.max(DAY_MS)
    }

    /// The wait that follows a wait of `wait_ms`; 0 means that there was none. `window_ms` is what the hit is about.
    /// `gap_ms` lies between two requests of its pace: where the next one is not due, a probe only costs a refusal.
    pub(crate) fn next_wait(&self, wait_ms: u64, window_ms: u64, gap_ms: u64) -> u64 {
        if self.quick && wait_ms < self.initial_ms {
            let first = (window_ms / QUICK_PART).clamp(QUICKEST_MS, self.initial_ms).max(gap_ms);
            return wait_ms.saturating_mul(2).max(first);
        }
        if wait_ms == 0 {
            return self.initial_ms;
        }
        // The cast saturates, so the largest waits stop at the maximum like any other.
        ((wait_ms as f64 * self.multiplier) as u64).clamp(self.initial_ms.min(SHORTEST_STEP_MS), self.max_ms)
    }

    /// As [`Policy::next_wait`], of an episode that began `since_ms` ago, once a probe was refused.
    pub(crate) fn next_probe(&self, wait_ms: u64, since_ms: u64) -> u64 {
        let wait = self.next_wait(wait_ms, 0, 0);
        if !self.quick || since_ms > QUICK_FOR_MS {
            return wait;
        }
        wait.min((since_ms / OF_THE_TIME).max(self.initial_ms).max(wait_ms))
    }

    /// `wait_ms` moved by chance; `jitter` in 0..=1, where 0.5 moves nothing.
    pub(crate) fn spread_out(&self, wait_ms: u64, jitter: f64) -> u64 {
        let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.5 };
        if self.spread == 0.0 {
            return wait_ms;
        }
        (wait_ms as f64 * (1.0 - self.spread + 2.0 * self.spread * jitter)) as u64
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::new(None)
    }
}

/// A duration in whole milliseconds, saturating.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(policy: &Policy, count: usize) -> Vec<u64> {
        let mut wait = 0;
        std::iter::repeat_with(|| {
            wait = policy.next_wait(wait, 60_000, 0);
            wait
        })
        .take(count)
        .collect()
    }

    #[test]
    fn without_a_block_waits_double_from_half_a_second_to_five_minutes() {
        let expected =
            [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000];
        assert_eq!(waits(&Policy::default(), 12), expected);
    }

    /// Kills: half a second for a window of one, and waits that stop growing.
    #[test]
    fn quick_waits_begin_at_a_fiftieth_of_the_window() {
        let policy = Policy::default().quick();
        let waits = |window_ms| {
            let next = move |wait: &u64| Some(policy.next_wait(*wait, 0, 0));
            std::iter::successors(Some(policy.next_wait(0, window_ms, 0)), next)
        };
        assert_eq!(waits(1_000).take(7).collect::<Vec<_>>(), [20, 40, 80, 160, 320, 640, 1_280]);
        assert_eq!(waits(10_000).take(3).collect::<Vec<_>>(), [200, 400, 800]);
        assert_eq!(waits(3_600_000).take(3).collect::<Vec<_>>(), [500, 1_000, 2_000]);
        assert_eq!(waits(1_000).nth(20), Some(300_000));
        let block = Policy::new(Some(&Block::default()));
        assert_eq!(block.quick(), block, "a block is honoured to the letter");
    }

    /// Kills: probes of an account whose next request is not due yet, each one a refusal.
    #[test]
    fn no_quick_wait_is_shorter_than_the_gap_of_the_pace() {
        let quick = Policy::default().quick();
        assert_eq!([20, 30].map(|gap| quick.next_wait(0, 1_000, gap)), [20, 30]);
        assert_eq!(quick.next_wait(0, 60_000, 12_000), 12_000);
        assert_eq!([12_000, 60_000].map(|since| quick.next_probe(12_000, since)), [12_000, 15_000]);
        assert_eq!(Policy::default().next_wait(0, 60_000, 12_000), 500, "others know no pace");
    }

    /// Kills: waits as long as all that went before, after which nobody can tell what the account granted.
    #[test]
    fn quick_waits_stay_short_for_two_windows() {
        let quick = Policy::default().quick();
        let waits = [(20, 20), (320, 700), (500, 1_400), (2_000, 8_000), (12_000, 60_000), (64_000, 130_000)];
        assert_eq!(
            waits.map(|(wait, since)| quick.next_probe(wait, since)),
            [40, 500, 500, 2_000, 15_000, 128_000]
        );
        assert_eq!(Policy::default().next_probe(2_000, 3_000), 4_000, "others double");
    }

    #[test]
    fn a_block_is_honoured_to_the_letter() {
        let block = Block {
            initial_backoff: Duration::from_secs(30),
            backoff_multiplier: 3.0,
            max_backoff: Duration::from_secs(300),
            ..Block::default()
        };
        let policy = Policy::new(Some(&block));
        assert_eq!(waits(&policy, 5), [30_000, 90_000, 270_000, 300_000, 300_000]);
        assert_eq!(policy.spread_out(30_000, 0.0), 30_000, "a written wait is not moved by chance");
    }

    #[test]
    fn chance_moves_a_default_wait_by_a_fifth_at_most() {
        let policy = Policy::default();
        let moved = [0.0, 0.5, 1.0, -7.0, 9.0, f64::NAN].map(|jitter| policy.spread_out(1_000, jitter));
        assert_eq!(moved, [800, 1_000, 1_200, 800, 1_200, 1_000]);
    }

    #[test]
    fn nonsense_in_a_block_is_made_safe() {
        let block = Block {
            initial_backoff: Duration::ZERO,
            backoff_multiplier: f64::NAN,
            max_backoff: Duration::ZERO,
            max_retries: 0,
            required_successes: 0,
            reset_after: Duration::MAX,
        };
        let policy = Policy::new(Some(&block));
        assert_eq!(waits(&policy, 3), [100, 100, 100]);
        assert_eq!(policy.required_successes, 1);
        assert_eq!(policy.longest_wait_ms(), u64::MAX);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let block = Block { backoff_multiplier: f64::MAX, max_backoff: Duration::MAX, ..Block::default() };
        let policy = Policy::new(Some(&block));
        assert_eq!(policy.next_wait(u64::MAX, 60_000, 0), u64::MAX);
        assert_eq!(policy.next_wait(1_000_000, 60_000, 0), u64::MAX);
    }
}
