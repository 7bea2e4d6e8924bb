//! Tokens of one window that this process may spend without asking: one atomic word of window number and count
//! that all workers take from. Decides who gets one; never where the next block comes from.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::LocalMs;

/// The block in force. One thread at a time may [`Block::install`]; any number may take.
#[derive(Debug, Default)]
pub struct Block {
    /// The low half of the window's number, and the tokens left.
    word: AtomicU64,
    /// When the block ends. Written only while no token of the new window is to be had.
    ends: AtomicU64,
}

/// Tokens taken: of which window, and until when they may be spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// The low half of the window's number.
    pub window: u32,
    /// From this instant on they are void.
    pub ends: LocalMs,
    /// What is left in the block.
    pub left: u32,
}

impl Block {
    /// Takes `n` tokens at once, or none: two loads and one compare-and-swap.
    pub fn take(&self, n: u32, now: LocalMs) -> Option<Spent> {
        self.take_leaving(n, 0, now)
    }

    /// As [`Block::take`], but only if `leave` more are left for others.
    pub fn take_leaving(&self, n: u32, leave: u32, now: LocalMs) -> Option<Spent> {
        let mut held = self.word.load(Ordering::Acquire);
        loop {
            let ends = LocalMs(self.ends.load(Ordering::Acquire));
            let (window, tokens) = unpack(held);
            if tokens < n.saturating_add(leave) || now >= ends {
                return None;
            }
            // If the end read belongs to the next block, its install has emptied the word first, and this fails.
            let next = pack(window, tokens - n);
            match self.word.compare_exchange_weak(held, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(Spent { window, ends, left: tokens - n }),
                Err(other) => held = other,
            }
        }
    }

    /// Takes what there is, up to `n`; returns how many.
    pub fn drain(&self, n: u32, now: LocalMs) -> u32 {
        loop {
            let most = self.left(now).min(n);
            if most == 0 || self.take(most, now).is_some() {
                return most;
            }
        }
    }

    /// Puts back tokens of `window`; false if that window is no longer in force.
    pub fn put_back(&self, window: u32, n: u32) -> bool {
        self.change(|of, tokens| (of == window).then(|| tokens.saturating_add(n)))
    }

    /// Adds `tokens` of the window numbered `window`, good until `ends`. Tokens left of an earlier window are void
    /// from now on; those of a later one stay, and the new ones are refused.
    pub fn install(&self, window: u64, tokens: u32, ends: LocalMs) -> bool {
        let window = window as u32;
        let (of, _) = unpack(self.word.load(Ordering::Acquire));
        if window == of {
            self.ends.fetch_max(ends.0, Ordering::AcqRel);
            return self.put_back(window, tokens);
        }
        // Compared as a distance: numbers wrap after 2³² windows.
        if (window.wrapping_sub(of) as i32) < 0 && self.ends.load(Ordering::Acquire) != 0 {
            return false;
        }
        self.word.store(pack(window, 0), Ordering::Release);
        self.ends.store(ends.0, Ordering::Release);
        self.put_back(window, tokens)
    }

    /// Voids what is left.
    pub fn clear(&self) {
        self.change(|_, _| Some(0));
    }

    /// Tokens left at `now`.
    #[must_use]
    pub fn left(&self, now: LocalMs) -> u32 {
        let (_, tokens) = unpack(self.word.load(Ordering::Acquire));
        if self.is_over(now) { 0 } else { tokens }
    }

    /// Tokens that were not taken, whether or not they are void by now.
    #[must_use]
    pub fn untaken(&self) -> u32 {
        unpack(self.word.load(Ordering::Acquire)).1
    }

    /// When the block ends.
    #[must_use]
    pub fn ends(&self) -> LocalMs {
        LocalMs(self.ends.load(Ordering::Acquire))
    }

    /// True once the block has ended, or before the first one.
    #[must_use]
    pub fn is_over(&self, now: LocalMs) -> bool {
        now >= self.ends()
    }

    fn change(&self, to: impl Fn(u32, u32) -> Option<u32>) -> bool {
        self.word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| {
                let (window, tokens) = unpack(held);
                to(window, tokens).map(|tokens| pack(window, tokens))
            })
            .is_ok()
    }
}

fn pack(window: u32, tokens: u32) -> u64 {
    (u64::from(window) << 32) | u64::from(tokens)
}

fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_after(steps: &[(u64, u32, u64)]) -> u32 {
        let block = Block::default();
        for (window, tokens, ends) in steps {
            block.install(*window, *tokens, LocalMs(*ends));
        }
        block.left(LocalMs(50))
    }

    #[test]
    fn blocks_of_one_window_add_up_and_older_ones_are_refused() {
        assert_eq!(left_after(&[(7, 5, 100)]), 5);
        assert_eq!(left_after(&[(7, 5, 100), (7, 3, 100)]), 8);
        assert_eq!(left_after(&[(7, 5, 100), (8, 3, 200)]), 3);
        // Kills an install that lets the window number go back.
        assert_eq!(left_after(&[(8, 3, 200), (7, 5, 100)]), 3);
        assert_eq!(left_after(&[(u64::from(u32::MAX), 3, 100), (1 << 32, 4, 200)]), 4);
        assert_eq!(left_after(&[(7, 5, 50)]), 0);
    }

    #[test]
    fn all_or_nothing_until_the_end() {
        let block = Block::default();
        assert_eq!(block.take(1, LocalMs(0)), None);
        block.install(7, 5, LocalMs(100));
        assert_eq!(block.take(6, LocalMs(50)), None);
        assert_eq!(block.take(5, LocalMs(100)), None);
        assert_eq!(block.take(4, LocalMs(99)), Some(Spent { window: 7, ends: LocalMs(100), left: 1 }));
        assert!(block.put_back(7, 4));
        assert!(!block.put_back(6, 4));
        assert_eq!(block.drain(9, LocalMs(99)), 5);
        assert_eq!(block.drain(9, LocalMs(99)), 0);
    }

    #[test]
    fn threads_never_take_more_than_there_is() {
        let block = Block::default();
        block.install(7, 10_000, LocalMs(100));
        let taken: u32 = std::thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|n| {
                    scope.spawn({
                        let block = &block;
                        move || {
                            (0..4000)
                                .filter(|i| block.take(1 + (i + n) % 2, LocalMs(1)).is_some())
                                .map(|i| 1 + (i + n) % 2)
                                .sum::<u32>()
                        }
                    })
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().expect("a taker does not panic")).sum()
        });
        assert_eq!(taken + block.left(LocalMs(1)), 10_000);
    }
}
