//! What an account was used for in the last 24 hours, in hourly slots that really age, the oldest by the minute. Selection weighs by it.

use crate::Slots;

const HOUR_MS: u64 = 3_600_000;

/// Use of the last 24 hours.
#[derive(Debug)]
pub struct Usage24h(Slots);

impl Default for Usage24h {
    fn default() -> Self {
        Self(Slots::new(HOUR_MS, 24))
    }
}

impl Usage24h {
    /// Counts `n` requests at `now`.
    pub fn add(&self, n: u32, now: u64) {
        self.0.add(n, now);
    }

    /// Requests of the last 24 hours.
    #[must_use]
    pub fn total(&self, now: u64) -> u64 {
        self.0.within(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_leaves_after_a_day() {
        let usage = Usage24h::default();
        for hour in 0..30u64 {
            usage.add(10, hour * HOUR_MS);
            assert_eq!(usage.total(hour * HOUR_MS), 10 * (hour + 1).min(25), "hour {hour}");
        }
        assert_eq!(usage.total(29 * HOUR_MS + HOUR_MS / 2), 245);
        assert_eq!(usage.total(53 * HOUR_MS + HOUR_MS / 2), 5);
        assert_eq!(usage.total(54 * HOUR_MS), 0);
    }
}
