//! What a refusal does: it ends a trial, halves the burst, or lowers the level, a little at first and once per episode
//! by what was refused. Never parks anything.

use super::reasons::{
    ALL, BURST, DEPTH_HOLD, DOUBT, FEWEST, MARGIN, MOST_AT_ONCE, MOST_OWED, NEAR, SOON, WIDEN,
};
use super::record::Doubt;
use super::{Level, Trial, span};

/// A refused request, and what was in use when it was sent, refused ones left out.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    /// When it was sent.
    pub sent_at: u64,
    /// The windows that may be to blame, shortest first, and their use.
    pub used: &'a [(u64, f64)],
    /// Requests that the pace turned away in the level's window.
    pub held: f64,
    /// By how many requests it and those just before it were ahead of an even pace.
    pub burst: f64,
    /// The same of what was served of late, at most.
    pub proven: f64,
    /// Requests refused.
    pub requests: u32,
    /// It was the probe that ends a park.
    pub probe: bool,
    /// The window that the refusal names, in milliseconds.
    pub named_window_ms: Option<u64>,
    /// What was in use when the last refused probe was sent, nothing else having been sent since; infinite if nobody
    /// here knows of one.
    pub outlasted: f64,
    /// The window and the limit that the refusal states, if that is news.
    pub stated: Option<(u64, f64)>,
    /// How long an answer takes, in milliseconds.
    pub round_trip_ms: u64,
    /// No level is lower.
    pub least: f64,
    /// Chance, in 0..=1.
    pub chance: f64,
}

/// A level that moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moved {
    /// The window, in milliseconds.
    pub window_ms: u64,
    /// The level before; `None` for the first.
    pub from: Option<f64>,
    /// The level now.
    pub to: f64,
}

impl Refusal<'_> {
    /// Use in the window of this length.
    pub(crate) fn used_in(&self, window_ms: u64) -> f64 {
        self.used.iter().find(|(window, _)| *window == window_ms).map_or(0.0, |(_, used)| *used)
    }

    /// Use of the level's window, with what a shallow pace turned away.
    pub(crate) fn pressed(&self, level: &Level) -> f64 {
        level.pressed(self.used_in(level.window_ms), self.held)
    }

    /// The next longer window, and its use.
    pub(crate) fn longer_than(&self, window_ms: u64) -> Option<(u64, f64)> {
        self.used.iter().copied().find(|(window, _)| *window > window_ms)
    }
}

/// A refusal was heard at `now`. Returns how the level moved, if it did; the record may have changed in any case.
pub fn refused(known: &mut Option<Level>, refusal: &Refusal<'_>, now: u64) -> Option<Moved> {
    if let Some((window_ms, limit)) = refusal.stated.filter(|(_, limit)| *limit >= 1.0) {
        return Some(told(known, window_ms, limit, refusal, now));
    }
    let Some(level) = known else {
        let level = first(refusal, now)?;
        *known = Some(level);
        return Some(Moved { window_ms: level.window_ms, from: None, to: level.level });
    };
    let (window_ms, from) = (level.window_ms, level.ceiling());
    if !level.is_being_found() {
        level.debt = (level.debt + f64::from(refusal.requests)).min(MOST_OWED);
    }
    hear(level, refusal, now);
    let moved = level.window_ms != window_ms || level.ceiling() < from;
    moved.then_some(Moved { window_ms: level.window_ms, from: Some(from), to: level.level })
}

/// The first refusal of all: the named window, else the shortest that had enough in use.
fn first(refusal: &Refusal<'_>, now: u64) -> Option<Level> {
    let fits = |(window, used): &&(u64, f64)| {
        *used >= FEWEST && refusal.named_window_ms.is_none_or(|named| *window >= named)
    };
    let (window_ms, used) = refusal.used.iter().find(fits)?;
    Some(Level::found(*window_ms, *used, now))
}

/// The provider says what it takes: that is the refused level, whatever was in use. Trials correct it, providers state
/// wrong numbers.
fn told(known: &mut Option<Level>, window_ms: u64, limit: f64, refusal: &Refusal<'_>, now: u64) -> Moved {
    let before = known.map(|level| level.ceiling());
    let fresh = Level::found(window_ms, limit, now);
    let mut level =
        known.map_or(fresh, |level| Level { decisions: level.decisions + 1, debt: level.debt, ..fresh });
    level.stated = limit;
    level.level = level.level.max(refusal.least);
    level.settle(now, refusal.chance);
    *known = Some(level);
    Moved { window_ms, from: before, to: level.level }
}

fn hear(level: &mut Level, refusal: &Refusal<'_>, now: u64) {
    let in_flight = refusal.sent_at <= level.hit;
    // A bucket that is overdrawn serves the park's probe, and refuses again a few requests later.
    let soon = refusal.sent_at <= level.hit.saturating_add(level.windows((SOON / level.level).min(1.0)));
    if let Some(doubt) = level.doubt.filter(|d| refusal.sent_at > d.sent_at && (refusal.probe || soon)) {
        confirm(level, &doubt, refusal, now);
        level.confirmed = now;
        if !refusal.probe && !in_flight {
            (level.hit, level.lasts) = (now, false);
            return;
        }
    }
    if refusal.probe {
        let rested = now.saturating_sub(level.hit);
        level.lasts |= rested > level.windows(0.3).saturating_add(refusal.round_trip_ms);
        if rested > level.windows(1.5).saturating_add(refusal.round_trip_ms) {
            span::outlasted(level, refusal, now);
        }
        return;
    }
    if in_flight {
        return;
    }
    level.hit = now;
    level.lasts = false;
    level.doubt = None;
    level.decisions += 1;
    if span::suits_better(level, refusal, now) {
        return;
    }
    let full = refusal.pressed(level) + 1.0 >= ALL * level.level;
    match level.trial {
        _ if is_burst(level, refusal) => shallower(level, refusal, now),
        Trial::Level(more) if full => failed(level, more, refusal, now),
        Trial::Level(_) | Trial::None => lower(level, refusal, now),
    }
}

/// What was tried is refused: the level itself stands.
fn failed(level: &mut Level, more: f64, refusal: &Refusal<'_>, now: u64) {
    let used = refusal.pressed(level);
    level.refused = used.clamp(level.level, level.level + more);
    level.level = level.level.min(level.top()).max(refusal.least);
    level.settle(now, refusal.chance);
}

/// The burst was too deep, not the level too high.
fn shallower(level: &mut Level, refusal: &Refusal<'_>, now: u64) {
    let one = 1.0 / level.ceiling();
    // One less than was refused, or what was served all the time: in a bucket of two requests one is half of it.
    let served = (refusal.burst - 1.0).max(refusal.proven);
    level.depth = (served * one).clamp(level.depth / 2.0, level.depth).max(one);
    level.depth_hold = (2.0 * level.depth_hold).min(DEPTH_HOLD.1);
    level.depth_next = now.saturating_add(level.windows(level.depth_hold));
    level.clipped = false;
}

/// Further ahead of an even pace than anything that was served of late.
fn is_burst(level: &Level, refusal: &Refusal<'_>) -> bool {
    refusal.burst >= BURST && refusal.burst > refusal.proven && level.depth * level.ceiling() > 1.0
}

/// The level was refused: a little less until that is confirmed, by what was refused if the last one was.
fn lower(level: &mut Level, refusal: &Refusal<'_>, now: u64) {
    let used = refusal.pressed(level);
    let near = used >= NEAR * level.level;
    let margin = if near { (WIDEN * level.margin).min(MARGIN.1) } else { level.margin };
    let refused = used.min(level.level).max(MOST_AT_ONCE * level.level);
    let cut = refused * (1.0 - margin);
    let cut = if level.level > 100.0 { cut.min(level.level - 1.0) } else { cut };
    let recent_good =
        now.saturating_sub(level.rise.at) < level.windows(16.0) && level.rise.good >= 0.8 * level.level;
    let cut = if recent_good { cut.min(level.rise.good) } else { cut };
    let full = Doubt {
        level: cut.max(MOST_AT_ONCE * level.level).max(refusal.least),
        refused,
        margin,
        sent_at: refusal.sent_at,
    };
    // The limit is still being fallen to. What is cut by this does not make it longer, or where strays come every window or
    // two each would count as confirmed.
    let again = now.saturating_sub(level.confirmed) < level.windows(2.0);
    if again {
        confirm(level, &full, refusal, now);
    } else {
        level.level = (DOUBT * level.level).max(full.level);
        level.doubt = Some(full);
        (level.trial, level.run) = (Trial::None, 0);
        level.since = now;
    }
}

/// Refused twice: what the first refusal says holds.
fn confirm(level: &mut Level, doubt: &Doubt, refusal: &Refusal<'_>, now: u64) {
    level.doubt = None;
    level.margin = doubt.margin;
    level.level = level.level.min(doubt.level).max(refusal.least);
    level.refused = level.refused.min(doubt.refused);
    level.decisions += 1;
    level.settle(now, refusal.chance);
    span::check(level, refusal, now);
}

/// The probe that ends a park was served. An account that refused for long although it rested is measured: what it
/// granted in the last window is what it takes.
pub fn back(known: &mut Option<Level>, probe: &Refusal<'_>, now: u64) -> Option<Moved> {
    let level = known.as_mut()?;
    let granted = probe.used_in(level.window_ms);
    if !level.lasts || granted >= ALL * level.level {
        return None;
    }
    level.lasts = false;
    let from = level.level;
    level.doubt = None;
    let floor = granted.max(MOST_AT_ONCE * level.level);
    // It opened between the last refused probe and this one: what was in use then bounds what it takes.
    level.refused = probe.outlasted.min(level.level).max(floor);
    level.level = (floor * (1.0 - level.margin)).max(probe.least);
    level.confirmed = now;
    level.decisions += 1;
    level.settle(now, probe.chance);
    span::check(level, probe, now);
    Some(Moved { window_ms: level.window_ms, from: Some(from), to: level.level })
}
