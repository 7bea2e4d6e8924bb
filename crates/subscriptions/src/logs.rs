//! Which logs a group of clients is told: duplicates are left out, what was missed is read with `eth_getLogs`, and
//! what was told of blocks that left the chain is told to be removed. It never asks itself: it says what it wants.

mod memory;

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use crate::action::{Payload, Reason};
use crate::block::{Block, Hash};
use crate::chain::{Chain, REMEMBERED};
use crate::heads::MOST_BLOCKS;
use crate::log::{Log, removal};
use memory::Memory;

/// The most logs that are filled in at once, and the most that wait meanwhile.
pub(crate) const MOST_LOGS: usize = 1024;

/// What a group was told, and the gap it may have.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    memory: Memory,
    /// Blocks all of whose logs were told, as of the last loss.
    settled: HashSet<Hash>,
    /// The height known when the group began: what came later it is owed.
    start: Option<u64>,
    gap: Option<Gap>,
}

/// Blocks whose logs may have been missed.
#[derive(Debug)]
struct Gap {
    stage: Stage,
    /// The chain as the lost socket told it; of its newest block some logs may be missing.
    basis: Chain,
    /// Its height.
    reached: Option<u64>,
    /// The new node's height.
    height: u64,
    waiting: VecDeque<Log>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No socket yet.
    Suspended,
    /// Served again by a node that did not say its height: its next head does.
    Listening,
    /// Whether the newest block of the basis is still of the chain.
    Checking,
    Reading {
        from: u64,
    },
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

    /// The socket was lost, whose heads were `chain`. What waited is told again by another.
    pub(crate) fn lost(&mut self, chain: &Chain) {
        if let Some(gap) = &mut self.gap {
            gap.stage = Stage::Suspended;
            gap.waiting.clear();
            return;
        }
        let basis = if chain.is_empty() { self.memory.chain() } else { chain.clone() };
        let reached = basis.tip().map(|tip| tip.number);
        self.settled = basis.hashes().collect();
        if let Some(tip) = basis.tip() {
            self.settled.remove(&tip.hash);
        }
        self.gap = Some(Gap { stage: Stage::Suspended, basis, reached, height: 0, waiting: VecDeque::new() });
    }

    /// Another socket serves; its node is at `height`.
    pub(crate) fn resume(&mut self, height: Option<u64>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else { return Ok(()) };
        let Some(height) = height else {
            gap.stage = Stage::Listening;
            return Ok(());
        };
        gap.height = height;
        while gap.basis.tip().is_some_and(|tip| tip.number > height) {
            gap.basis.pop();
        }
        match gap.basis.tip() {
            Some(_) => {
                gap.stage = Stage::Checking;
                Ok(())
            }
            None => {
                let from = gap.reached.or(self.owed()).unwrap_or(height + 1);
                self.read_from(from, out)
            }
        }
    }

    /// The node's head: a told log of another block at its height has left the chain.
    pub(crate) fn head(&mut self, block: &Block, out: &mut Vec<Payload>) -> Result<(), Reason> {
        match &self.gap {
            Some(gap) if gap.stage == Stage::Listening => self.resume(Some(block.number), out),
            Some(_) => Ok(()),
            None => {
                self.displace(block.number, block.hash, out);
                Ok(())
            }
        }
    }

    /// The live subscription told a log.
    pub(crate) fn tell(&mut self, log: Log, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else {
            self.deliver(log, out);
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
            Stage::Checking => gap.basis.tip().map(|tip| Want::Block(tip.number)),
            Stage::Reading { from } => Some(Want::Logs { from, to: gap.height }),
        }
    }

    /// The block it wanted.
    pub(crate) fn fetched(&mut self, block: &Block, out: &mut Vec<Payload>) -> Result<(), Reason> {
        if self.wants() != Some(Want::Block(block.number)) {
            return Ok(());
        }
        let Some(gap) = &mut self.gap else { return Ok(()) };
        if gap.basis.contains(block.hash) {
            // Of the newest block that the lost socket told some logs may be missing.
            let from = if gap.reached == Some(block.number) { block.number } else { block.number + 1 };
            let from =
                if gap.reached.is_some() { self.owed().map_or(from, |owed| owed.max(from)) } else { from };
            return self.read_from(from, out);
        }
        let (was, full) = (gap.basis.pop(), gap.basis.len() + 1 == REMEMBERED);
        gap.reached = None;
        let emptied = gap.basis.is_empty();
        if let Some(was) = was {
            self.remove_block(was.hash, out);
        }
        match emptied {
            true if full => Err(Reason::TooDeep),
            true => self.read_from(block.number, out),
            false => Ok(()),
        }
    }

    /// The logs it wanted.
    pub(crate) fn read(&mut self, logs: Vec<Log>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        if logs.len() > MOST_LOGS {
            return Err(Reason::TooManyLogs);
        }
        logs.into_iter().for_each(|log| self.deliver(log, out));
        self.go_live(out);
        Ok(())
    }

    /// The first block that the group is owed, but for reorganisations.
    fn owed(&self) -> Option<u64> {
        self.start.map(|start| start + 1)
    }

    fn read_from(&mut self, from: u64, out: &mut Vec<Payload>) -> Result<(), Reason> {
        let Some(gap) = &mut self.gap else { return Ok(()) };
        if from > gap.height {
            self.go_live(out);
            return Ok(());
        }
        if gap.height - from >= MOST_BLOCKS {
            return Err(Reason::TooManyBlocks);
        }
        gap.stage = Stage::Reading { from };
        Ok(())
    }

    fn go_live(&mut self, out: &mut Vec<Payload>) {
        let waiting = self.gap.take().map(|gap| gap.waiting).unwrap_or_default();
        waiting.into_iter().for_each(|log| self.deliver(log, out));
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
        while let Some(other) = self.memory.other_at(number, block) {
            self.remove_block(other, out);
        }
    }

    fn remove_block(&mut self, block: Hash, out: &mut Vec<Payload>) {
        self.settled.remove(&block);
        out.extend(self.memory.take_block(block).iter().filter_map(|result: &Bytes| removal(result)));
    }
}
