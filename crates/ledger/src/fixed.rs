//! One static ceiling of one process that shares its account with nobody: the ledger's entry lies beside the block,
//! and a window's tokens are granted whole, at once. Decides exactly; a mutex is taken once per window.

use std::sync::Mutex;

use crate::{
    Ask, Block, CeilingKind, CeilingView, Holder, Ledger, Limit, LocalMs, Plan, Presence, Spent, StoreMs,
    Which,
};

const SELF: Holder = Holder(0);

#[derive(Debug)]
pub(crate) struct Fixed {
    pub(crate) limit: Limit,
    pub(crate) plan: Plan,
    block: Block,
    entry: Mutex<Ledger>,
}

impl Fixed {
    pub(crate) fn new(limit: Limit) -> Self {
        let plan = Plan::of(&limit);
        Self { limit, plan, block: Block::default(), entry: Mutex::new(Ledger::new(plan)) }
    }

    /// Takes `n` tokens of the running window, or none.
    pub(crate) fn take(&self, n: u32, now: u64) -> Option<Spent> {
        let local = LocalMs(now);
        if let Some(spent) = self.block.take(n, local) {
            return Some(spent);
        }
        if !self.block.is_over(local) {
            return None;
        }
        self.refill(now);
        self.block.take(n, local)
    }

    /// Spends up to `n` without asking whether there are so many: what is sent anyway counts.
    pub(crate) fn charge(&self, n: u32, now: u64) {
        if self.block.is_over(LocalMs(now)) {
            self.refill(now);
        }
        self.block.drain(n, LocalMs(now));
    }

    pub(crate) fn put_back(&self, window: u32, n: u32) {
        self.block.put_back(window, n);
    }

    /// Tokens to be had at `now`, which may lie ahead: nothing is granted by asking.
    pub(crate) fn left(&self, now: u64) -> u32 {
        if self.block.is_over(LocalMs(now)) {
            return self.plan.amount(self.plan.number(StoreMs(now)));
        }
        self.block.left(LocalMs(now))
    }

    /// When `n`, which must not exceed the plan's largest window, are to be had from `now` on.
    pub(crate) fn when(&self, n: u32, now: u64) -> u64 {
        if self.left(now) >= n {
            return now;
        }
        let window = self.plan.number(StoreMs(now));
        self.plan.end(self.plan.next_with(n, window) - 1).0
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
