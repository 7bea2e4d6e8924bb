//! When a request may be sent above a learned ceiling because nobody else can serve it: one at a time, and after
//! a refusal not for 1, 2, 4 … 64 s. Decides that; lowers and parks nothing.

const FIRST_MS: u64 = 1_000;
const LONGEST_MS: u64 = 64_000;

/// The state for one account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overflow {
    in_flight: bool,
    closed_until: u64,
    /// The wait after the last refusal; 0 after a success.
    wait_ms: u64,
}

/// What an overflow would find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// It may go.
    Open,
    /// One is under way: its outcome is worth waiting for.
    Busy,
    /// Closed until then.
    Closed {
        /// In milliseconds.
        until: u64,
    },
}

impl Overflow {
    /// What an overflow at `now` would find. A clock set back never closes for longer than the wait itself.
    #[must_use]
    pub fn door(&self, now: u64) -> Door {
        if self.in_flight {
            return Door::Busy;
        }
        let left = self.closed_until.saturating_sub(now);
        if left == 0 || left > self.wait_ms { Door::Open } else { Door::Closed { until: self.closed_until } }
    }

    /// Sends one, if it may go.
    pub fn enter(&mut self, now: u64) -> bool {
        let open = self.door(now) == Door::Open;
        self.in_flight |= open;
        open
    }

    /// The one under way was refused.
    pub fn refused(&mut self, now: u64) {
        self.in_flight = false;
        self.wait_ms = if self.wait_ms == 0 { FIRST_MS } else { (self.wait_ms * 2).min(LONGEST_MS) };
        self.closed_until = now.saturating_add(self.wait_ms);
    }

    /// The one under way ended without saying anything about the limit.
    pub fn ended(&mut self) {
        self.in_flight = false;
    }

    /// The account served something, an overflow or not.
    pub fn reopen(&mut self) {
        self.closed_until = 0;
        self.wait_ms = 0;
    }

    /// True if nothing is under way and nothing is remembered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_64_s_and_a_success_forgets_them() {
        let mut overflow = Overflow::default();
        let mut now = 0;
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            assert!(overflow.enter(now));
            overflow.refused(now);
            let until = now + seconds * 1000;
            assert_eq!(overflow.door(until - 1), Door::Closed { until });
            assert_eq!(overflow.door(until), Door::Open);
            now = until;
        }
        overflow.reopen();
        assert!(overflow.is_idle());
        assert!(overflow.enter(now));
        overflow.refused(now);
        assert_eq!(overflow.door(now), Door::Closed { until: now + 1000 });
        assert_eq!(overflow.door(0), Door::Open);
    }

    #[test]
    fn one_at_a_time() {
        let mut overflow = Overflow::default();
        assert!(overflow.enter(0));
        assert_eq!(overflow.door(0), Door::Busy);
        assert!(!overflow.enter(0));
        // Another request's success does not end the one under way.
        overflow.reopen();
        assert_eq!(overflow.door(0), Door::Busy);
        overflow.ended();
        assert!(overflow.enter(0));
    }
}
