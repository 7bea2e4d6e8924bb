//! The table of both laws over the same scenarios, on one, four and eight replicas, as `docs/learning.md` quotes it.

use aimd::Mode;
use simulator::convergence::{self, Entry, Score};

const COLUMNS: [(Mode, usize); 6] = [
    (Mode::Aimd, 1),
    (Mode::Aimd, 4),
    (Mode::Aimd, 8),
    (Mode::Steady, 1),
    (Mode::Steady, 4),
    (Mode::Steady, 8),
];

/// Prints it: a row for each kind of scenario, then the drawn ones.
pub(crate) fn print(count: usize, draw: u64, seeds: u64) {
    println!(
        "| hidden limit | AIMD, 1 replica | 4 | 8 | steady, 1 replica | 4 | 8 |\n|---|---|---|---|---|---|---|"
    );
    let listed = COLUMNS.map(|column| run(convergence::listed(column.0), column, seeds));
    rows(&listed, ranges);
    let steps = COLUMNS.map(|column| run(convergence::steps(column.0), column, seeds));
    rows(&steps, followed);
    let drawn = COLUMNS.map(|column| run(convergence::drawn(count, draw, column.0), column, seeds));
    rows(&drawn, medians);
}

type Run = Vec<(Entry, Score)>;

fn run(mut entries: Vec<Entry>, (_, replicas): (Mode, usize), seeds: u64) -> Run {
    for entry in &mut entries {
        entry.contest.replicas = entry.contest.replicas.max(replicas);
    }
    let scores = crate::scores(&entries, 1, seeds);
    entries.into_iter().zip(scores).collect()
}

fn rows(runs: &[Run; 6], cell: impl Fn(&[Score]) -> String) {
    let mut names: Vec<&str> = runs[0].iter().map(|(entry, _)| entry.row).collect();
    names.dedup();
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        seen.push(name);
        let of = |run: &Run| {
            let scores: Vec<Score> =
                run.iter().filter(|(entry, _)| entry.row == name).map(|(_, score)| *score).collect();
            cell(&scores)
        };
        println!("| {name} | {} |", runs.iter().map(of).collect::<Vec<_>>().join(" | "));
    }
}

fn sorted(scores: &[Score], of: fn(&Score) -> f64) -> Vec<f64> {
    let mut values: Vec<f64> = scores.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Least and most used, most refused.
fn ranges(scores: &[Score]) -> String {
    let used = sorted(scores, |score| 100.0 * score.used);
    let refused = sorted(scores, |score| 100.0 * score.refused);
    let (first, last) = (used.first().unwrap_or(&0.0), used.last().unwrap_or(&0.0));
    format!("{first:.0}–{last:.0} / {:.2}", refused.last().unwrap_or(&0.0))
}

/// The slowest, in windows.
fn followed(scores: &[Score]) -> String {
    let windows = sorted(scores, |score| score.followed);
    match windows.last() {
        Some(most) if most.is_finite() => format!("{most:.0} windows"),
        _ => format!("{} of {} not", windows.iter().filter(|w| w.is_infinite()).count(), windows.len()),
    }
}

/// Medians, and how many reach both goals.
fn medians(scores: &[Score]) -> String {
    let used = sorted(scores, |score| 100.0 * score.used);
    let refused = sorted(scores, |score| 100.0 * score.refused);
    let both = scores.iter().filter(|score| score.reaches_both()).count();
    let middle = scores.len() / 2;
    format!("{:.1} / {:.3}; {both} of {}", used[middle], refused[middle], scores.len())
}
