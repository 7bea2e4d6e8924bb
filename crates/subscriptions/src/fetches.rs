//! What is being fetched and what was: for a socket's groups a block is asked for once, however many miss it. The node
//! of another socket may have another block there, and have had it when its subscriptions were made.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::action::Fetch;
use crate::block::Head;
use crate::ids::{EndpointId, FetchId, GroupId, SocketId};
use crate::topic::logs_params;

/// How long an answer is good for: a chain may be reorganised.
const FRESH: Duration = Duration::from_secs(1);
/// How long after a failure, or a block that was not there yet, it is asked again.
const AGAIN: Duration = Duration::from_millis(250);

/// Fetches of a hub.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    last: u64,
    asked: BTreeMap<FetchId, Asked>,
    blocks: BTreeMap<Spot, Block>,
    logs: BTreeMap<GroupId, Reading>,
}

/// A height of the chain as the node of this socket has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    pub(crate) socket: SocketId,
    pub(crate) number: u64,
}

/// What a fetch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Block(Spot),
    Logs(GroupId),
}

#[derive(Debug)]
enum Block {
    Asked(BTreeSet<GroupId>),
    Here(Head, Instant),
    NotHere(Instant),
}

#[derive(Debug)]
enum Reading {
    Asked(FetchId),
    Failed(Instant),
}

/// What a group that wants a block gets.
#[derive(Debug)]
pub(crate) enum Got {
    Head(Head),
    /// It was asked for and is not there, or nobody answered: again then.
    NotHere(Instant),
    /// It will come.
    Later,
}

impl Fetches {
    /// A block for a group; asks for it unless that was done.
    pub(crate) fn block(
        &mut self,
        spot: Spot,
        group: GroupId,
        prefer: Option<EndpointId>,
        now: Instant,
    ) -> (Got, Option<Fetch>) {
        match self.blocks.get_mut(&spot) {
            Some(Block::Asked(groups)) => {
                groups.insert(group);
                (Got::Later, None)
            }
            Some(Block::Here(head, since)) if *since + FRESH > now => (Got::Head(head.clone()), None),
            Some(Block::NotHere(since)) if *since + AGAIN > now => (Got::NotHere(*since + AGAIN), None),
            Some(Block::Here(..) | Block::NotHere(_)) | None => {
                self.blocks.insert(spot, Block::Asked(BTreeSet::from([group])));
                (Got::Later, Some(self.ask_block(spot, prefer)))
            }
        }
    }

    /// The logs of a range for a group; `Err` with the time if that failed a moment ago.
    pub(crate) fn logs(
        &mut self,
        group: GroupId,
        (filter, from, to): (&str, u64, u64),
        prefer: Option<EndpointId>,
        now: Instant,
    ) -> Result<Option<Fetch>, Instant> {
        match self.logs.get(&group) {
            Some(Reading::Asked(_)) => return Ok(None),
            Some(Reading::Failed(since)) if *since + AGAIN > now => return Err(*since + AGAIN),
            Some(Reading::Failed(_)) | None => {}
        }
        let id = self.ask(Asked::Logs(group));
        self.logs.insert(group, Reading::Asked(id));
        Ok(Some(Fetch { id, method: "eth_getLogs", params: logs_params(filter, from, to), prefer }))
    }

    /// What `fetch` was for; `None` if nobody wants it any more.
    pub(crate) fn answered(&mut self, fetch: FetchId) -> Option<Asked> {
        self.asked.remove(&fetch)
    }

    /// A block's answer (`None`: not there, or no answer). The groups that wait for it.
    pub(crate) fn put_block(&mut self, spot: Spot, head: Option<Head>, now: Instant) -> BTreeSet<GroupId> {
        self.blocks.retain(|_, block| match block {
            Block::Asked(_) => true,
            Block::Here(_, since) | Block::NotHere(since) => *since + FRESH > now,
        });
        let answer = head.map_or(Block::NotHere(now), |head| Block::Here(head, now));
        match self.blocks.insert(spot, answer) {
            Some(Block::Asked(groups)) => groups,
            Some(Block::Here(..) | Block::NotHere(_)) | None => BTreeSet::new(),
        }
    }

    /// A group's logs were answered, or not.
    pub(crate) fn put_logs(&mut self, group: GroupId, worked: bool, now: Instant) {
        if worked {
            self.logs.remove(&group);
        } else {
            self.logs.insert(group, Reading::Failed(now));
        }
    }

    /// The chain of a socket's node has changed: answers of before are void, also those on their way. The groups that
    /// wait for any.
    pub(crate) fn forget_blocks(&mut self, socket: SocketId) -> BTreeSet<GroupId> {
        self.asked.retain(|_, asked| !matches!(asked, Asked::Block(spot) if spot.socket == socket));
        let ends = Spot { socket, number: 0 }..=Spot { socket, number: u64::MAX };
        let void: Vec<Spot> = self.blocks.range(ends).map(|(spot, _)| *spot).collect();
        let blocks = void.into_iter().filter_map(|spot| self.blocks.remove(&spot));
        let waiting = blocks.filter_map(|block| match block {
            Block::Asked(groups) => Some(groups),
            Block::Here(..) | Block::NotHere(_) => None,
        });
        waiting.flatten().collect()
    }

    /// A group wants no logs any more, or others.
    pub(crate) fn forget_logs(&mut self, group: GroupId) {
        if let Some(Reading::Asked(fetch)) = self.logs.remove(&group) {
            self.asked.remove(&fetch);
        }
    }

    fn ask_block(&mut self, spot: Spot, prefer: Option<EndpointId>) -> Fetch {
        let params = format!(r#"["{:#x}",false]"#, spot.number);
        let id = self.ask(Asked::Block(spot));
        Fetch { id, method: "eth_getBlockByNumber", params: params.into(), prefer }
    }

    fn ask(&mut self, asked: Asked) -> FetchId {
        self.last += 1;
        self.asked.insert(FetchId(self.last), asked);
        FetchId(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Payload;
    use crate::block::Block;
    use crate::block::tests::hash;

    fn spot(socket: u64) -> Spot {
        Spot { socket: SocketId(socket), number: 5 }
    }

    // Kills: one node's block taken for another's, a second call for the same, an answer from before the chain changed.
    #[test]
    fn a_block_is_asked_for_once_per_socket() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let mut fetches = Fetches::default();
        let asks = |fetches: &mut Fetches, socket, group| {
            fetches.block(spot(socket), GroupId(group), None, now).1.map(|fetch| fetch.id)
        };
        let first = asks(&mut fetches, 1, 1).expect("asked for");
        assert_eq!(asks(&mut fetches, 1, 2), None);
        let other = asks(&mut fetches, 2, 3).expect("asked for");
        assert_eq!(fetches.answered(first), Some(Asked::Block(spot(1))));
        let block = Block { number: 5, hash: hash(5), parent: hash(4) };
        let head = Head { block, payload: Payload::of_result(b"{}") };
        let waiting = fetches.put_block(spot(1), Some(head), now);
        assert_eq!(waiting, BTreeSet::from([GroupId(1), GroupId(2)]));
        assert_eq!(asks(&mut fetches, 1, 4), None, "at hand");
        assert_eq!(fetches.forget_blocks(SocketId(1)), BTreeSet::new());
        assert!(asks(&mut fetches, 1, 4).is_some(), "void");
        assert_eq!(fetches.forget_blocks(SocketId(2)), BTreeSet::from([GroupId(3)]));
        assert_eq!(fetches.answered(other), None, "void on its way");
    }
}
