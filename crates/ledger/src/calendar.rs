//! When windows begin and end on a replica's own clock, as far as one answer of the store tells: within bounds, since
//! the answer took its time. Decides which window surely runs.

use crate::LocalMs;

/// Taken off the end of every block.
pub(crate) const MARGIN_MS: u64 = 20;

/// When a window ends, on this replica's clock: not before `early`, not after `late`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calendar {
    pub(crate) window: u64,
    pub(crate) early: LocalMs,
    pub(crate) late: LocalMs,
}

impl Calendar {
    /// Never told: our own clock's windows must do.
    pub(crate) fn assumed(period: u64, now: LocalMs) -> Self {
        let window = now.0 / period;
        let end = LocalMs((window + 1).saturating_mul(period));
        Self { window, early: end, late: end }
    }

    /// `window` runs now.
    pub(crate) fn turn(&mut self, window: u64, period: u64) {
        let ahead = window.saturating_sub(self.window).saturating_mul(period);
        (self.early, self.late) = (self.early.plus(ahead), self.late.plus(ahead));
        self.window = self.window.max(window);
    }

    /// The window that surely runs at `now`, with the bounds within which it surely runs.
    pub(crate) fn window_at(&self, period: u64, now: LocalMs) -> Option<(u64, LocalMs, LocalMs)> {
        let passed = now.since(self.late) / period + u64::from(now >= self.late);
        let ahead = passed.saturating_mul(period);
        let starts = self.late.plus(ahead).minus(period);
        let ends = self.early.plus(ahead).minus(MARGIN_MS);
        (now >= starts && now < ends).then_some((self.window + passed, starts, ends))
    }

    /// When the window after the running one opens.
    pub(crate) fn next_window(&self, period: u64, now: LocalMs) -> LocalMs {
        if now < self.late { self.late } else { self.late.plus((now.since(self.late) / period + 1) * period) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_windows_none_surely_runs() {
        let calendar = Calendar { window: 7, early: LocalMs(1000), late: LocalMs(1030) };
        for (now, expected) in [
            (29, None),
            (30, Some((7, LocalMs(30), LocalMs(980)))),
            (979, Some((7, LocalMs(30), LocalMs(980)))),
            (980, None),
            (1029, None),
            // Kills: a window that begins at the early end of the one before.
            (1030, Some((8, LocalMs(1030), LocalMs(1980)))),
            (5500, Some((12, LocalMs(5030), LocalMs(5980)))),
        ] {
            assert_eq!(calendar.window_at(1000, LocalMs(now)), expected, "{now}");
        }
        assert_eq!(calendar.next_window(1000, LocalMs(500)), LocalMs(1030));
        assert_eq!(calendar.next_window(1000, LocalMs(1030)), LocalMs(2030));
        assert_eq!(Calendar::assumed(1000, LocalMs(2500)).next_window(1000, LocalMs(2500)), LocalMs(3000));
    }
}
