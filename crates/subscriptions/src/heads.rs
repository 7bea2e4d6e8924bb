//! Which heads a group of clients is told, in which order: duplicates are left out, a missed block is asked for by
//! number, another branch is told from where it leaves the chain. It never asks itself: it says what it wants.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::action::{Payload, Reason};
use crate::block::Head;
use crate::chain::{Chain, Fit, REMEMBERED};

/// The most blocks that are filled in at once, and the most heads that wait meanwhile.
pub(crate) const MOST_BLOCKS: u64 = 256;
/// How many blocks are asked for ahead.
const AHEAD: u64 = 8;

/// What a group was told, and the gap it may have.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    told: Chain,
    /// The height known when the group began: what came later it is owed.
    start: Option<u64>,
    gap: Option<Gap>,
}

/// Blocks that were missed.
#[derive(Debug)]
struct Gap {
    stage: Stage,
    /// Heads told meanwhile, in the order they came.
    waiting: VecDeque<Head>,
    /// A branch whose lowest block does not fit yet, the lowest first.
    branch: VecDeque<Head>,
    /// The height that exists for certain.
    target: u64,
    filled: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No socket yet.
    Suspended,
    /// Whether the newest told is still of the chain.
    Checking,
    /// From the newest told upwards.
    Rising,
    /// From a block of another branch downwards.
    Falling,
}

/// What a fetched block meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Onward,
    /// The chain changed between two answers: what is cached of it is void.
    Moved,
}

impl Gap {
    fn new(stage: Stage) -> Self {
        Self { stage, waiting: VecDeque::new(), branch: VecDeque::new(), target: 0, filled: 0 }
    }
}

impl Heads {
    /// The group is served from now on, and `known` is the height so far.
    pub(crate) fn begin(&mut self, known: Option<u64>) {
        if self.told.is_empty() && self.start.is_none() {
            self.start = known;
        }
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.gap.is_some()
    }

    /// The socket was lost. What waited is told again by another.
    pub(crate) fn lost(&mut self) {
        self.gap = Some(Gap::new(Stage::Suspended));
    }

    /// Another socket serves; its node is at `height`.
    pub(crate) fn resume(&mut self, height: Option<u64>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        if let Some(gap) = &mut self.gap {
            gap.target = gap.target.max(height.unwrap_or(0));
            self.check();
        }
        self.advance(out)
    }

    /// The live subscription told a head.
    pub(crate) fn tell(&mut self, head: Head, out: &mut Vec<Payload>) -> Result<(), Reason> {
        if self.gap.is_none() {
            match self.told.fit(&head.block) {
                Fit::Told => return Ok(()),
                Fit::Next | Fit::Fork if self.follows_start(&head) => {
                    self.deliver(head, out);
                    return Ok(());
                }
                Fit::Next | Fit::Fork | Fit::Gap => self.gap = Some(Gap::new(Stage::Rising)),
            }
        }
        if let Some(gap) = &mut self.gap {
            if gap.waiting.len() as u64 == MOST_BLOCKS {
                return Err(Reason::TooManyBlocks);
            }
            gap.waiting.push_back(head);
        }
        self.advance(out)
    }

    /// The blocks it needs, the first of them at once.
    pub(crate) fn wants(&self) -> Option<RangeInclusive<u64>> {
        let gap = self.gap.as_ref()?;
        match gap.stage {
            Stage::Suspended => None,
            Stage::Checking => self.told.tip().map(|tip| tip.number..=tip.number),
            Stage::Rising => {
                let next = self.next()?;
                (next <= gap.target).then(|| next..=gap.target.min(next + AHEAD - 1))
            }
            Stage::Falling => {
                let below = gap.branch.front()?.block.number.checked_sub(1)?;
                Some(below..=below)
            }
        }
    }

    /// A block it wanted.
    pub(crate) fn fetched(&mut self, head: &Head, out: &mut Vec<Payload>) -> Result<Step, Reason> {
        if self.wants().is_none_or(|wanted| *wanted.start() != head.block.number) {
            return Ok(Step::Onward);
        }
        let Some(gap) = &mut self.gap else { return Ok(Step::Onward) };
        gap.filled += 1;
        if gap.filled > MOST_BLOCKS {
            return Err(Reason::TooManyBlocks);
        }
        if gap.branch.front().is_some_and(|above| above.block.parent != head.block.hash) {
            let top = gap.branch.back().map_or(0, |top| top.block.number);
            gap.target = gap.target.max(top);
            gap.branch.clear();
            self.check();
            self.advance(out)?;
            return Ok(Step::Moved);
        }
        if gap.stage == Stage::Checking && self.told.contains(head.block.hash) {
            gap.stage = Stage::Rising;
        } else {
            gap.stage = Stage::Falling;
            gap.branch.push_front(head.clone());
        }
        self.advance(out)?;
        Ok(Step::Onward)
    }

    /// The block it wanted is not there, or not yet. False where that changes nothing.
    pub(crate) fn missing(&mut self, out: &mut Vec<Payload>) -> Result<bool, Reason> {
        match &mut self.gap {
            Some(gap) if gap.stage == Stage::Checking => gap.stage = Stage::Rising,
            Some(_) | None => return Ok(false),
        }
        self.advance(out)?;
        Ok(true)
    }

    /// Checks the newest told first, if the chain is known to be that high.
    fn check(&mut self) {
        let tip = self.told.tip().map(|tip| tip.number);
        if let Some(gap) = &mut self.gap {
            let checks = tip.is_some_and(|tip| tip <= gap.target);
            gap.stage = if checks { Stage::Checking } else { Stage::Rising };
        }
    }

    /// Tells whatever can be told, and settles what is wanted next.
    fn advance(&mut self, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(mut gap) = self.gap.take() else { return Ok(()) };
        if matches!(gap.stage, Stage::Suspended | Stage::Checking) {
            self.gap = Some(gap);
            return Ok(());
        }
        self.connect(&mut gap, out)?;
        while gap.branch.is_empty() {
            let Some(head) = gap.waiting.pop_front() else { break };
            match self.told.fit(&head.block) {
                Fit::Told => {}
                Fit::Next | Fit::Fork if self.follows_start(&head) => self.deliver(head, out),
                Fit::Next | Fit::Fork | Fit::Gap => {
                    if !self.reach(&mut gap, head) {
                        break;
                    }
                }
            }
        }
        self.settle(gap)
    }

    /// A head that waited and does not fit: what lies below it is wanted. False if it has to wait on.
    fn reach(&self, gap: &mut Gap, head: Head) -> bool {
        let number = head.block.number;
        if self.next().is_some_and(|next| number > next) {
            gap.target = gap.target.max(number - 1);
            gap.waiting.push_front(head);
            return false;
        }
        gap.stage = Stage::Falling;
        gap.branch.push_front(head);
        true
    }

    /// Tells a branch once its lowest block fits.
    fn connect(&mut self, gap: &mut Gap, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(low) = gap.branch.front() else { return Ok(()) };
        match self.told.fit(&low.block) {
            Fit::Gap => return Ok(()),
            Fit::Fork if self.told.len() == REMEMBERED && !self.told.contains(low.block.parent) => {
                return Err(Reason::TooDeep);
            }
            Fit::Told | Fit::Next | Fit::Fork => {}
        }
        for head in std::mem::take(&mut gap.branch) {
            self.deliver(head, out);
        }
        gap.stage = Stage::Rising;
        Ok(())
    }

    /// Keeps the gap while something is wanted.
    fn settle(&mut self, gap: Gap) -> Result<(), Reason> {
        let next = self.next();
        if next.is_some_and(|next| gap.target.saturating_sub(next) >= MOST_BLOCKS) {
            return Err(Reason::TooManyBlocks);
        }
        let open = !gap.branch.is_empty() || next.is_some_and(|next| next <= gap.target);
        self.gap = open.then_some(gap);
        Ok(())
    }

    fn deliver(&mut self, head: Head, out: &mut Vec<Payload>) {
        if self.told.fit(&head.block) != Fit::Told {
            self.told.push(head.block);
            out.push(head.payload);
        }
    }

    /// The height after the newest told.
    fn next(&self) -> Option<u64> {
        self.told.tip().map(|tip| tip.number).or(self.start).map(|newest| newest + 1)
    }

    /// Whether nothing is missing before a group's first head.
    fn follows_start(&self, head: &Head) -> bool {
        !self.told.is_empty() || self.start.is_none_or(|start| head.block.number <= start + 1)
    }
}
