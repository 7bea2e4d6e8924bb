//! The runs that are made, and the figure that each must reach.

use std::time::Duration;

use aimd::Params;

use super::learning::{Hidden, Learning, Outcome};
use crate::Limit;

const MINUTE_MS: u64 = 60_000;
/// The window at which limits step.
const STEP_AT: u64 = 60;

/// What a run must show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// At least this share of the limit is used.
    Used(f64),
    /// As `Used`, and at least so many windows lie between two decreases, on average.
    UsedWithPeriod(f64, f64),
    /// The ceiling is at or below the lowered limit within so many windows.
    FollowsDown(u64),
    /// A window uses at least this share of the raised limit within so many windows.
    FollowsUp(f64, u64),
    /// The daily quota is asked for again at most so often a day, lowers no ceiling, and the account is back in the
    /// first window of the next day.
    QuotaDays(u64),
}

/// A scenario's name, its plan and its figure.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// For people.
    pub name: String,
    /// What is run.
    pub plan: Learning,
    /// What it must reach.
    pub figure: Figure,
}

/// Whether an outcome reaches its figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether it does.
    pub reached: bool,
    /// What was measured, in words.
    pub measured: String,
}

impl Figure {
    /// Compares an outcome with the figure.
    #[must_use]
    pub fn judge(&self, outcome: &Outcome) -> Verdict {
        let used = outcome.used();
        let verdict = |reached, measured| Verdict { reached, measured };
        match *self {
            Self::Used(least) => {
                verdict(used >= least, format!("{:.1} % used (≥ {:.0})", used * 100.0, least * 100.0))
            }
            Self::UsedWithPeriod(least, windows) => {
                let mean = outcome.period().map_or(f64::INFINITY, |(_, mean)| mean);
                let measured = format!(
                    "{:.1} % used (≥ {:.0}), {mean:.1} windows apart (≥ {windows})",
                    used * 100.0,
                    least * 100.0
                );
                verdict(used >= least && mean >= windows, measured)
            }
            Self::FollowsDown(windows) => {
                let took = outcome.until(STEP_AT, |sample| sample.ceiling <= sample.limit);
                verdict(took.is_some_and(|n| n <= windows), format!("{} windows (≤ {windows})", shown(took)))
            }
            Self::FollowsUp(share, windows) => {
                let took =
                    outcome.until(STEP_AT, |sample| sample.served as f64 >= share * sample.limit as f64);
                verdict(took.is_some_and(|n| n <= windows), format!("{} windows (≤ {windows})", shown(took)))
            }
            Self::QuotaDays(most) => quota_days(outcome, most),
        }
    }
}

fn shown(windows: Option<u64>) -> String {
    windows.map_or("no".to_string(), |n| n.to_string())
}

fn quota_days(outcome: &Outcome, most: u64) -> Verdict {
    let day = 1440;
    let measured = outcome.measured();
    let idle: Vec<bool> = measured.iter().map(|sample| sample.served == 0).collect();
    let days = measured.len() / day;
    let back = measured.iter().filter(|s| s.window % day as u64 == 1).all(|s| s.served > 0);
    let exhausted = idle.iter().filter(|idle| **idle).count() >= days;
    let worst = measured.chunks(day).map(|day| day.iter().map(|s| s.refused).sum::<u64>()).max().unwrap_or(0);
    let lowered = outcome.decreases.len();
    let words =
        format!("{worst} refused on the worst day (≤ {most}), {lowered} decreases, back at midnight: {back}");
    Verdict { reached: back && exhausted && worst <= most && lowered == 0, measured: words }
}

/// Every scenario, shortened to at most `windows` measured ones.
#[must_use]
pub fn all(windows: u64) -> Vec<Scenario> {
    let mut all = Vec::new();
    for n in [20, 50, 100, 1000] {
        all.push(known_window(n, windows));
    }
    for n in [50, 100, 1000] {
        all.push(step_down(n));
        all.push(step_up(n));
    }
    for (n, window_ms) in [(10, 1_000), (100, 10_000), (50, MINUTE_MS)] {
        for limit in kinds(n, window_ms) {
            all.push(unknown_window(n, window_ms, limit, windows));
        }
    }
    all.extend([two_accounts(windows), quota_days_plan()]);
    all
}

/// The reference: a hidden limit of 50 a minute, from the first request on.
#[must_use]
pub fn saw_tooth() -> Learning {
    Learning { settle: 0, windows: 60, ..known_window(50, 60).plan }
}

fn fixed(n: u64, window_ms: u64) -> Limit {
    Limit::Fixed { n, window: Duration::from_millis(window_ms) }
}

fn kinds(n: u64, window_ms: u64) -> [Limit; 3] {
    let window = Duration::from_millis(window_ms);
    let rate = n as f64 * 1000.0 / window_ms as f64;
    [Limit::Fixed { n, window }, Limit::Rolling { n, window }, Limit::Bucket { rate, burst: n as f64 }]
}

fn minute() -> Params {
    Params { window_ms: Some(MINUTE_MS), ..Params::default() }
}

fn constant(limit: Limit) -> Hidden {
    Hidden { limit, step: None, per_day: None }
}

fn known_window(n: u64, windows: u64) -> Scenario {
    let plan = Learning {
        params: minute(),
        accounts: vec![constant(fixed(n, MINUTE_MS))],
        window_ms: MINUTE_MS,
        demand: 2.0 * n as f64,
        settle: 15,
        windows,
    };
    Scenario {
        name: format!("{n} per minute, window known"),
        plan,
        figure: Figure::UsedWithPeriod(0.72, 10.0),
    }
}

fn step_to(n: u64, to: u64, demand: f64) -> Learning {
    let hidden = Hidden { step: Some((STEP_AT, fixed(to, MINUTE_MS))), ..constant(fixed(n, MINUTE_MS)) };
    Learning { accounts: vec![hidden], demand, settle: STEP_AT, windows: 60, ..known_window(n, 60).plan }
}

fn step_down(n: u64) -> Scenario {
    let plan = step_to(n, n / 3, 2.0 * n as f64);
    Scenario { name: format!("{n} per minute falls to a third"), plan, figure: Figure::FollowsDown(3) }
}

fn step_up(n: u64) -> Scenario {
    let plan = step_to(n, 3 * n, 6.0 * n as f64);
    Scenario { name: format!("{n} per minute trebles"), plan, figure: Figure::FollowsUp(0.7, 45) }
}

fn unknown_window(n: u64, window_ms: u64, limit: Limit, windows: u64) -> Scenario {
    let kind = match limit {
        Limit::Fixed { .. } => "fixed",
        Limit::Rolling { .. } => "rolling",
        Limit::Bucket { .. } => "bucket",
    };
    // Growth comes by the minute whatever the window, so short windows need as many minutes.
    let per_minute = MINUTE_MS / window_ms;
    let plan = Learning {
        params: Params::default(),
        accounts: vec![constant(limit)],
        window_ms,
        demand: 2.0 * n as f64,
        settle: 30 * per_minute,
        windows: windows * per_minute,
    };
    let name = format!("{n} per {} s, {kind}, nothing configured", window_ms / 1000);
    Scenario { name, plan, figure: Figure::Used(0.65) }
}

fn two_accounts(windows: u64) -> Scenario {
    let accounts = vec![constant(fixed(50, MINUTE_MS)), constant(fixed(200, MINUTE_MS))];
    let plan = Learning { accounts, demand: 500.0, ..known_window(50, windows).plan };
    Scenario { name: "two accounts, 50 and 200 per minute".to_string(), plan, figure: Figure::Used(0.72) }
}

fn quota_days_plan() -> Scenario {
    let hidden = Hidden { per_day: Some(10_000), ..constant(fixed(1000, MINUTE_MS)) };
    let plan = Learning {
        accounts: vec![hidden],
        demand: 12.0,
        settle: 0,
        windows: 3 * 1440,
        ..known_window(1000, 1).plan
    };
    Scenario { name: "10 000 a day, demand 17 280 a day".to_string(), plan, figure: Figure::QuotaDays(8) }
}
