//! What is counted of a contest: use and refusals from a time on, the worst minute, and when a step was followed.

use super::contest::{Contest, Score};

const MINUTE_US: u64 = 60_000_000;

/// What is counted.
pub(crate) struct Tally {
    from_us: u64,
    step: Option<(u64, f64, f64)>,
    window_us: u64,
    granted: f64,
    served: f64,
    refused: f64,
    minute: (u64, f64, f64),
    worst: f64,
    window: (u64, f64, f64),
    good: u64,
    followed: f64,
}

impl Tally {
    pub(crate) fn new(plan: &Contest) -> Self {
        let step = plan.hidden.step.map(|(at, to)| ((at * 1e6) as u64, plan.hidden.limit, to));
        Self {
            from_us: (plan.seconds.0 * 1e6) as u64,
            step,
            window_us: (plan.hidden.window_s * 1e6) as u64,
            granted: 0.0,
            served: 0.0,
            refused: 0.0,
            minute: (0, 0.0, 0.0),
            worst: 0.0,
            window: (0, 0.0, 0.0),
            good: 0,
            followed: f64::INFINITY,
        }
    }

    /// A greedy client was granted one.
    pub(crate) fn granted(&mut self, at_us: u64) {
        self.granted += f64::from(at_us >= self.from_us);
    }

    pub(crate) fn sent(&mut self, at_us: u64, refused: bool) {
        let (served, refused) = (f64::from(!refused), f64::from(refused));
        if at_us >= self.from_us {
            self.served += served;
            self.refused += refused;
            let minute = at_us / MINUTE_US;
            if minute != self.minute.0 {
                self.end_minute();
                self.minute = (minute, 0.0, 0.0);
            }
            (self.minute.1, self.minute.2) = (self.minute.1 + served, self.minute.2 + refused);
        }
        if let Some((step, from, to)) = self.step.filter(|(step, _, _)| at_us >= *step) {
            let number = (at_us - step) / self.window_us;
            if number != self.window.0 {
                self.end_window(from, to);
                self.window = (number, 0.0, 0.0);
            }
            (self.window.1, self.window.2) = (self.window.1 + served, self.window.2 + refused);
        }
    }

    fn end_minute(&mut self) {
        let sent = self.minute.1 + self.minute.2;
        if sent > 0.0 && self.minute.0 * MINUTE_US >= self.from_us {
            self.worst = self.worst.max(self.minute.2 / sent);
        }
    }

    /// A fall is followed when two windows in a row send no more than the new limit and are granted half of it, a rise
    /// when one is granted 85 %.
    fn end_window(&mut self, from: f64, to: f64) {
        let (number, served, refused) = self.window;
        let falls = to < from;
        let good = if falls {
            served + refused <= 1.02 * to + 1.0 && served >= 0.5 * to
        } else {
            served >= 0.85 * to
        };
        self.good = if good { self.good + 1 } else { 0 };
        if self.followed.is_infinite() && self.good >= if falls { 2 } else { 1 } {
            self.followed = if falls { number as f64 - 1.0 } else { number as f64 + 1.0 };
        }
    }

    pub(crate) fn score(mut self) -> Score {
        self.end_minute();
        Score {
            used: self.served / self.granted.max(1.0),
            refused: self.refused / (self.served + self.refused).max(1.0),
            worst_minute: self.worst,
            followed: self.followed,
        }
    }
}
