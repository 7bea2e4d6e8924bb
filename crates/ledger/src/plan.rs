//! A static limit and its calendar: which window an instant lies in, what that window holds, when it ends.

use crate::StoreMs;

/// Slots per window, where a limit is spent smoothly.
const TENTHS: u64 = 10;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests; a batch of n counts n.
    Requests,
    /// The provider's compute units.
    ComputeUnits,
}

/// A limit as configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// How many per window: at least 1.
    pub amount: u32,
    /// Of what.
    pub unit: Unit,
    /// The window in milliseconds: at least 1000.
    pub window_ms: u64,
    /// Spend a tenth per tenth of the window, for providers that count rolling windows.
    pub smooth: bool,
}

/// A limit's windows, counted from the epoch of the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    amount: u32,
    period_ms: u64,
    smooth: bool,
}

impl Plan {
    /// The windows of `limit`; with `smooth` each tenth is a window of its own. A window or amount of 0, which a
    /// validated configuration cannot hold, is taken for 1.
    #[must_use]
    pub fn of(limit: &Limit) -> Self {
        let period_ms = if limit.smooth { limit.window_ms / TENTHS } else { limit.window_ms };
        Self { amount: limit.amount.max(1), period_ms: period_ms.max(1), smooth: limit.smooth }
    }

    /// The number of the window that holds `now`.
    #[must_use]
    pub fn number(&self, now: StoreMs) -> u64 {
        now.0 / self.period_ms
    }

    /// When window `number` ends and the next one starts.
    #[must_use]
    pub fn end(&self, number: u64) -> StoreMs {
        StoreMs(number.saturating_add(1).saturating_mul(self.period_ms))
    }

    /// What window `number` holds. Smooth tenths differ by one at most and add up to the limit.
    #[must_use]
    pub fn amount(&self, number: u64) -> u32 {
        if !self.smooth {
            return self.amount;
        }
        let (tenth, amount) = (number % TENTHS, u64::from(self.amount));
        ((tenth + 1) * amount / TENTHS - tenth * amount / TENTHS) as u32
    }

    /// The most that any one window holds: a request for more never fits.
    #[must_use]
    pub fn largest(&self) -> u32 {
        if self.smooth { self.amount.div_ceil(TENTHS as u32) } else { self.amount }
    }

    /// The first window after `number` that holds at least `n`.
    #[must_use]
    pub fn next_with(&self, n: u32, number: u64) -> u64 {
        (1..=TENTHS)
            .map(|ahead| number.saturating_add(ahead))
            .find(|w| self.amount(*w) >= n)
            .unwrap_or(number + 1)
    }

    /// Length of a window in milliseconds: of a tenth, with `smooth`.
    #[must_use]
    pub fn period_ms(&self) -> u64 {
        self.period_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(amount: u32, smooth: bool) -> Plan {
        Plan::of(&Limit { amount, unit: Unit::Requests, window_ms: 1000, smooth })
    }

    #[test]
    fn smooth_tenths_add_up() {
        for amount in [1, 5, 9, 10, 11, 99, 1000, u32::MAX] {
            let plan = plan(amount, true);
            let sum: u64 = (40..50).map(|n| u64::from(plan.amount(n))).sum();
            assert_eq!(sum, u64::from(amount));
            assert!((40..50).all(|n| plan.amount(n) <= plan.largest()));
            assert!((40..50).any(|n| plan.amount(n) == plan.largest()));
        }
    }

    #[test]
    fn windows_lie_end_to_end() {
        let plain = plan(7, false);
        assert_eq!((plain.number(StoreMs(999)), plain.number(StoreMs(1000))), (0, 1));
        assert_eq!(plain.end(0), StoreMs(1000));
        assert_eq!(plain.next_with(7, 3), 4);
        let smooth = plan(5, true);
        assert_eq!(smooth.period_ms(), 100);
        // 5 in ten tenths: every second one holds a request.
        assert_eq!((smooth.amount(0), smooth.amount(1)), (0, 1));
        assert_eq!(smooth.next_with(1, 1), 3);
    }
}
