//! The store's side of a static limit: one entry per window from which blocks are granted. It subtracts before
//! anything is spent, so a crash, a delay or a lost reply only leaves tokens unused. Pure arithmetic: the store
//! makes it atomic.

use crate::{Holder, Plan, Presence, StoreMs};

/// A grant is at least this part of the window's amount, so that a block is worth its round trip.
const LEAST_PART: u32 = 200;

/// Which window a replica asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The running one.
    Running,
    /// The one after it, ahead of its start.
    Coming,
}

/// A replica's wish for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Its own number for this call. Tokens are returned under it.
    pub id: u64,
    /// Who asks.
    pub holder: Holder,
    /// Which window's tokens.
    pub which: Which,
    /// Tokens it expects to spend until its next call.
    pub demand: u32,
    /// Tokens that requests already wait for: granted on top.
    pub waiting: u32,
    /// What it spent on its own, cut off from the store, and in which window. Charged first.
    pub alone: Option<(u64, u32)>,
    /// The number of proxies it was last told.
    pub knows: Option<u32>,
}

/// What was granted; 0 tokens mean that the window is dry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The call's own number.
    pub id: u64,
    /// How many tokens.
    pub tokens: u32,
    /// Of which window.
    pub window: u64,
    /// Until that window starts: 0 if it runs.
    pub starts_in_ms: u64,
    /// Until that window ends.
    pub ends_in_ms: u64,
    /// What that window still holds.
    pub remaining: u32,
    /// How many proxies there are.
    pub proxies: u32,
}

/// One static limit of one account.
#[derive(Debug, Clone)]
pub struct Ledger {
    plan: Plan,
    /// The running window. Its number never goes back.
    window: u64,
    taken: u32,
    taken_ahead: u32,
    /// Grants of the running and the coming window that may still be returned.
    handed: Vec<Handed>,
}

#[derive(Debug, Clone, Copy)]
struct Handed {
    holder: Holder,
    id: u64,
    window: u64,
    tokens: u32,
}

impl Ledger {
    /// An entry that has granted nothing yet.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self { plan, window: 0, taken: 0, taken_ahead: 0, handed: Vec::new() }
    }

    /// Grants a block. The replica must have been noted in `presence` by this very call.
    pub fn grant(&mut self, ask: &Ask, presence: &Presence, now: StoreMs) -> Grant {
        self.turn(now);
        if let Some((window, spent)) = ask.alone {
            self.charge(window, spent);
        }
        let window = match ask.which {
            Which::Running => self.window,
            Which::Coming => self.window.saturating_add(1),
        };
        let starts_in_ms = match ask.which {
            Which::Running => 0,
            Which::Coming => self.plan.end(self.window).since(now),
        };
        let remaining = self.remaining(window, presence, StoreMs(now.0.saturating_add(starts_in_ms)));
        let amount = self.plan.amount(window);
        let proxies = presence.live(now);
        let tokens = block_size(ask.demand, remaining, proxies, amount, ask.waiting);
        self.charge(window, tokens);
        if tokens > 0 {
            self.handed.push(Handed { holder: ask.holder, id: ask.id, window, tokens });
        }
        let ends_in_ms = self.plan.end(window).since(now);
        Grant { id: ask.id, tokens, window, starts_in_ms, ends_in_ms, remaining: remaining - tokens, proxies }
    }

    /// Takes back up to `tokens` of the grant `id`, once, while its window runs or is still to come. Returns how
    /// many were taken back.
    pub fn give_back(&mut self, holder: Holder, id: u64, tokens: u32, now: StoreMs) -> u32 {
        self.turn(now);
        let Some(at) = self.handed.iter().position(|h| h.holder == holder && h.id == id) else { return 0 };
        let handed = self.handed.swap_remove(at);
        let back = tokens.min(handed.tokens);
        if handed.window == self.window {
            self.taken = self.taken.saturating_sub(back);
        } else {
            self.taken_ahead = self.taken_ahead.saturating_sub(back);
        }
        back
    }

    /// What `window` still holds for those who are heard.
    fn remaining(&self, window: u64, presence: &Presence, at: StoreMs) -> u32 {
        let taken = if window == self.window { self.taken } else { self.taken_ahead };
        let amount = self.plan.amount(window);
        amount.saturating_sub(taken).saturating_sub(presence.withheld(amount, at))
    }

    fn charge(&mut self, window: u64, tokens: u32) {
        if window == self.window {
            self.taken = self.taken.saturating_add(tokens);
        } else if window == self.window.saturating_add(1) {
            self.taken_ahead = self.taken_ahead.saturating_add(tokens);
        }
    }

    /// Moves on to the window of `now`, never back.
    fn turn(&mut self, now: StoreMs) {
        let number = self.plan.number(now);
        if number <= self.window {
            return;
        }
        self.taken = if number == self.window.saturating_add(1) { self.taken_ahead } else { 0 };
        self.taken_ahead = 0;
        self.window = number;
        self.handed.retain(|h| h.window >= number);
    }
}

/// How many tokens to grant: what the asker will spend until it asks again, but at most half of an equal share of
/// what remains, at least a two-hundredth of the limit, and what already waits on top.
#[must_use]
pub fn block_size(demand: u32, remaining: u32, proxies: u32, amount: u32, waiting: u32) -> u32 {
    let fair = remaining / proxies.max(1).saturating_mul(2);
    let block = demand.min(fair).max(amount / LEAST_PART).max(1).saturating_add(waiting);
    block.min(remaining)
}
