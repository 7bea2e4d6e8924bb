//! A simulated node: the chain as it has it, and the sockets to it.

use std::collections::BTreeMap;

use subscriptions::{Blame, EndpointId, SocketId};

use crate::chain::{BlockId, Chain};
use crate::client::Kind;

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) endpoint: EndpointId,
    pub(crate) chain: Vec<BlockId>,
    pub(crate) up: bool,
    /// Sends nothing any more, and says nothing of it.
    pub(crate) silent: bool,
    /// Follows the chain no more.
    pub(crate) frozen: bool,
    /// As the health checks see it.
    pub(crate) eligible: bool,
    pub(crate) sockets: BTreeMap<SocketId, Socket>,
    pub(crate) subscribed: usize,
    /// So many blocks behind the network.
    pub(crate) lag: usize,
    /// What becomes of whoever subscribes.
    pub(crate) refuses: Option<Blame>,
}

#[derive(Debug, Default)]
pub(crate) struct Socket {
    pub(crate) subscriptions: BTreeMap<String, Kind>,
    /// When the last message on it arrives: none overtakes.
    pub(crate) last: u64,
}

impl Node {
    pub(crate) fn new(endpoint: EndpointId, chain: &Chain) -> Self {
        Self {
            endpoint,
            chain: chain.canonical.clone(),
            up: true,
            silent: false,
            frozen: false,
            eligible: true,
            sockets: BTreeMap::new(),
            subscribed: 0,
            lag: 0,
            refuses: None,
        }
    }

    pub(crate) fn height(&self) -> usize {
        self.chain.len() - 1
    }

    /// Takes the network's chain up to `height`; what its subscriptions tell of it, in order.
    pub(crate) fn adopt(&mut self, chain: &Chain, height: usize, head_first: bool) -> Vec<(Kind, String)> {
        let target = &chain.canonical[..=height.min(chain.height())];
        let common = self.chain.iter().zip(target).take_while(|(own, other)| own == other).count();
        // A node does not go back on a chain that is only shorter.
        if common == target.len() {
            return Vec::new();
        }
        let mut told = Vec::new();
        for id in self.chain[common..].iter().rev() {
            let removed =
                (0..chain.blocks[*id].logs).rev().map(|log| (Kind::Logs, chain.log_json(*id, log, true)));
            told.extend(removed);
        }
        for id in &target[common..] {
            let head = (Kind::Heads, chain.head_json(*id, false));
            let logs = (0..chain.blocks[*id].logs).map(|log| (Kind::Logs, chain.log_json(*id, log, false)));
            if head_first {
                told.push(head);
                told.extend(logs);
            } else {
                told.extend(logs);
                told.push(head);
            }
        }
        self.chain = target.to_vec();
        told
    }
}
