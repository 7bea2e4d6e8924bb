//! One process that learns the limits of its accounts under steady demand, request by request. A second endpoint
//! takes what is turned away, so nothing waits and nothing is sent above a ceiling.

use std::time::Duration;

use aimd::Params;
use ledger::Gate;

use super::account::{Account, Refusal};
use super::events::Events;
use super::rng::Rng;
use crate::{Limit, Meter};

/// A Monday's midnight, so that days and all windows start with the run.
const START_MS: u64 = 1_699_833_600_000;
const DAY_MS: u64 = 86_400_000;
const ROUND_TRIP_US: f64 = 100_000.0;

/// A limit that the proxy is not told.
#[derive(Debug, Clone, PartialEq)]
pub struct Hidden {
    /// What the provider enforces at first.
    pub limit: Limit,
    /// What it enforces from a window on.
    pub step: Option<(u64, Limit)>,
    /// Requests per day on top; beyond them it speaks of its daily quota.
    pub per_day: Option<u64>,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Learning {
    /// How each account learns.
    pub params: Params,
    /// The accounts' limits. Each request goes to the least used account that takes it.
    pub accounts: Vec<Hidden>,
    /// The window by which the run is counted, in milliseconds.
    pub window_ms: u64,
    /// Requests per window, on average, for all accounts together.
    pub demand: f64,
    /// Windows before anything is measured.
    pub settle: u64,
    /// Windows measured.
    pub windows: u64,
}

/// One account in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Number of the window, from the run's start.
    pub window: u64,
    /// Requests served.
    pub served: u64,
    /// Requests refused, probes left out.
    pub refused: u64,
    /// The tightest ceiling at the window's end, scaled to the run's window; 0 while none is known.
    pub ceiling: u64,
    /// What the provider enforced, per window of the run.
    pub limit: u64,
}

/// What became of one account.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Window by window, from the start.
    pub samples: Vec<Sample>,
    /// Times in windows of the run, and the ceilings that were cut to.
    pub decreases: Vec<(f64, u64)>,
    /// Windows before measuring.
    pub settle: u64,
}

#[derive(Clone, Copy)]
enum Event {
    Arrives,
    Reaches { account: usize, sent_at: u64, probe: bool, back_us: u64 },
    Answers { account: usize, sent_at: u64, probe: bool, refused: Option<Refusal> },
    ProbeDue { account: usize },
    WindowEnds { window: u64 },
}

struct Run<'a> {
    plan: &'a Learning,
    rng: Rng,
    events: Events<Event>,
    accounts: Vec<Account>,
    providers: Vec<Provider>,
    outcomes: Vec<Outcome>,
}

impl Learning {
    /// Runs it with `seed`; one outcome per account.
    #[must_use]
    pub fn run(&self, seed: u64) -> Vec<Outcome> {
        let account = |_: &Hidden| Account::new(Gate::new(Vec::new(), Some(self.params)), self.window_ms);
        let outcome =
            |_: &Hidden| Outcome { samples: Vec::new(), decreases: Vec::new(), settle: self.settle };
        let mut run = Run {
            plan: self,
            rng: Rng::new(seed),
            events: Events::default(),
            accounts: self.accounts.iter().map(account).collect(),
            providers: self.accounts.iter().map(|hidden| Provider::new(hidden, self.window_ms)).collect(),
            outcomes: self.accounts.iter().map(outcome).collect(),
        };
        run.events.at(START_MS * 1000, Event::Arrives);
        run.events.at((START_MS + self.window_ms) * 1000 - 1, Event::WindowEnds { window: 0 });
        while let Some((at, event)) = run.events.next() {
            if !run.apply(event, at) {
                break;
            }
        }
        run.finish()
    }
}

impl Run<'_> {
    /// False once the run is over.
    fn apply(&mut self, event: Event, at_us: u64) -> bool {
        let now = at_us / 1000;
        match event {
            Event::Arrives => self.arrives(at_us),
            Event::Reaches { account, sent_at, probe, back_us } => {
                let refused = self.providers[account].asked(now, probe);
                self.events.at(back_us, Event::Answers { account, sent_at, probe, refused });
            }
            Event::Answers { account, sent_at, probe, refused } => {
                let told = &mut self.accounts[account];
                let was_parked = told.probe_due(now);
                if probe {
                    told.probed(sent_at, refused, now, &mut self.rng);
                } else {
                    told.answered(sent_at, refused, now, &mut self.rng);
                }
                let due = told.probe_due(now);
                if let Some(due) = due.filter(|_| due != was_parked) {
                    self.events.at(due.max(now) * 1000, Event::ProbeDue { account });
                }
            }
            Event::ProbeDue { account } => {
                // A later hit may have moved the probe; its own event will come.
                if self.accounts[account].probe_due(now).is_some_and(|due| due <= now) {
                    self.accounts[account].probe_sent(now);
                    self.send(account, true, at_us);
                }
            }
            Event::WindowEnds { window } => return self.window_ends(window, at_us),
        }
        true
    }

    fn arrives(&mut self, at_us: u64) {
        let now = at_us / 1000;
        let rate = self.plan.demand / (self.plan.window_ms as f64 * 1000.0);
        let next = at_us + self.rng.gap(rate) as u64;
        self.events.at(next, Event::Arrives);
        let mut order: Vec<usize> = (0..self.accounts.len()).collect();
        order.sort_by_key(|i| self.accounts[*i].gate.use_24h(now));
        if let Some(account) = order.into_iter().find(|i| self.accounts[*i].admits(now)) {
            self.send(account, false, at_us);
        }
    }

    fn send(&mut self, account: usize, probe: bool, at_us: u64) {
        let trip = ROUND_TRIP_US * (0.75 + 0.5 * self.rng.even());
        let back_us = at_us + trip as u64;
        let reaches = Event::Reaches { account, sent_at: at_us / 1000, probe, back_us };
        self.events.at(at_us + (trip / 2.0) as u64, reaches);
    }

    fn window_ends(&mut self, window: u64, at_us: u64) -> bool {
        let now = at_us / 1000;
        let parts = self.accounts.iter().zip(&mut self.providers).zip(&mut self.outcomes);
        for ((account, provider), outcome) in parts {
            let scaled = |view: &ledger::CeilingView| view.limit * self.plan.window_ms / view.window_ms;
            let ceiling = account.gate.snapshot(now).iter().map(scaled).min().unwrap_or(0);
            let limit = provider.per_window;
            let (served, refused) = provider.window_ends(window + 1);
            outcome.samples.push(Sample { window, served, refused, ceiling, limit });
        }
        let next = Event::WindowEnds { window: window + 1 };
        self.events.at(at_us + self.plan.window_ms * 1000, next);
        window + 1 < self.plan.settle + self.plan.windows
    }

    fn finish(self) -> Vec<Outcome> {
        let mut outcomes = self.outcomes;
        for (outcome, account) in outcomes.iter_mut().zip(self.accounts) {
            let windows = |at: u64| (at - START_MS) as f64 / self.plan.window_ms as f64;
            outcome.decreases = account.decreases.into_iter().map(|(at, to)| (windows(at), to)).collect();
        }
        outcomes
    }
}

/// A provider that enforces its hidden limit.
struct Provider {
    meter: Meter,
    step: Option<(u64, Limit)>,
    per_day: Option<u64>,
    day: (u64, u64),
    window_ms: u64,
    per_window: u64,
    counted: (u64, u64),
}

impl Provider {
    fn new(hidden: &Hidden, window_ms: u64) -> Self {
        let (step, per_day) = (hidden.step, hidden.per_day);
        let per_window = hidden.limit.per(window_ms);
        let meter = Meter::new(hidden.limit);
        Self { meter, step, per_day, day: (0, 0), window_ms, per_window, counted: (0, 0) }
    }

    fn asked(&mut self, now: u64, probe: bool) -> Option<Refusal> {
        let day = now / DAY_MS;
        if self.day.0 != day {
            self.day = (day, 0);
        }
        let refused = if self.per_day.is_some_and(|most| self.day.1 >= most) {
            Some(Refusal::DailyQuota)
        } else if self.meter.admit(now, 1) {
            self.day.1 += 1;
            None
        } else {
            Some(Refusal::Rate)
        };
        match refused {
            None => self.counted.0 += 1,
            Some(_) => self.counted.1 += u64::from(!probe),
        }
        refused
    }

    /// Returns what was served and refused in the window, and changes the limit if the next one is its step.
    fn window_ends(&mut self, next: u64) -> (u64, u64) {
        if let Some((_, limit)) = self.step.filter(|(at, _)| *at == next) {
            self.meter.change(limit);
            self.per_window = limit.per(self.window_ms);
        }
        std::mem::take(&mut self.counted)
    }
}

impl Limit {
    /// What it allows in `window_ms` on average.
    fn per(&self, window_ms: u64) -> u64 {
        let scaled = |n: u64, window: Duration| n as f64 * window_ms as f64 / window.as_millis() as f64;
        let exact = match self {
            Self::Fixed { n, window } | Self::Rolling { n, window } => scaled(*n, *window),
            Self::Bucket { rate, .. } => rate * window_ms as f64 / 1000.0,
        };
        exact.round() as u64
    }
}

impl Outcome {
    /// The measured windows.
    #[must_use]
    pub fn measured(&self) -> &[Sample] {
        &self.samples[(self.settle as usize).min(self.samples.len())..]
    }

    /// Served ÷ what the provider would have served, in the measured windows.
    #[must_use]
    pub fn used(&self) -> f64 {
        let sum = |of: fn(&Sample) -> u64| self.measured().iter().map(of).sum::<u64>() as f64;
        sum(|sample| sample.served) / sum(|sample| sample.limit).max(1.0)
    }

    /// Refusals in the measured windows.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.measured().iter().map(|sample| sample.refused).sum()
    }

    /// The lowest and the highest ceiling at the end of a measured window.
    #[must_use]
    pub fn ceilings(&self) -> (u64, u64) {
        let known = || self.measured().iter().map(|sample| sample.ceiling).filter(|ceiling| *ceiling > 0);
        (known().min().unwrap_or(0), known().max().unwrap_or(0))
    }

    /// Windows between two decreases, shortest and mean, in the measured windows.
    #[must_use]
    pub fn period(&self) -> Option<(f64, f64)> {
        let times: Vec<f64> =
            self.decreases.iter().map(|(at, _)| *at).filter(|at| *at >= self.settle as f64).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let shortest = gaps.iter().copied().reduce(f64::min)?;
        Some((shortest, gaps.iter().sum::<f64>() / gaps.len() as f64))
    }

    /// Windows from `step` until one in which `holds` is true; `None` if there is none.
    #[must_use]
    pub fn until(&self, step: u64, holds: impl Fn(&Sample) -> bool) -> Option<u64> {
        let after = self.samples.iter().filter(|sample| sample.window >= step);
        after.into_iter().find(|sample| holds(sample)).map(|sample| sample.window - step + 1)
    }
}
