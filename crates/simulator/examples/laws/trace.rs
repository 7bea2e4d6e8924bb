//! Every decision of the steady law in a run, a line each: which rule moved the level, and what was refused.

use simulator::convergence::Entry;

/// Each refusal, and each change of the level.
pub(crate) fn print(entry: &Entry, seed: u64) {
    println!("{}", entry.name);
    let mut last = vec![0; entry.contest.replicas];
    entry.contest.run_watched(seed, &mut |heard| {
        let Some(level) = heard.gate.level() else { return };
        if heard.refused || level.decisions != last[heard.replica] {
            last[heard.replica] = level.decisions;
            let what = if heard.refused { "refused" } else { "" };
            println!(
                "{:>9.3} {} {what:<8}{} {:>6} ms {:>8.1} {:?} below {:.1}, margin {:.3}, depth {:.1} for {:.0}, debt {:.2}, run {}, doubt {:?}",
                heard.at_s,
                heard.replica,
                if heard.probe { "probe" } else { "     " },
                level.window_ms,
                level.level,
                level.trial,
                level.refused,
                level.margin,
                level.depth * level.ceiling(),
                level.depth_hold,
                level.debt,
                level.run,
                level.doubt.map(|doubt| doubt.level),
            );
        }
    });
}
