//! Limits that no one is told, by the microsecond: how providers count, what their limits do over time, and how many
//! requests come. Beside them a greedy client's grants, which is what "all of a limit" means. Decides nothing about
//! learning.

use std::collections::VecDeque;

use super::rng::Rng;

const US: f64 = 1_000_000.0;

/// How a provider counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Windows aligned to its clock.
    Fixed,
    /// Any window.
    Rolling,
    /// The running window, and of the one before it the share that still overlaps.
    Counter,
    /// A bucket as deep as so many seconds of its rate, at least one request.
    Bucket(f64),
}

/// How many requests come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Demand {
    /// So many times the limit, at random.
    Times(f64),
    /// A third of the limit, and for a twentieth of the time three and a half of it.
    Bursty,
    /// A fifth to 1.6 of the limit, in waves of 120 windows.
    Diurnal,
}

/// A provider's limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hidden {
    /// How it counts.
    pub kind: Kind,
    /// Its window in seconds.
    pub window_s: f64,
    /// Requests per window.
    pub limit: f64,
    /// From when on (seconds) it is what.
    pub step: Option<(f64, f64)>,
    /// Each window it is off by as much as this share.
    pub wavers: f64,
    /// Refused requests count, too.
    pub counts_refused: bool,
    /// The share of requests refused for no reason.
    pub strays: f64,
}

/// What it has counted.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    hidden: Hidden,
    phase: f64,
    seed: u64,
    window: i64,
    count: f64,
    before: f64,
    log: VecDeque<f64>,
    tokens: f64,
    last: f64,
}

impl Provider {
    pub(crate) fn new(hidden: &Hidden, seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5_0f7);
        Self {
            hidden: *hidden,
            phase: rng.even() * hidden.window_s,
            seed,
            window: -1,
            count: 0.0,
            before: 0.0,
            log: VecDeque::new(),
            tokens: 0.0,
            last: 0.0,
        }
    }

    /// The limit in force.
    pub(crate) fn limit(&self, at_us: u64) -> f64 {
        let at = at_us as f64 / US;
        let limit = self.hidden.step.filter(|(from, _)| at >= *from).map_or(self.hidden.limit, |(_, to)| to);
        if self.hidden.wavers == 0.0 {
            return limit;
        }
        let window = ((at + self.phase) / self.hidden.window_s) as u64;
        let mut rng = Rng::new(self.seed.wrapping_mul(31).wrapping_add(window));
        (limit * (1.0 + self.hidden.wavers * (2.0 * rng.even() - 1.0))).round()
    }

    /// Whether a request that arrives now is served.
    pub(crate) fn serves(&mut self, at_us: u64) -> bool {
        let (at, limit) = (at_us as f64 / US, self.limit(at_us));
        match self.hidden.kind {
            Kind::Fixed => self.by_window(at, limit, false),
            Kind::Counter => self.by_window(at, limit, true),
            Kind::Rolling => self.by_log(at, limit),
            Kind::Bucket(seconds) => self.by_bucket(at, limit / self.hidden.window_s, seconds),
        }
    }

    fn by_window(&mut self, at: f64, limit: f64, sliding: bool) -> bool {
        let windows = (at + self.phase) / self.hidden.window_s;
        let number = windows.floor() as i64;
        if number != self.window {
            self.before = if number == self.window + 1 { self.count } else { 0.0 };
            (self.count, self.window) = (0.0, number);
        }
        let of_before = if sliding { self.before * (1.0 - windows.fract()) } else { 0.0 };
        let serves = of_before + self.count + 1.0 <= limit + 1e-9;
        self.count += f64::from(serves || self.hidden.counts_refused);
        serves
    }

    fn by_log(&mut self, at: f64, limit: f64) -> bool {
        while self.log.front().is_some_and(|first| *first <= at - self.hidden.window_s) {
            self.log.pop_front();
        }
        let serves = self.log.len() as f64 + 1.0 <= limit + 1e-9;
        if serves || self.hidden.counts_refused {
            self.log.push_back(at);
        }
        serves
    }

    fn by_bucket(&mut self, at: f64, rate: f64, seconds: f64) -> bool {
        let most = (rate * seconds).max(1.0);
        self.tokens = (self.tokens + (at - self.last) * rate).min(most);
        self.last = at;
        let serves = self.tokens >= 1.0;
        if serves {
            self.tokens -= 1.0;
        } else if self.hidden.counts_refused {
            self.tokens = (self.tokens - 1.0).max(-most);
        }
        serves
    }
}

/// When requests come.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    demand: Demand,
    per_us: f64,
    window_us: f64,
    /// Windows of demand, then as many without.
    idle: Option<f64>,
    busy: bool,
    turns: f64,
}

impl Arrivals {
    pub(crate) fn new(demand: Demand, hidden: &Hidden, idle: Option<f64>) -> Self {
        let window_us = hidden.window_s * US;
        Self { demand, per_us: hidden.limit / window_us, window_us, idle, busy: false, turns: 0.0 }
    }

    /// The next one after `at_us`.
    pub(crate) fn after(&mut self, at_us: u64, rng: &mut Rng) -> u64 {
        let at = at_us as f64;
        let rate = self.rate(at, rng);
        let next = at + rng.gap(rate);
        // A burst begins at its time, not at the next arrival of the calm before it.
        let next = if self.demand == Demand::Bursty { next.min(self.turns + 1.0) } else { next };
        let idle = self.idle.map(|windows| windows * self.window_us);
        let next = idle
            .filter(|period| (at / period) as u64 % 2 == 1)
            .map_or(next, |period| (at / period + 1.0).floor() * period);
        next as u64 + 1
    }

    fn rate(&mut self, at: f64, rng: &mut Rng) -> f64 {
        match self.demand {
            Demand::Times(times) => self.per_us * times,
            Demand::Diurnal => {
                let turn = std::f64::consts::TAU * at / (120.0 * self.window_us);
                self.per_us * (0.9 + 0.7 * turn.sin())
            }
            Demand::Bursty => {
                let long = self.window_us.max(3.0 * US);
                while at >= self.turns {
                    self.busy = !self.busy;
                    self.turns += rng.gap(1.0) * long * if self.busy { 0.3 } else { 5.7 };
                }
                self.per_us * if self.busy { 3.5 } else { 0.35 }
            }
        }
    }
}
