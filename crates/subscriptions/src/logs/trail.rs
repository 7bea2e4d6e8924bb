//! The blocks up to which logs were told: heights and hashes, the newest last, not every one of them known. After a
//! gap was filled in it tells what is certain from what only the node that filled it has said so far.

use std::collections::VecDeque;

use crate::block::Hash;
use crate::chain::REMEMBERED;

/// How far a node's subscription must be beyond the height that was read up to, to have told all that came before.
/// Few need it: the next head names its parent. It is for nodes that leave heads out.
const CERTAIN: u64 = 16;

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
    /// The oldest are remembered no more.
    overflowed: bool,
    doubt: Option<Doubt>,
}

/// What was read may be another branch's than what the node's subscription has told so far: the answers to our calls
/// overtake it, and what is on its way may be lost with the socket.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The height that was read up to, and a block of the node's chain there or below.
    height: u64,
    seen: Option<Mark>,
    /// So many marks nothing was told against since, and the open one among them.
    firm: usize,
    open: Option<u64>,
}

impl Doubt {
    /// Whether a node that tells of this block has told all that became of the chain until it was read.
    fn ends_with(&self, mark: Mark, parent: Option<Hash>) -> bool {
        let joins = self.seen.is_some_and(|seen| seen == mark || parent == Some(seen.hash));
        joins || mark.number >= self.height.saturating_add(CERTAIN)
    }
}

impl Trail {
    pub(super) fn tip(&self) -> Option<Mark> {
        self.marks.back().copied()
    }

    /// The height of the newest if some of its logs may be missing.
    pub(super) fn open(&self) -> Option<u64> {
        self.open
    }

    /// Whether it was longer than what is remembered.
    pub(super) fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Blocks all of whose logs were told.
    pub(super) fn told(&self) -> impl Iterator<Item = Hash> + '_ {
        self.marks.iter().filter(|mark| Some(mark.number) != self.open).map(|mark| mark.hash)
    }

    /// The node tells of this block, of which logs may yet come.
    pub(super) fn reach(&mut self, mark: Mark, parent: Option<Hash>) {
        if let Some(doubt) = self.doubt.filter(|doubt| doubt.ends_with(mark, parent)) {
            self.doubt = None;
            let below = doubt.seen.filter(|seen| parent == Some(seen.hash));
            below.into_iter().for_each(|seen| self.put(seen, None));
        }
        self.put(mark, parent);
    }

    /// The newest is this, unless it is known. What stood at its height, or below it and is not its parent, stands
    /// no more.
    fn put(&mut self, mark: Mark, parent: Option<Hash>) {
        let at = self.marks.partition_point(|other| other.number < mark.number);
        if self.marks.get(at) == Some(&mark) {
            return;
        }
        self.keep(at);
        let below = self.marks.back().filter(|tip| tip.number + 1 == mark.number);
        if below.is_some_and(|below| parent.is_some_and(|parent| parent != below.hash)) {
            self.keep(at - 1);
        }
        self.marks.push_back(mark);
        self.open = Some(mark.number);
        if self.marks.len() > REMEMBERED {
            self.forget_oldest();
        }
    }

    /// What was told of this height and above is the node's chain no more.
    pub(super) fn retreat(&mut self, number: u64) {
        self.keep(self.marks.partition_point(|mark| mark.number < number));
    }

    /// Logs from this height on were read again: of the newest, some may be missing.
    pub(super) fn reopen(&mut self, from: u64) {
        self.open = self.tip().map(|tip| tip.number).filter(|tip| *tip >= from).or(self.open);
    }

    /// A gap was filled in up to this height. What is told from now on is certain once the node's subscription
    /// tells of `seen`, or of what stands on it.
    pub(super) fn doubt(&mut self, height: u64, seen: Option<Mark>) {
        self.doubt = Some(Doubt { height, seen, firm: self.marks.len(), open: self.open });
    }

    /// The node is lost: only what is certain stays.
    pub(super) fn give_up_doubtful(&mut self) {
        if let Some(doubt) = self.doubt.take() {
            self.keep(doubt.firm);
            self.open =
                doubt.open.filter(|open| self.tip().is_some_and(|tip| tip.number == *open)).or(self.open);
        }
    }

    /// Takes the newest away.
    pub(super) fn pop(&mut self) {
        self.keep(self.marks.len().saturating_sub(1));
    }

    /// Takes those above a height away; what puts them back.
    pub(super) fn split(&mut self, height: u64) -> Option<Trail> {
        let at = self.marks.partition_point(|mark| mark.number <= height);
        let above = self.marks.split_off(at);
        (!above.is_empty()).then(|| Trail { marks: above, open: self.open.take(), ..Trail::default() })
    }

    /// Puts those of [`Trail::split`] back.
    pub(super) fn join(&mut self, above: Trail) {
        self.marks.extend(above.marks);
        self.open = above.open;
    }

    fn keep(&mut self, oldest: usize) {
        if oldest < self.marks.len() {
            self.marks.truncate(oldest);
            self.open = None;
        }
        if let Some(doubt) = &mut self.doubt {
            doubt.firm = doubt.firm.min(oldest);
        }
    }

    fn forget_oldest(&mut self) {
        self.marks.pop_front();
        self.overflowed = true;
        if let Some(doubt) = &mut self.doubt {
            doubt.firm = doubt.firm.saturating_sub(1);
        }
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

    fn trail(numbers: std::ops::RangeInclusive<u64>) -> Trail {
        let mut trail = Trail::default();
        numbers.for_each(|number| trail.reach(mark(number, 0), Some(mark(number - 1, 0).hash)));
        trail
    }

    // Kills: a branch that stays beside another, an open block that counts as told, a split that loses any.
    #[test]
    fn a_trail_follows_the_chain() {
        let mut trail = trail(5..=8);
        assert_eq!((trail.told().count(), trail.open()), (3, Some(8)));
        let above = trail.split(6).expect("two");
        assert_eq!((numbers(&trail), trail.open()), (vec![(5, true), (6, true)], None));
        trail.join(above);
        assert_eq!((trail.told().count(), trail.open()), (3, Some(8)));
        trail.reach(mark(6, 0), None);
        assert_eq!((trail.tip(), trail.open()), (Some(mark(8, 0)), Some(8)), "known");
        trail.reach(mark(7, 1), Some(mark(6, 1).hash));
        assert_eq!(numbers(&trail), [(5, true), (7, false)], "6 is not the parent of 7");
        trail.reach(mark(20, 0), None);
        assert_eq!((trail.told().count(), trail.open(), trail.split(20).is_none()), (2, Some(20), true));
        trail.pop();
        assert_eq!((trail.tip(), trail.open()), (Some(mark(7, 1)), None));
    }

    /// A trail up to 8, read up to 10 where the node has 100, is told of these blocks, and the node is lost.
    fn check(told: &[(Mark, Option<Mark>)], expected: &[(u64, bool)]) {
        let mut trail = trail(6..=8);
        trail.doubt(10, Some(mark(10, 0)));
        told.iter().for_each(|(mark, parent)| trail.reach(*mark, parent.map(|parent| parent.hash)));
        trail.give_up_doubtful();
        assert_eq!(numbers(&trail), expected, "{told:?}");
    }

    // Kills: trusting a node before its subscription has caught up with what was read, never trusting it, keeping
    // what it told against.
    #[test]
    fn what_a_node_did_not_confirm_goes_with_it() {
        let old = [(6, true), (7, true), (8, true)];
        check(&[], &old);
        check(&[(mark(9, 0), Some(mark(8, 0)))], &old);
        check(&[(mark(11, 1), Some(mark(10, 1)))], &old);
        check(&[(mark(25, 0), None)], &old);
        check(&[(mark(8, 1), Some(mark(7, 0)))], &old[..2]);
        check(&[(mark(7, 1), Some(mark(6, 1))), (mark(8, 1), Some(mark(7, 1)))], &[]);
        check(&[(mark(10, 0), None)], &[old.as_slice(), &[(10, true)]].concat());
        check(&[(mark(11, 0), Some(mark(10, 0)))], &[old.as_slice(), &[(10, true), (11, true)]].concat());
        check(&[(mark(26, 0), None)], &[old.as_slice(), &[(26, true)]].concat());
    }

    // Kills: certain marks miscounted when the oldest go, an open block that is taken for told after a loss.
    #[test]
    fn certainty_survives_the_bound() {
        let newest = REMEMBERED as u64;
        let mut trail = trail(1..=newest + 1);
        trail.retreat(newest + 1);
        trail.reopen(newest + 1);
        assert_eq!((trail.has_overflowed(), trail.open()), (true, None));
        trail.reopen(newest);
        trail.doubt(1000, None);
        (1001..1004).for_each(|number| trail.reach(mark(number, 0), None));
        trail.give_up_doubtful();
        assert_eq!((trail.tip(), trail.open()), (Some(mark(newest, 0)), Some(newest)));
        trail.retreat(100);
        assert_eq!((trail.tip(), trail.open()), (Some(mark(99, 0)), None));
    }
}
