//! A plot of both laws against one limit that rises by half while they look.

use std::path::Path;

use aimd::Mode;
use ledger::Gate;
use simulator::convergence::{Curve, Plot, steps};

/// What is written.
pub(crate) const FILE: &str = "target/laws/steady.svg";
const RISES_AT_S: f64 = 600.0;
const SECONDS: f64 = 1200.0;
const LIMIT: f64 = 200.0;

/// Writes it.
pub(crate) fn write() -> std::io::Result<()> {
    let curve =
        |name: &str, colours, dashed, points| Curve { name: name.to_string(), colours, dashed, points };
    let minutes = |s: f64| s / 60.0;
    let limit = vec![
        (0.0, LIMIT),
        (minutes(RISES_AT_S), LIMIT),
        (minutes(RISES_AT_S), 1.5 * LIMIT),
        (minutes(SECONDS), 1.5 * LIMIT),
    ];
    let plot = Plot {
        title: "A hidden limit of 200 requests per second that rises to 300".to_string(),
        x: "minutes".to_string(),
        y: "requests per second".to_string(),
        curves: vec![
            curve("hidden limit", ("#cf222e", "#ff7b72"), true, limit),
            curve("aimd", ("#8250df", "#d2a8ff"), false, ceilings(Mode::Aimd)),
            curve("steady", ("#0969da", "#58a6ff"), false, ceilings(Mode::Steady)),
        ],
    };
    if let Some(directory) = Path::new(FILE).parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(FILE, plot.svg())
}

/// The ceiling each second, from the first one on.
fn ceilings(mode: Mode) -> Vec<(f64, f64)> {
    let Some(mut entry) = steps(mode).into_iter().find(|entry| entry.name.starts_with("rolling")) else {
        return Vec::new();
    };
    entry.contest.hidden.limit = LIMIT;
    entry.contest.hidden.window_s = 1.0;
    entry.contest.hidden.step = Some((RISES_AT_S, 1.5 * LIMIT));
    entry.contest.seconds = (0.0, SECONDS);
    let mut points: Vec<(f64, f64)> = Vec::new();
    entry.contest.run_watched(1, &mut |heard| {
        let due = points.last().is_none_or(|(minute, _)| heard.at_s >= minute * 60.0 + 1.0);
        if let Some(ceiling) = per_second(heard.gate, heard.now).filter(|_| due) {
            points.push((heard.at_s / 60.0, ceiling));
        }
    });
    points
}

/// The lowest ceiling.
fn per_second(gate: &Gate, now: u64) -> Option<f64> {
    gate.snapshot(now).iter().map(|view| view.limit as f64 * 1000.0 / view.window_ms as f64).reduce(f64::min)
}
