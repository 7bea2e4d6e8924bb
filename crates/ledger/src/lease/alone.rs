//! What a replica may spend while it is cut off from the store: its share of each window that begins when every other
//! one has stopped, too, spending what it had leased.

use super::{Lease, State};
use crate::LocalMs;
use crate::presence::share;

/// Cut off, a replica spends its share only in windows that begin this long after it closed its connection.
const QUIET_MS: u64 = 3_000;
/// Windows this long are shared by what was last known to remain.
const LONG_MS: u64 = 3_600_000;

/// What may be spent in `window`, cut off from the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alone {
    pub(super) window: u64,
    pub(super) given: u32,
    /// What may have been spent in the windows before it that still count.
    pub(super) before: u32,
    /// The window is over for everybody by then, and nothing more need be reported.
    pub(super) over: LocalMs,
}

impl Lease {
    /// Gives this replica its share of the running window, if it may have one.
    pub(super) fn go_alone(&self, state: &mut State, now: LocalMs) {
        let Some(closed) = state.cut_off else { return };
        let proxies = state.proxies.unwrap_or(self.assumed);
        let Some((window, starts, ends)) = self.calendar(state, now).window_at(self.plan.period_ms(), now)
        else {
            return;
        };
        let of_loss = starts < closed.plus(QUIET_MS);
        let long = self.plan.period_ms() >= LONG_MS;
        let amount = match (of_loss, long) {
            (true, false) => return,
            (true, true) if now < closed.plus(QUIET_MS) => return,
            // Of the window that runs when a process starts without the store nothing is known.
            (true, true) => state.calendar.map_or_else(|| self.plan.amount(window), |_| state.remaining),
            (false, _) => self.plan.amount(window),
        };
        if state.alone.is_some_and(|alone| alone.window == window) {
            return;
        }
        // What it still holds of this window is part of the share.
        let held = if of_loss { 0 } else { state.leased_for(window) };
        let given = share(amount, proxies).saturating_sub(held);
        let share = share(amount, proxies);
        let before = state.alone.map_or(0, |alone| alone.before.saturating_add(alone.given));
        let before = before.min(share.saturating_mul(self.remembered - 1));
        let over = starts.plus(self.plan.period_ms().saturating_mul(u64::from(self.remembered)));
        state.alone = Some(Alone { window, given, before, over });
        self.install(state, window, given, ends);
    }
}

impl State {
    /// All that was leased for `window` before the store was lost, spent or not.
    fn leased_for(&self, window: u64) -> u32 {
        let coming = self.coming.filter(|coming| coming.window == window).map_or(0, |coming| coming.tokens);
        if self.leased.0 == window { self.leased.1.saturating_add(coming) } else { coming }
    }
}
