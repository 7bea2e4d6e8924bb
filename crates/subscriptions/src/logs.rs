//! Which logs a group of clients is told: duplicates are left out, what was missed is read with `eth_getLogs`, and
//! what was told of blocks that left the chain is told to be removed. It never asks itself: it says what it wants.

mod memory;
mod trail;

use std::collections::{HashSet, VecDeque};

use crate::action::{Payload, Reason};
use crate::block::{Block, Hash};
use crate::heads::MOST_BLOCKS;
use crate::log::{Key, Log, removal};
use memory::{Memory, Told};
use trail::{Mark, Trail};

/// The most logs that are filled in at once, and the most that wait meanwhile.
pub(crate) const MOST_LOGS: usize = 1024;

/// What a group was told, and the gap it may have.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    memory: Memory,
    trail: Trail,
    /// Blocks all of whose logs had been told when the last socket was lost.
    settled: HashSet<Hash>,
    /// The height known when the group began: what came later it is owed.
    start: Option<u64>,
    gap: Option<Gap>,
}

/// Blocks whose logs may have been missed.
#[derive(Debug)]
struct Gap {
    stage: Stage,
    /// The new node's height.
    height: u64,
    /// What the lost node told beyond that.
    above: Option<Trail>,
    /// Blocks that were told of have left the chain.
    forked: bool,
    /// Heads and logs of the new node.
    heads: VecDeque<Block>,
    waiting: VecDeque<Log>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No socket yet.
    Suspended,
    /// Served again by a node that did not say its height: its next head does.
    Listening,
    /// Whether the newest of the trail is still of the chain.
    Checking,
    Reading {
        from: u64,
    },
    /// What stands at the height that was read up to.
    Marking,
}

/// What is needed to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    Block(u64),
    Logs { from: u64, to: u64 },
}

impl Logs {
    /// The group is served from now on, and `known` is the height so far.
    pub(crate) fn begin(&mut self, known: Option<u64>) {
        self.start = self.start.or(known);
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.gap.is_some()
    }

    /// The socket was lost. What waited is told again by another.
    pub(crate) fn lost(&mut self) {
        let forked = match self.gap.take() {
            Some(Gap { forked: false, above: Some(above), .. }) => {
                self.trail.join(above);
                false
            }
            Some(gap) => gap.forked,
            None => false,
        };
        self.settled = self.trail.told().collect();
        let (heads, waiting) = (VecDeque::new(), VecDeque::new());
        self.gap = Some(Gap { stage: Stage::Suspended, height: 0, above: None, forked, heads, waiting });
    }

    /// Another socket serves; its node is at `height`.
    pub(crate) fn resume(&mut self, height: Option<u64>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else { return Ok(()) };
        let Some(height) = height else {
            gap.stage = Stage::Listening;
            return Ok(());
        };
        gap.height = height;
        gap.above = self.trail.split(height);
        if self.trail.tip().is_some() {
            gap.stage = Stage::Checking;
            return Ok(());
        }
        let nothing = gap.above.is_some() || self.start.is_none();
        let from = if nothing { height + 1 } else { self.owed() };
        self.read_from(from, out)
    }

    /// The node's head: a told log of another block at its height has left the chain.
    pub(crate) fn head(&mut self, block: &Block, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else {
            self.displace(block.number, block.hash, out);
            self.trail.reach(Mark { number: block.number, hash: block.hash }, Some(block.parent));
            return Ok(());
        };
        if gap.heads.len() as u64 == MOST_BLOCKS {
            return Err(Reason::TooManyBlocks);
        }
        gap.heads.push_back(*block);
        if gap.stage == Stage::Listening { self.resume(Some(block.number), out) } else { Ok(()) }
    }

    /// The live subscription told a log.
    pub(crate) fn tell(&mut self, log: Log, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else {
            self.tell_live(log, out);
            return Ok(());
        };
        if gap.waiting.len() == MOST_LOGS {
            return Err(Reason::TooManyLogs);
        }
        gap.waiting.push_back(log);
        Ok(())
    }

    pub(crate) fn wants(&self) -> Option<Want> {
        let gap = self.gap.as_ref()?;
        match gap.stage {
            Stage::Suspended | Stage::Listening => None,
            Stage::Checking => self.trail.tip().map(|tip| Want::Block(tip.number)),
            Stage::Reading { from } => Some(Want::Logs { from, to: gap.height }),
            Stage::Marking => Some(Want::Block(gap.height)),
        }
    }

    /// The block it wanted.
    pub(crate) fn fetched(&mut self, block: &Block, out: &mut Vec<Payload>) -> Result<(), Reason> {
        if self.wants() != Some(Want::Block(block.number)) {
            return Ok(());
        }
        let Some(gap) = &mut self.gap else { return Ok(()) };
        let mark = Mark { number: block.number, hash: block.hash };
        if gap.stage == Stage::Marking {
            // It stays open: the node may have changed its mind since its logs were read.
            self.displace(mark.number, mark.hash, out);
            self.trail.reach(mark, None);
            return self.go_live(out);
        }
        if self.trail.tip() == Some(mark) {
            if gap.above.is_some() {
                // The node is behind and on the same chain: it has nothing that was not told.
                return self.go_live(out);
            }
            let again = gap.forked || self.trail.open() == Some(mark.number);
            let from = if again { mark.number } else { mark.number + 1 };
            let from = if gap.forked { from } else { from.max(self.owed()) };
            return self.read_from(from, out);
        }
        gap.forked = true;
        gap.above = None;
        let full = self.trail.is_full();
        self.trail.pop();
        match self.trail.tip() {
            Some(_) => Ok(()),
            None if full => Err(Reason::TooDeep),
            None => {
                let height = gap.height;
                self.read_from(self.beginning(block.number, height), out)
            }
        }
    }

    /// The block it wanted is not there, or not yet. False where that changes nothing.
    pub(crate) fn missing(&mut self, out: &mut Vec<Payload>) -> Result<bool, Reason> {
        if self.gap.as_ref().is_some_and(|gap| gap.stage == Stage::Marking) {
            self.go_live(out)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// The logs it wanted: what was told of their range and is not among them has left the chain.
    pub(crate) fn read(&mut self, logs: Vec<Log>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(Want::Logs { from, to }) = self.wants() else { return Ok(()) };
        if logs.len() > MOST_LOGS {
            return Err(Reason::TooManyLogs);
        }
        let forked = self.gap.as_ref().is_some_and(|gap| gap.forked);
        let keys: HashSet<Key> = logs.iter().map(|log| log.key).collect();
        let gone = |told: &Told| {
            let read = told.number >= from && told.number <= to;
            (read && !keys.contains(&told.key)) || (forked && told.number > to)
        };
        self.remove(gone, out);
        // A block may be known by its hash although the logs that were read were another's at its height.
        logs.iter().for_each(|log| {
            self.settled.remove(&log.key.block);
        });
        logs.into_iter().for_each(|log| self.deliver(log, out));
        if let Some(gap) = &mut self.gap {
            gap.stage = Stage::Marking;
        }
        Ok(())
    }

    /// The first block that the group is owed, but for reorganisations.
    fn owed(&self) -> u64 {
        self.start.map_or(0, |start| start + 1)
    }

    /// Where to read from when no block that was told of is of the chain: where the telling began.
    fn beginning(&self, number: u64, height: u64) -> u64 {
        let owed = self.start.map(|start| start + 1);
        let first = [owed, self.memory.lowest()].into_iter().flatten().fold(number, u64::min);
        first.max(height.saturating_sub(MOST_BLOCKS - 1))
    }

    fn read_from(&mut self, from: u64, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else { return Ok(()) };
        if from > gap.height {
            return self.go_live(out);
        }
        if gap.height - from >= MOST_BLOCKS {
            return Err(Reason::TooManyBlocks);
        }
        gap.stage = Stage::Reading { from };
        Ok(())
    }

    fn go_live(&mut self, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = self.gap.take() else { return Ok(()) };
        if let Some(above) = gap.above {
            self.trail.join(above);
        }
        gap.waiting.into_iter().for_each(|log| self.tell_live(log, out));
        // A head of what was told already says nothing new of how far the trail reaches.
        let tip = self.trail.tip().map_or(0, |tip| tip.number);
        gap.heads.iter().filter(|block| block.number > tip).try_for_each(|block| self.head(block, out))
    }

    fn tell_live(&mut self, log: Log, out: &mut Vec<Payload>) {
        let mark = Mark { number: log.number, hash: log.key.block };
        if !log.removed && self.trail.tip().is_none_or(|tip| tip.number < mark.number) {
            self.trail.reach(mark, None);
        }
        self.deliver(log, out);
    }

    fn deliver(&mut self, log: Log, out: &mut Vec<Payload>) {
        if log.removed {
            self.settled.remove(&log.key.block);
            if self.memory.forget(&log) {
                out.push(log.payload);
            }
            return;
        }
        self.displace(log.number, log.key.block, out);
        if !self.settled.contains(&log.key.block) && self.memory.remember(&log) {
            out.push(log.payload);
        }
    }

    /// At this height stands this block: logs of any other there have left the chain.
    fn displace(&mut self, number: u64, block: Hash, out: &mut Vec<Payload>) {
        if self.memory.has_other_at(number, block) {
            self.remove(|told| told.number == number && told.key.block != block, out);
        }
    }

    fn remove(&mut self, gone: impl Fn(&Told) -> bool, out: &mut Vec<Payload>) {
        for told in self.memory.take(gone) {
            self.settled.remove(&told.key.block);
            out.extend(removal(&told.result));
        }
    }
}
