//! Runs every scenario of learning and leasing on a virtual clock, prints what each reached, and writes traces
//! and plots.
//!
//! `cargo run --release -p simulator --example convergence -- [--check] [--seed N] [--windows N] [directory]`

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use simulator::convergence::{self, Curve, Outcome, Plot};

struct Options {
    directory: PathBuf,
    check: bool,
    seeds: Vec<u64>,
    windows: u64,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(64);
        }
    };
    match run(&options) {
        Ok(missed) if options.check && missed > 0 => {
            eprintln!("{missed} figures missed");
            ExitCode::FAILURE
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("writing to {}: {error}", options.directory.display());
            ExitCode::FAILURE
        }
    }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        directory: PathBuf::from("target/convergence"),
        check: false,
        seeds: vec![1, 2, 3],
        windows: 240,
    };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().and_then(|text| text.parse().ok());
            value.ok_or_else(|| format!("{argument} needs a number"))
        };
        match argument.as_str() {
            "--check" => options.check = true,
            "--seed" => options.seeds = vec![number()?],
            "--windows" => options.windows = number()?,
            flag if flag.starts_with("--") => return Err(format!("unknown flag {flag}")),
            directory => options.directory = PathBuf::from(directory),
        }
    }
    Ok(options)
}

/// Returns how many figures were missed.
fn run(options: &Options) -> std::io::Result<u32> {
    std::fs::create_dir_all(&options.directory)?;
    let mut missed = 0;
    println!(
        "{:<44} {:>4} {:>7} {:>6} {:>13} {:>7}  figure",
        "scenario", "seed", "used %", "hits", "ceiling", "period"
    );
    for scenario in convergence::all(options.windows) {
        for seed in &options.seeds {
            for (i, outcome) in scenario.plan.run(*seed).iter().enumerate() {
                let verdict = scenario.figure.judge(outcome);
                print_row(&scenario.name, *seed, outcome, &verdict.measured, verdict.reached);
                missed += u32::from(!verdict.reached);
                if *seed == options.seeds[0] {
                    write_trace(&options.directory, &format!("{} {i}", scenario.name), outcome)?;
                }
            }
        }
    }
    missed += run_fleets(options);
    write_saw_tooth(&options.directory, options.seeds[0])?;
    println!("traces and plots: {}", options.directory.display());
    Ok(missed)
}

fn run_fleets(options: &Options) -> u32 {
    let mut missed = 0;
    println!(
        "\n{:<60} {:>4} {:>7} {:>10} {:>9}  limit",
        "replicas that share a static limit", "seed", "used %", "most", "per call"
    );
    for shared in convergence::fleets(options.windows.min(120)) {
        for seed in &options.seeds {
            let spending = shared.fleet.run(*seed);
            let (used, most, per_call) = (spending.used() * 100.0, spending.most(), spending.per_call());
            let mark = if shared.holds(&spending) { "ok" } else { "MISSED" };
            println!("{:<60} {seed:>4} {used:>7.1} {most:>10} {per_call:>9.1}  {mark}", shared.name);
            missed += u32::from(!shared.holds(&spending));
        }
    }
    missed
}

fn print_row(name: &str, seed: u64, outcome: &Outcome, measured: &str, reached: bool) {
    let (low, high) = outcome.ceilings();
    let period = outcome.period().map_or("–".to_string(), |(_, mean)| format!("{mean:.1}"));
    let mark = if reached { "ok" } else { "MISSED" };
    println!(
        "{name:<44} {seed:>4} {:>7.1} {:>6} {:>13} {period:>7}  {mark}: {measured}",
        outcome.used() * 100.0,
        outcome.hits(),
        format!("{low}…{high}"),
    );
}

fn write_trace(directory: &Path, name: &str, outcome: &Outcome) -> std::io::Result<()> {
    let mut csv = String::from("window,served,refused,ceiling,limit\n");
    for s in &outcome.samples {
        let _ = writeln!(csv, "{},{},{},{},{}", s.window, s.served, s.refused, s.ceiling, s.limit);
    }
    let file = name.replace([' ', ','], "-").replace("--", "-");
    std::fs::write(directory.join(format!("{file}.csv")), csv)
}

fn write_saw_tooth(directory: &Path, seed: u64) -> std::io::Result<()> {
    let outcome = convergence::saw_tooth().run(seed).remove(0);
    let points = |of: fn(&convergence::Sample) -> u64| {
        outcome.samples.iter().map(|s| ((s.window + 1) as f64, of(s) as f64)).collect::<Vec<_>>()
    };
    let curve =
        |name: &str, colours, dashed, points| Curve { name: name.to_string(), colours, dashed, points };
    let plot = Plot {
        title: "A hidden limit of 50 requests per minute, demand 100".to_string(),
        x: "minutes".to_string(),
        y: "requests per minute".to_string(),
        curves: vec![
            curve("hidden limit", ("#cf222e", "#ff7b72"), true, points(|s| s.limit)),
            curve("learned ceiling", ("#0969da", "#58a6ff"), false, ceiling_curve(&outcome)),
            curve("served", ("#1a7f37", "#3fb950"), false, points(|s| s.served)),
        ],
    };
    std::fs::write(directory.join("sawtooth.svg"), plot.svg())
}

/// The ceiling at window ends, with the cuts where they fell.
fn ceiling_curve(outcome: &Outcome) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut cuts = outcome.decreases.iter().peekable();
    for sample in outcome.samples.iter().filter(|s| s.ceiling > 0) {
        let end = (sample.window + 1) as f64;
        while let Some((at, to)) = cuts.next_if(|(at, _)| *at < end) {
            points.extend(points.last().map(|(_, last)| (*at, *last)));
            points.push((*at, *to as f64));
        }
        points.push((end, sample.ceiling as f64));
    }
    points
}
