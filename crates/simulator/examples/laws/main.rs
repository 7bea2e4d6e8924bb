//! Both laws of learning against every kind of hidden limit, on a virtual clock: prints the table of `docs/learning.md`.
//!
//! `cargo run --release -p simulator --example laws -- [listed|steps|drawn|table|plot] [--law steady|aimd|both]
//! [--replicas N] [--seed FIRST] [--seeds N] [--seconds WARM,MEASURED] [--draw SEED] [--count N] [--only TEXT] [--trace]`.
//! `table` prints what the page quotes, of both laws and of one, four and eight replicas; `plot` writes
//! `target/laws/steady.svg`; `--trace` prints every decision of the first seed.

mod plot;
mod table;
mod trace;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aimd::Mode;
use simulator::convergence::{self, Entry, Score};

struct Options {
    groups: Vec<String>,
    laws: Vec<Mode>,
    replicas: Option<usize>,
    seed: u64,
    seeds: u64,
    seconds: Option<(f64, f64)>,
    draw: u64,
    count: usize,
    only: String,
    trace: bool,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(options) if options.groups == ["plot"] => match plot::write() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}: {error}", plot::FILE);
                ExitCode::FAILURE
            }
        },
        Ok(options) if options.groups == ["table"] => {
            table::print(options.count, options.draw, options.seeds);
            ExitCode::SUCCESS
        }
        Ok(options) => {
            for law in &options.laws {
                run(&options, *law);
            }
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::from(64)
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        groups: Vec::new(),
        laws: vec![Mode::Steady],
        replicas: None,
        seed: 1,
        seeds: 1,
        seconds: None,
        draw: convergence::HELD_OUT,
        count: 60,
        only: String::new(),
        trace: false,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{argument} needs a number"));
        match argument.as_str() {
            "--law" => {
                options.laws = match value()?.as_str() {
                    "steady" => vec![Mode::Steady],
                    "aimd" => vec![Mode::Aimd],
                    "both" => vec![Mode::Aimd, Mode::Steady],
                    other => return Err(format!("no law is called {other}")),
                }
            }
            "--replicas" => options.replicas = Some(number(value()?)? as usize),
            "--seed" => options.seed = number(value()?)?,
            "--seconds" => {
                let text = value()?;
                let both = text.split_once(',').map(|(warm, measured)| (warm.parse(), measured.parse()));
                let Some((Ok(warm), Ok(measured))) = both else {
                    return Err(format!("--seconds needs two numbers, as in 60,60, not {text}"));
                };
                options.seconds = Some((warm, measured));
            }
            "--seeds" => options.seeds = number(value()?)?,
            "--draw" => options.draw = number(value()?)?,
            "--count" => options.count = number(value()?)? as usize,
            "--trace" => options.trace = true,
            "--only" => options.only = value()?,
            "listed" | "steps" | "drawn" | "table" | "plot" => options.groups.push(argument),
            other => return Err(format!("what is {other}?")),
        }
    }
    if options.groups.is_empty() {
        options.groups = ["listed", "steps", "drawn"].map(str::to_owned).to_vec();
    }
    Ok(options)
}

fn run(options: &Options, law: Mode) {
    for group in &options.groups {
        let mut entries = match group.as_str() {
            "listed" => convergence::listed(law),
            "steps" => convergence::steps(law),
            _ => convergence::drawn(options.count, options.draw, law),
        };
        entries.retain(|entry| entry.name.contains(&options.only));
        if let Some(replicas) = options.replicas {
            entries
                .iter_mut()
                .for_each(|entry| entry.contest.replicas = entry.contest.replicas.max(replicas));
        }
        if let Some(seconds) = options.seconds {
            entries.iter_mut().for_each(|entry| entry.contest.seconds = seconds);
        }
        if options.trace {
            entries.iter().for_each(|entry| trace::print(entry, options.seed));
        }
        let scores = scores(&entries, options.seed, options.seeds);
        println!("\n{law:?}, {group}");
        for (entry, score) in entries.iter().zip(&scores) {
            let followed = if group == "steps" {
                format!(" followed after {:.0} windows", score.followed)
            } else {
                String::new()
            };
            println!(
                "{:<100} {:>6.1} used {:>7.3} refused {:>6.2} worst{followed}",
                entry.name,
                score.used * 100.0,
                score.refused * 100.0,
                score.worst_minute * 100.0,
            );
        }
        if group != "steps" {
            summary(&scores);
        }
    }
}

fn summary(scores: &[Score]) {
    let sorted = |of: fn(&Score) -> f64| {
        let mut values: Vec<f64> = scores.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (used, refused) = (sorted(|s| s.used), sorted(|s| s.refused));
    let at = |values: &[f64], part: f64| {
        values.get((values.len() as f64 * part) as usize).copied().unwrap_or(0.0) * 100.0
    };
    let both = scores.iter().filter(|score| score.reaches_both()).count();
    println!(
        "{} scenarios: used median {:.1} lowest tenth {:.1}; refused median {:.3} highest tenth {:.3}; both goals {both}",
        scores.len(),
        at(&used, 0.5),
        at(&used, 0.1),
        at(&refused, 0.5),
        at(&refused, 0.9)
    );
}

/// The mean over seeds; of minutes and steps the worst.
fn scores(entries: &[Entry], first: u64, seeds: u64) -> Vec<Score> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(vec![None; entries.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((i, entry)) = {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    entries.get(i).map(|entry| (i, entry))
                } {
                    let all: Vec<Score> =
                        (0..seeds).map(|seed| entry.contest.run(first + 7919 * seed)).collect();
                    let mean = |of: fn(&Score) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
                    let worst = |of: fn(&Score) -> f64| all.iter().map(of).fold(0.0, f64::max);
                    let score = Score {
                        used: mean(|s| s.used),
                        refused: mean(|s| s.refused),
                        worst_minute: worst(|s| s.worst_minute),
                        followed: worst(|s| s.followed),
                    };
                    if let Ok(mut found) = found.lock() {
                        found[i] = Some(score);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_default().into_iter().flatten().collect()
}
