//! A client that checks what it is told: every head and log once, in order, and every removal of something it had.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::chain::{BlockId, Chain, id_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Heads,
    Logs,
    Pending,
}

/// One subscription of a client, as the client sees it.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) kind: Kind,
    /// What it is owed begins after this height.
    pub(crate) since: usize,
    heads: Vec<BlockId>,
    logs: BTreeMap<(BlockId, usize), ()>,
    pub(crate) told: usize,
}

impl Subscription {
    pub(crate) fn new(kind: Kind, since: usize) -> Self {
        Self { kind, since, heads: Vec::new(), logs: BTreeMap::new(), told: 0 }
    }

    /// Takes what it was told; `Err` says what is wrong with it.
    pub(crate) fn take(&mut self, result: &Value, chain: &Chain) -> Result<(), String> {
        self.told += 1;
        match self.kind {
            Kind::Heads => self.head(id_of(result["hash"].as_str().expect("a hash")), chain),
            Kind::Logs => self.log(result, chain),
            Kind::Pending => Ok(()),
        }
    }

    fn head(&mut self, id: BlockId, chain: &Chain) -> Result<(), String> {
        if self.heads.contains(&id) {
            return Err(format!("head {id} twice"));
        }
        let parent = chain.blocks[id].parent;
        let follows = self.heads.iter().position(|told| Some(*told) == parent);
        match (follows, self.heads.first()) {
            (Some(at), _) => self.heads.truncate(at + 1),
            // A reorganisation from the first it was told on, or from before it came.
            (None, Some(first)) if chain.blocks[id].number <= chain.blocks[*first].number => {
                self.heads.clear();
            }
            (None, Some(_)) => {
                return Err(format!("head {id} on {parent:?} does not follow {:?}", self.heads));
            }
            (None, None) => {}
        }
        self.heads.push(id);
        Ok(())
    }

    fn log(&mut self, result: &Value, chain: &Chain) -> Result<(), String> {
        let block = id_of(result["blockHash"].as_str().expect("a hash"));
        let index = result["logIndex"].as_str().expect("an index").trim_start_matches("0x");
        let key = (block, usize::from_str_radix(index, 16).expect("an index"));
        if result["removed"] == true {
            // A node, too, tells that a log has gone to those who came after it.
            let before = chain.blocks[block].number <= self.since;
            let had = self.logs.remove(&key).is_some();
            return (had || before)
                .then_some(())
                .ok_or_else(|| format!("log {key:?} removed, and was not there"));
        }
        match self.logs.insert(key, ()) {
            None => Ok(()),
            Some(()) => Err(format!("log {key:?} twice")),
        }
    }

    /// Whether it was told all it is owed, and nothing that is of the chain no more.
    pub(crate) fn is_complete(&self, chain: &Chain) -> Result<(), String> {
        let owed = &chain.canonical[(self.since + 1).min(chain.canonical.len())..];
        match self.kind {
            Kind::Heads => {
                let all = self.heads.ends_with(owed);
                all.then_some(()).ok_or_else(|| format!("heads {:?}, owed {owed:?}", self.heads))
            }
            Kind::Logs => {
                let missed = owed.iter().flat_map(|id| (0..chain.blocks[*id].logs).map(|index| (*id, index)));
                let missed: Vec<_> = missed.filter(|key| !self.logs.contains_key(key)).collect();
                let stale: Vec<_> =
                    self.logs.keys().filter(|(id, _)| !chain.canonical.contains(id)).collect();
                let fine = missed.is_empty() && stale.is_empty();
                fine.then_some(()).ok_or_else(|| format!("missed {missed:?}, stale {stale:?}"))
            }
            Kind::Pending => Ok(()),
        }
    }
}
