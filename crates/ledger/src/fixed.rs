//! One static ceiling of one process that shares its account with nobody: the ledger's entry lies beside the block,
//! and a window's tokens are granted whole, at once. Decides exactly; a mutex is taken once per window.

use std::sync::Mutex;

use crate::several::Ceiling;
use crate::{
    Ask, Block, CeilingKind, CeilingView, Holder, Ledger, Limit, LocalMs, Plan, Presence, StoreMs, Taken,
    Which,
};

const SELF: Holder = Holder(0);

#[derive(Debug)]
pub(crate) struct Fixed {
    limit: Limit,
    plan: Plan,
    block: Block,
    entry: Mutex<Ledger>,
}

impl Fixed {
    pub(crate) fn new(limit: Limit) -> Self {
        let plan = Plan::of(&limit);
        Self { limit, plan, block: Block::default(), entry: Mutex::new(Ledger::new(plan)) }
    }

    /// Spends up to `n` without asking whether there are so many: what is sent anyway counts.
    pub(crate) fn charge(&self, n: u32, now: u64) {
        if self.block.is_over(LocalMs(now)) {
            self.refill(now);
        }
        self.block.drain(n, LocalMs(now));
    }

    /// Tokens to be had at `now`, which may lie ahead: nothing is granted by asking.
    pub(crate) fn left(&self, now: u64) -> u32 {
        if self.block.is_over(LocalMs(now)) {
            return self.plan.amount(self.plan.number(StoreMs(now)));
        }
        self.block.left(LocalMs(now))
    }

    pub(crate) fn view(&self, now: u64) -> CeilingView {
        let window = self.plan.number(StoreMs(now));
        let left = self.left(now);
        CeilingView {
            window_ms: self.limit.window_ms,
            unit: self.limit.unit,
            limit: u64::from(self.limit.amount),
            kind: CeilingKind::Static,
            used: u64::from(self.plan.amount(window).saturating_sub(left)),
        }
    }

    fn refill(&self, now: u64) {
        let mut entry = self.entry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !self.block.is_over(LocalMs(now)) {
            return;
        }
        let whole = Ask {
            id: 0,
            holder: SELF,
            which: Which::Running,
            demand: 0,
            waiting: u32::MAX,
            alone: None,
            knows: None,
        };
        let grant = entry.grant(&whole, &Presence::default(), StoreMs(now));
        self.block.install(grant.window, grant.tokens, LocalMs(now).plus(grant.ends_in_ms));
    }
}

impl Ceiling for Fixed {
    fn limit(&self) -> &Limit {
        &self.limit
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn take(&self, n: u32, leave: u32, now: u64) -> Taken {
        let local = LocalMs(now);
        if let Some(spent) = self.block.take_leaving(n, leave, local) {
            return Taken::Yes(spent);
        }
        let dry = Taken::Dry { again: self.block.ends() };
        if !self.block.is_over(local) {
            return dry;
        }
        self.refill(now);
        self.block.take_leaving(n, leave, local).map_or(dry, Taken::Yes)
    }

    fn put_back(&self, window: u32, n: u32) {
        self.block.put_back(window, n);
    }

    fn when(&self, n: u32, now: u64) -> u64 {
        if self.left(now) >= n {
            return now;
        }
        let window = self.plan.number(StoreMs(now));
        self.plan.end(self.plan.next_with(n, window) - 1).0
    }
}
