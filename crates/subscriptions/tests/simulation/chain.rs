//! The chain that all simulated nodes follow, with its abandoned branches.

/// A block by its place in the list of all that ever were.
pub(crate) type BlockId = usize;

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) number: usize,
    pub(crate) parent: Option<BlockId>,
    pub(crate) logs: usize,
}

/// All blocks, and those that are of the chain now, by height.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) blocks: Vec<Block>,
    pub(crate) canonical: Vec<BlockId>,
}

impl Chain {
    pub(crate) fn new(height: usize) -> Self {
        let mut chain = Self { blocks: Vec::new(), canonical: Vec::new() };
        (0..=height).for_each(|number| chain.mine(number % 3));
        chain
    }

    pub(crate) fn height(&self) -> usize {
        self.canonical.len() - 1
    }

    /// A block on top, with so many logs.
    pub(crate) fn mine(&mut self, logs: usize) {
        let block = Block { number: self.canonical.len(), parent: self.canonical.last().copied(), logs };
        self.canonical.push(self.blocks.len());
        self.blocks.push(block);
    }

    /// Takes the newest blocks away.
    pub(crate) fn abandon(&mut self, blocks: usize) {
        let left = (self.canonical.len() - blocks).max(1);
        self.canonical.truncate(left);
    }
}

fn hash(id: Option<BlockId>) -> String {
    format!("0x{:064x}", id.map_or(0, |id| id + 1))
}

pub(crate) fn id_of(hash: &str) -> BlockId {
    usize::from_str_radix(hash.trim_start_matches("0x"), 16).expect("a hash") - 1
}

impl Chain {
    pub(crate) fn head_json(&self, id: BlockId, body: bool) -> String {
        let block = &self.blocks[id];
        let body = if body { r#","transactions":[],"size":"0x1""# } else { "" };
        let (hash, parent) = (hash(Some(id)), hash(block.parent));
        format!(r#"{{"number":"{:#x}","hash":"{hash}","parentHash":"{parent}"{body}}}"#, block.number)
    }

    pub(crate) fn log_json(&self, id: BlockId, index: usize, removed: bool) -> String {
        let number = self.blocks[id].number;
        let hash = hash(Some(id));
        format!(
            r#"{{"blockNumber":"{number:#x}","blockHash":"{hash}","logIndex":"{index:#x}","removed":{removed}}}"#
        )
    }
}
