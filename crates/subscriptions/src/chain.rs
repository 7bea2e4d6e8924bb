//! The newest blocks that were told, and where another one fits. The memory by which duplicates and reorganisations
//! are known; it never asks for anything.

use std::collections::VecDeque;

use crate::block::{Block, Hash};

/// How many blocks are remembered.
pub(crate) const REMEMBERED: usize = 128;

/// Blocks that follow each other, the newest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    blocks: VecDeque<Block>,
}

/// Where a block fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It was told already, or is older than all that was.
    Told,
    /// It follows the newest.
    Next,
    /// It replaces what was told at its height and above.
    Fork,
    /// Something between is missing.
    Gap,
}

impl Chain {
    pub(crate) fn tip(&self) -> Option<&Block> {
        self.blocks.back()
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(crate) fn contains(&self, hash: Hash) -> bool {
        self.blocks.iter().rev().any(|block| block.hash == hash)
    }

    pub(crate) fn fit(&self, block: &Block) -> Fit {
        let (Some(tip), Some(oldest)) = (self.blocks.back(), self.blocks.front()) else { return Fit::Next };
        if block.parent == tip.hash {
            Fit::Next
        } else if block.number < oldest.number || self.contains(block.hash) {
            Fit::Told
        } else if block.number == oldest.number || self.contains(block.parent) {
            Fit::Fork
        } else {
            Fit::Gap
        }
    }

    /// Takes a block as the newest; what it does not follow has left the chain.
    pub(crate) fn push(&mut self, block: Block) {
        while self.blocks.back().is_some_and(|tip| tip.hash != block.parent) {
            self.blocks.pop_back();
        }
        self.blocks.push_back(block);
        if self.blocks.len() > REMEMBERED {
            self.blocks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::hash;

    /// Block `number` of branch `a` (0) or another, on a parent of branch `on`.
    fn block(number: u64, branch: u64, on: u64) -> Block {
        Block { number, hash: hash(number * 10 + branch), parent: hash((number - 1) * 10 + on) }
    }

    fn chain(numbers: std::ops::RangeInclusive<u64>) -> Chain {
        let mut chain = Chain::default();
        numbers.for_each(|number| chain.push(block(number, 0, 0)));
        chain
    }

    // Kills: every comparison in `fit`.
    #[test]
    fn blocks_fit_where_their_parents_are() {
        let chain = chain(10..=12);
        for (block, fit) in [
            (block(13, 0, 0), Fit::Next),
            (block(12, 0, 0), Fit::Told),
            (block(10, 0, 0), Fit::Told),
            (block(9, 0, 0), Fit::Told),
            (block(12, 1, 0), Fit::Fork),
            (block(11, 1, 0), Fit::Fork),
            (block(10, 1, 0), Fit::Fork),
            (block(12, 1, 1), Fit::Gap),
            (block(13, 1, 1), Fit::Gap),
            (block(14, 0, 0), Fit::Gap),
        ] {
            assert_eq!(chain.fit(&block), fit, "{block:?}");
        }
        assert_eq!(Chain::default().fit(&block(5, 0, 0)), Fit::Next);
    }

    // Kills: a fork that leaves the old branch remembered, a memory without bound.
    #[test]
    fn a_fork_replaces_and_memory_is_bounded() {
        let mut forked = chain(10..=12);
        forked.push(block(11, 1, 0));
        assert_eq!(forked.tip().map(|tip| tip.number), Some(11));
        assert!(!forked.contains(hash(120)) && forked.contains(hash(100)));
        let long = chain(1..=200);
        assert_eq!(
            (long.len(), long.contains(hash(730)), long.contains(hash(720))),
            (REMEMBERED, true, false)
        );
    }
}
