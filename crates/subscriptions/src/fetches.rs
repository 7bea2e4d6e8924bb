//! What is being fetched and what was: a block is asked for once, however many groups miss it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::action::Fetch;
use crate::block::Head;
use crate::ids::{EndpointId, FetchId, GroupId};
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
    blocks: BTreeMap<u64, Block>,
    logs: BTreeMap<GroupId, Reading>,
}

/// What a fetch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Block(u64),
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
        number: u64,
        group: GroupId,
        prefer: Option<EndpointId>,
        now: Instant,
    ) -> (Got, Option<Fetch>) {
        match self.blocks.get_mut(&number) {
            Some(Block::Asked(groups)) => {
                groups.insert(group);
                (Got::Later, None)
            }
            Some(Block::Here(head, since)) if *since + FRESH > now => (Got::Head(head.clone()), None),
            Some(Block::NotHere(since)) if *since + AGAIN > now => (Got::NotHere(*since + AGAIN), None),
            Some(Block::Here(..) | Block::NotHere(_)) | None => {
                self.blocks.insert(number, Block::Asked(BTreeSet::from([group])));
                let params = format!(r#"["{number:#x}",false]"#);
                let id = self.ask(Asked::Block(number));
                let fetch = Fetch { id, method: "eth_getBlockByNumber", params: params.into(), prefer };
                (Got::Later, Some(fetch))
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
    pub(crate) fn put_block(&mut self, number: u64, head: Option<Head>, now: Instant) -> BTreeSet<GroupId> {
        self.blocks.retain(|_, block| match block {
            Block::Asked(_) => true,
            Block::Here(_, since) | Block::NotHere(since) => *since + FRESH > now,
        });
        let answer = head.map_or(Block::NotHere(now), |head| Block::Here(head, now));
        match self.blocks.insert(number, answer) {
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

    /// The chain has changed: answers of before are void, also those on their way. The groups that wait for any.
    pub(crate) fn forget_blocks(&mut self) -> BTreeSet<GroupId> {
        self.asked.retain(|_, asked| !matches!(asked, Asked::Block(_)));
        let blocks = std::mem::take(&mut self.blocks).into_values();
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

    fn ask(&mut self, asked: Asked) -> FetchId {
        self.last += 1;
        self.asked.insert(FetchId(self.last), asked);
        FetchId(self.last)
    }
}
