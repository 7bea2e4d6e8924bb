//! Which logs a group of clients is told: duplicates are left out, what was missed is read with `eth_getLogs`, and
//! what was told of blocks that left the chain is told to be removed. It never asks itself: it says what it wants.

mod gap;
mod memory;
#[cfg(test)]
mod tests;
mod trail;

use std::collections::HashSet;

use crate::action::{Payload, Reason};
use crate::block::{Block, Hash};
use crate::heads::MOST_BLOCKS;
use crate::log::{Key, Log, removal};
use gap::{Gap, Heard, Stage};
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

    /// Bytes of logs that are remembered.
    pub(crate) fn remembered(&self) -> usize {
        self.memory.bytes()
    }

    /// Forgets the older half of what it remembers: a reorganisation that reaches there can no longer be told.
    pub(crate) fn halve_memory(&mut self) {
        self.memory.halve();
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
        self.trail.give_up_doubtful();
        self.settled = self.trail.told().collect();
        self.gap = Some(Gap::new(forked));
    }

    /// Another socket serves; its node is at `height`.
    pub(crate) fn resume(&mut self, height: Option<u64>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else { return Ok(()) };
        let Some(height) = height else {
            gap.stage = Stage::Listening;
            return Ok(());
        };
        gap.height = height;
        gap.above = self.trail.split(height).filter(|_| !gap.forked);
        if self.trail.tip().is_some() {
            gap.stage = Stage::Checking;
            return Ok(());
        }
        let behind = gap.above.is_some();
        self.read_from(if behind { height + 1 } else { self.beginning(height + 1) }, out)
    }

    /// The node's head: a told log of another block at its height has left the chain.
    pub(crate) fn head(&mut self, block: &Block, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else {
            self.follow(block, out);
            return Ok(());
        };
        gap.hear_head(*block)?;
        if gap.stage == Stage::Listening { self.resume(Some(block.number), out) } else { Ok(()) }
    }

    /// The live subscription told a log.
    pub(crate) fn tell(&mut self, log: Log, out: &mut Vec<Payload>) -> Result<(), Reason> {
        match &mut self.gap {
            Some(gap) => gap.hear_log(log),
            None => {
                self.tell_live(&log, out);
                Ok(())
            }
        }
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
            self.go_live(Some(mark), out);
            return Ok(());
        }
        if self.trail.tip() == Some(mark) {
            return self.stands(mark, out);
        }
        gap.forked = true;
        gap.above = None;
        self.trail.pop();
        match self.trail.tip() {
            Some(_) => Ok(()),
            None => self.read_from(self.beginning(block.number), out),
        }
    }

    /// The newest of the trail is of the new node's chain: reads what is above, and what may be missing of it.
    fn stands(&mut self, tip: Mark, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &self.gap else { return Ok(()) };
        if gap.above.is_some() {
            // The node is behind and on the same chain: it has nothing that was not told.
            self.go_live(Some(tip), out);
            return Ok(());
        }
        if gap.forked {
            return self.read_from(tip.number, out);
        }
        let first = if self.trail.open() == Some(tip.number) { tip.number } else { tip.number + 1 };
        // What came before the group is not owed, unless a reorganisation told of it.
        let told = self.memory.lowest(first).unwrap_or(u64::MAX);
        self.read_from(first.max(self.owed().min(told)), out)
    }

    /// The block it wanted is not there, or not yet. False where that changes nothing.
    pub(crate) fn missing(&mut self, out: &mut Vec<Payload>) -> bool {
        let marking = self.gap.as_ref().is_some_and(|gap| gap.stage == Stage::Marking);
        if marking {
            self.go_live(None, out);
        }
        marking
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
        for log in logs {
            self.deliver(&log, out);
        }
        self.trail.reopen(from);
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
    fn beginning(&self, number: u64) -> u64 {
        let owed = self.start.map(|start| start + 1);
        [owed, self.memory.lowest(0)].into_iter().flatten().fold(number, u64::min)
    }

    fn read_from(&mut self, from: u64, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else { return Ok(()) };
        if from > gap.height {
            self.go_live(self.trail.tip(), out);
            return Ok(());
        }
        if gap.height - from >= MOST_BLOCKS {
            return Err(Reason::TooManyBlocks);
        }
        // What is forgotten would be told twice, or never be told to be removed.
        let all_forgotten = self.trail.has_overflowed() && self.trail.tip().is_none();
        if all_forgotten || self.memory.has_forgotten(from) {
            return Err(Reason::TooDeep);
        }
        gap.stage = Stage::Reading { from };
        Ok(())
    }

    /// The gap is filled in; `seen` is a block of the new node's chain. Then what the node told meanwhile, in its order.
    fn go_live(&mut self, seen: Option<Mark>, out: &mut Vec<Payload>) {
        let Some(mut gap) = self.gap.take() else { return };
        if let Some(above) = gap.above.take() {
            self.trail.join(above);
        }
        self.trail.doubt(gap.height, seen);
        for heard in gap.into_heard() {
            match heard {
                Heard::Head(block) => self.follow(&block, out),
                Heard::Log(log) => self.tell_live(&log, out),
            }
        }
    }

    fn follow(&mut self, block: &Block, out: &mut Vec<Payload>) {
        self.displace(block.number, block.hash, out);
        self.trail.reach(Mark { number: block.number, hash: block.hash }, Some(block.parent));
    }

    fn tell_live(&mut self, log: &Log, out: &mut Vec<Payload>) {
        let mark = Mark { number: log.number, hash: log.key.block };
        let told = self.deliver(log, out);
        if log.removed {
            if told {
                // It may be lost before it tells what stands there now.
                self.trail.retreat(mark.number);
            }
        } else if told || self.trail.tip().is_none_or(|tip| tip.number < mark.number) {
            self.trail.reach(mark, None);
        }
    }

    /// Tells a log, unless that was done. Whether it was told now.
    fn deliver(&mut self, log: &Log, out: &mut Vec<Payload>) -> bool {
        let new = if log.removed {
            self.settled.remove(&log.key.block);
            self.memory.forget(log)
        } else {
            self.displace(log.number, log.key.block, out);
            !self.settled.contains(&log.key.block) && self.memory.remember(log)
        };
        if new {
            out.push(log.payload.clone());
        }
        new
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
