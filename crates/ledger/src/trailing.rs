//! The store's side of learned ceilings: grants come out of ceiling − trailing use, and count as use at once. Each
//! tenth of the shortest window is a window of its own for those who lease, so that what is granted in a tenth is
//! written in it. Pure arithmetic: the store makes it atomic.

use crate::{Ask, Grant, Presence, Slots, StoreMs, Which, block_size};

/// The learned ceilings of one account, shared by replicas.
#[derive(Debug)]
pub struct Trailing {
    spans: Vec<Slots>,
    slot_ms: u64,
    /// The running tenth of the shortest window. It never goes back.
    slot: u64,
}

impl Trailing {
    /// Nothing granted yet, over windows of these lengths in milliseconds, shortest first; at least one.
    #[must_use]
    pub fn new(windows_ms: &[u64]) -> Self {
        let spans: Vec<Slots> = windows_ms.iter().map(|window| Slots::tenths_of(*window)).collect();
        let slot_ms = spans.iter().map(Slots::slot_ms).min().unwrap_or(1);
        Self { spans, slot_ms, slot: 0 }
    }

    /// Grants a block for the running tenth or the coming one. `ceilings` are those of the windows, in their order,
    /// as grown now; a window without one gives without bound. The grant's `window` is the tenth's number.
    pub fn grant(&mut self, ask: &Ask, ceilings: &[Option<u64>], presence: &Presence, now: StoreMs) -> Grant {
        self.slot = self.slot.max(now.0 / self.slot_ms);
        if let Some((slot, spent)) = ask.alone {
            self.count(spent, slot.saturating_mul(self.slot_ms));
        }
        let starts = |slot: u64| StoreMs(slot.saturating_mul(self.slot_ms));
        let coming = self.slot.saturating_add(1);
        // The running one runs, even if the clock fell back behind its start.
        let (slot, at, starts_in_ms) = match ask.which {
            Which::Running => (self.slot, now.max(starts(self.slot)), 0),
            Which::Coming => (coming, starts(coming), starts(coming).since(now)),
        };
        let ends_in_ms = starts(slot.saturating_add(1)).since(now);
        let (ceiling, free) = self.free(ceilings, at);
        let remaining = free.saturating_sub(presence.withheld(ceiling, at));
        let proxies = presence.live(now);
        let tokens = block_size(ask.demand, remaining, proxies, ceiling, ask.waiting);
        self.count(tokens, at.0);
        Grant {
            id: ask.id,
            tokens,
            window: slot,
            starts_in_ms,
            ends_in_ms,
            remaining: remaining - tokens,
            proxies,
        }
    }

    /// Counts what was dispatched without a grant: probes, overflows, what was spent alone.
    pub fn count(&mut self, n: u32, at: u64) {
        for span in &self.spans {
            span.add(n, at);
        }
    }

    /// Trailing use of each window at `at`.
    #[must_use]
    pub fn used(&self, at: StoreMs) -> Vec<u64> {
        self.spans.iter().map(|span| span.within(at.0)).collect()
    }

    /// The ceiling that leaves least, and what it leaves.
    fn free(&self, ceilings: &[Option<u64>], at: StoreMs) -> (u32, u32) {
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let left = |(span, ceiling): (&Slots, &Option<u64>)| {
            ceiling.map(|c| (narrow(c), narrow(c.saturating_sub(span.within(at.0)))))
        };
        self.spans
            .iter()
            .zip(ceilings)
            .filter_map(left)
            .min_by_key(|(_, free)| *free)
            .unwrap_or((u32::MAX, u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Holder;

    const START: u64 = 1_700_000_040_000;

    fn wish(which: Which, waiting: u32) -> Ask {
        Ask { id: 1, holder: Holder(1), which, demand: 0, waiting, alone: None, knows: None }
    }

    #[test]
    fn grants_come_out_of_what_trails() {
        let (mut ledger, presence) = (Trailing::new(&[1000, 10_000]), Presence::default());
        let mut got = |which, waiting, ceilings: [Option<u64>; 2], at| {
            let grant = ledger.grant(&wish(which, waiting), &ceilings, &presence, StoreMs(START + at));
            (grant.tokens, grant.window - START / 100, grant.starts_in_ms, grant.ends_in_ms)
        };
        assert_eq!(got(Which::Running, 5, [Some(10), None], 30), (6, 0, 0, 70));
        assert_eq!(got(Which::Coming, 9, [Some(10), None], 80), (4, 1, 20, 120));
        assert_eq!(got(Which::Running, 9, [Some(10), None], 900), (0, 9, 0, 100));
        // Half of the first six have left a tenth after a window. Kills an aligned count.
        assert_eq!(got(Which::Running, 9, [Some(10), None], 1050), (3, 10, 0, 50));
        // The longer window holds too: thirteen are in it.
        assert_eq!(got(Which::Running, 9, [Some(90), Some(15)], 3000), (2, 30, 0, 100));
        // The store's clock falls back: the tenth stays.
        assert_eq!(got(Which::Running, 9, [Some(90), Some(15)], 2000), (0, 30, 0, 1100));
    }
}
