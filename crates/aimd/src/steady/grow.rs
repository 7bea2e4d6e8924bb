//! When a level rises: on clean use of all of it, and only once the refusals so far are paid for. Never by time alone:
//! an account that is idle for a week stands where it stood.

use super::reasons::{ALL, DEEP_IN_DEBT, MARGIN, NARROW, PAID, PAY, PRICE, RISE, SMALL};
use super::{Level, Look, Trial, span};

/// What a process saw when a request was served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// When it was sent, in milliseconds.
    pub sent_at: u64,
    /// Use in the level's window when it was sent, it included, refused ones left out.
    pub used: f64,
    /// Requests that the pace turned away in the same window.
    pub held: f64,
    /// By how many requests it and those just before it were ahead of an even pace.
    pub burst: f64,
    /// Answers since this was last told.
    pub answers: f64,
    /// The pace held requests back since this was last told, although little of the level was in use.
    pub clipped: bool,
    /// How long an answer takes, in milliseconds.
    pub round_trip_ms: u64,
    /// The next shorter window, if there is one to choose.
    pub shorter_ms: Option<u64>,
}

/// A request was served. True if the record was changed by a decision.
pub fn served(level: &mut Level, look: &mut Look, seen: &Seen, now: u64) -> bool {
    level.debt = (level.debt - PAY * seen.answers).max(0.0);
    if look.since < level.since {
        look.again(level.since);
    }
    level.clipped |= seen.clipped;
    let deeper = deepen(level, now);
    if seen.sent_at < look.since {
        return deeper;
    }
    look.note(seen, level);
    if now.saturating_sub(look.since) < hold(level, seen) {
        return deeper;
    }
    let decided = match level.trial {
        Trial::Level(more) => promote(level, look, seen, more, now),
        Trial::None => begin(level, look, now),
    };
    look.again(now);
    decided || deeper
}

/// Bursts were clipped, and none was refused for some windows: they may be twice as deep.
fn deepen(level: &mut Level, now: u64) -> bool {
    if now < level.depth_next {
        return false;
    }
    let deeper = level.clipped && level.depth < 1.0;
    if deeper {
        level.depth = (2.0 * level.depth).min(1.0);
        level.decisions += 1;
    }
    level.clipped = false;
    level.depth_next = now.saturating_add(level.windows(level.depth_hold));
    deeper
}

/// How long a level must be clean: a window, two where a full aligned window must lie inside to prove anything.
fn hold(level: &Level, seen: &Seen) -> u64 {
    let first = matches!(level.trial, Trial::Level(_)) && (level.run == 0 || level.level < SMALL);
    let windows = if first { 2 } else { 1 };
    level.window_ms.max(2 * seen.round_trip_ms).saturating_mul(windows)
}

/// What was tried was served: it is the level, and more is tried.
fn promote(level: &mut Level, look: &Look, seen: &Seen, more: f64, now: u64) -> bool {
    let enough = if level.level < SMALL { more - 0.25 } else { more / 2.0 };
    if look.peak < level.level + enough {
        return false;
    }
    let windows_since = |at: u64| now.saturating_sub(at) as f64 / level.window_ms as f64;
    if windows_since(level.rise.at) > RISE {
        (level.rise.base, level.rise.top) = (level.level, 0.0);
    }
    if level.run == 0 {
        level.rise.good = level.level;
    }
    level.level += more;
    level.run += 1;
    level.rise.at = now;
    level.rise.top = level.rise.top.max(level.level);
    if level.level > level.refused {
        level.refused = f64::INFINITY;
    }
    let next = if level.refused.is_finite() {
        ((level.refused - level.level) / 2.0).floor().max(level.step())
    } else {
        (2.0 * more).min(level.level)
    };
    level.trial = Trial::Level(next);
    level.since = now;
    span::shorten(level, seen.shorter_ms, now);
    level.decisions += 1;
    true
}

/// The level was clean: something above it is tried, or some of what a refusal took is given back.
fn begin(level: &mut Level, look: &Look, now: u64) -> bool {
    if look.peak < ALL * level.level - 1.0 {
        return false;
    }
    let paid = |since: u64| level.debt < PAID || now.saturating_sub(since) >= patience(level);
    let quiet_since = level.settled.max(level.hit);
    if level.refused.is_finite() && paid(quiet_since) && level.top() - level.level >= level.step() / 4.0 {
        return climb(level, now);
    }
    if now >= level.next && paid(level.settled) {
        level.margin = (level.margin * NARROW).max(MARGIN.0);
        return start(level, Trial::Level(level.step()), now);
    }
    false
}

fn start(level: &mut Level, trial: Trial, now: u64) -> bool {
    if level.is_being_found() {
        level.rise.good = level.level;
    }
    level.trial = trial;
    level.since = now;
    level.decisions += 1;
    true
}

/// Below the refused level nothing need be tried: half of the way each clean window. But what is given back while refusals
/// go on unpaid is refused again, each window.
fn climb(level: &mut Level, now: u64) -> bool {
    level.level += ((level.top() - level.level) / 2.0).max((level.top() - level.level).min(level.step()));
    level.since = now;
    level.decisions += 1;
    true
}

/// When the next trial may begin if all of the level is used until then, and nothing is refused.
pub(super) fn due(level: &Level) -> u64 {
    let paid = if level.debt < PAID { 0 } else { level.settled.saturating_add(patience(level)) };
    level.next.max(paid)
}

/// So long after the last refusal a trial is due although it is not paid for, or a limit that rose would never be found.
fn patience(level: &Level) -> u64 {
    let half_a_minute = 30_000.0 / level.window_ms as f64;
    let least = if level.debt > DEEP_IN_DEBT { half_a_minute.clamp(20.0, 30.0) } else { 14.0 };
    level.windows((PRICE / level.level).clamp(least, 60.0))
}
