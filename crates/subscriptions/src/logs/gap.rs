//! What is known of a gap while it is filled in: how far that is, and what the new node tells meanwhile, which is
//! kept in its order. Decides when that is too much.

use std::collections::VecDeque;

use super::MOST_LOGS;
use super::trail::Trail;
use crate::action::Reason;
use crate::block::Block;
use crate::heads::MOST_BLOCKS;
use crate::log::Log;

/// Blocks whose logs may have been missed.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) stage: Stage,
    /// The new node's height.
    pub(super) height: u64,
    /// What the lost node told beyond that.
    pub(super) above: Option<Trail>,
    /// Blocks that were told of have left the chain.
    pub(super) forked: bool,
    heard: VecDeque<Heard>,
    heads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
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

/// Something the new node told.
#[derive(Debug)]
pub(super) enum Heard {
    Head(Block),
    Log(Log),
}

impl Gap {
    /// A gap that begins, where blocks that were told of may be known to have left the chain.
    pub(super) fn new(forked: bool) -> Self {
        Self { stage: Stage::Suspended, height: 0, above: None, forked, heard: VecDeque::new(), heads: 0 }
    }

    pub(super) fn hear_head(&mut self, block: Block) -> Result<(), Reason> {
        if self.heads as u64 == MOST_BLOCKS {
            return Err(Reason::TooManyBlocks);
        }
        self.heads += 1;
        self.heard.push_back(Heard::Head(block));
        Ok(())
    }

    pub(super) fn hear_log(&mut self, log: Log) -> Result<(), Reason> {
        if self.heard.len() - self.heads == MOST_LOGS {
            return Err(Reason::TooManyLogs);
        }
        self.heard.push_back(Heard::Log(log));
        Ok(())
    }

    pub(super) fn into_heard(self) -> VecDeque<Heard> {
        self.heard
    }
}
