//! The blocks up to which logs were told: heights and hashes, the newest last, not every one of them known.

use std::collections::VecDeque;

use crate::block::Hash;
use crate::chain::REMEMBERED;

/// A block on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) number: u64,
    pub(super) hash: Hash,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    marks: VecDeque<Mark>,
    /// The height of the newest while some of its logs may be missing.
    open: Option<u64>,
}

impl Trail {
    pub(super) fn tip(&self) -> Option<Mark> {
        self.marks.back().copied()
    }

    /// The height of the newest if some of its logs may be missing.
    pub(super) fn open(&self) -> Option<u64> {
        self.open
    }

    pub(super) fn is_full(&self) -> bool {
        self.marks.len() == REMEMBERED
    }

    /// Blocks all of whose logs were told.
    pub(super) fn told(&self) -> impl Iterator<Item = Hash> + '_ {
        self.marks.iter().filter(|mark| Some(mark.number) != self.open).map(|mark| mark.hash)
    }

    /// The newest is this, of which logs may yet come. What stood at its height, or below it and is not its
    /// parent, stands no more.
    pub(super) fn reach(&mut self, mark: Mark, parent: Option<Hash>) {
        while self.marks.back().is_some_and(|tip| tip.number >= mark.number) {
            self.marks.pop_back();
        }
        let below = self.marks.back().filter(|tip| tip.number + 1 == mark.number);
        if below.is_some_and(|below| parent.is_some_and(|parent| parent != below.hash)) {
            self.marks.pop_back();
        }
        self.marks.push_back(mark);
        if self.marks.len() > REMEMBERED {
            self.marks.pop_front();
        }
        self.open = Some(mark.number);
    }

    /// Takes the newest away.
    pub(super) fn pop(&mut self) -> Option<Mark> {
        self.open = None;
        self.marks.pop_back()
    }

    /// Takes those above a height away; what puts them back.
    pub(super) fn split(&mut self, height: u64) -> Option<Trail> {
        let at = self.marks.partition_point(|mark| mark.number <= height);
        let above = self.marks.split_off(at);
        (!above.is_empty()).then(|| Trail { marks: above, open: self.open.take() })
    }

    /// Puts those of [`Trail::split`] back.
    pub(super) fn join(&mut self, above: Trail) {
        self.marks.extend(above.marks);
        self.open = above.open;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::tests::hash;

    fn mark(number: u64, branch: u64) -> Mark {
        Mark { number, hash: hash(number * 10 + branch) }
    }

    fn numbers(trail: &Trail) -> Vec<(u64, bool)> {
        trail.marks.iter().map(|mark| (mark.number, *mark == self::mark(mark.number, 0))).collect()
    }

    // Kills: a branch that stays beside another, an open block that counts as told, a split that loses any.
    #[test]
    fn a_trail_follows_the_chain() {
        let mut trail = Trail::default();
        for number in 5..=8 {
            trail.reach(mark(number, 0), Some(mark(number - 1, 0).hash));
        }
        assert_eq!((trail.told().count(), trail.open()), (3, Some(8)));
        let above = trail.split(6).expect("two");
        assert_eq!((numbers(&trail), trail.open()), (vec![(5, true), (6, true)], None));
        trail.join(above);
        assert_eq!((trail.told().count(), trail.open()), (3, Some(8)));
        trail.reach(mark(7, 1), Some(mark(6, 1).hash));
        assert_eq!(numbers(&trail), [(5, true), (7, false)], "6 is not the parent of 7");
        trail.reach(mark(20, 0), None);
        assert_eq!((trail.told().count(), trail.open(), trail.split(20).is_none()), (2, Some(20), true));
        assert_eq!((trail.pop(), trail.tip()), (Some(mark(20, 0)), Some(mark(7, 1))));
    }
}
