//! Which window a level is about: it lengthens when refusals outlast it, or when what it served proves nothing twice,
//! and shortens when trials run away. One window at a time; never decides how high a level is.

use super::reasons::{
    AGAIN, FALSE_RISE, FEWEST, FILLED, HIGH, LEAST_DEPTH, MARKED, NEAR, RISE, RUNAWAY, SAME,
};
use super::record::{Mark, Rise};
use super::{Level, Refusal, Trial};

/// Refused for longer than the window although nothing else was sent: a longer one is to blame.
pub(super) fn outlasted(level: &mut Level, refusal: &Refusal<'_>, now: u64) {
    if let Some((window_ms, used)) = refusal.longer_than(level.window_ms) {
        lengthen(level, window_ms, used.max(FEWEST), refusal.chance, now);
    }
}

/// Refused far from the level, but time and again at the same use of another window: that is the one.
pub(super) fn suits_better(level: &mut Level, refusal: &Refusal<'_>, now: u64) -> bool {
    if refusal.used_in(level.window_ms) >= NEAR * level.level {
        // At its level every window looks the same each time.
        return false;
    }
    let mut better = None;
    for (mark, (window_ms, used)) in level.marks.iter_mut().zip(refusal.used) {
        let filled = level.level * (*window_ms as f64 / level.window_ms as f64);
        if *window_ms > level.window_ms && *used >= FILLED * filled {
            // So does a longer one that was filled at the level's pace, whatever is refused.
            continue;
        }
        // Two refusals within half a window saw much the same window.
        if now.saturating_sub(mark.at) >= window_ms / 2 {
            let same = *used >= MARKED && (used - mark.used).abs() <= SAME * mark.used;
            *mark = Mark { used: *used, times: if same { (mark.times + 1).min(9) } else { 0 }, at: now };
        }
        if mark.times >= AGAIN && *window_ms != level.window_ms && better.is_none() {
            better = Some((*window_ms, *used));
        }
    }
    let Some((window_ms, used)) = better else { return false };
    lengthen(level, window_ms, used * (1.0 - level.margin), refusal.chance, now);
    level.marks = [Mark::default(); 3];
    true
}

/// The level fell: if it fell back to where a rise of late began, that rise was false, although each step of it passed a
/// whole window. Two of them in a row show that the limit remembers longer than the window.
pub(super) fn check(level: &mut Level, refusal: &Refusal<'_>, now: u64) {
    let rise = level.rise;
    let recent = now.saturating_sub(rise.at) < level.windows(RISE);
    let high = rise.top >= (HIGH * rise.base).max(rise.base + 3.0);
    if !recent || !high || level.level > rise.base + 0.35 * (rise.top - rise.base) {
        return;
    }
    let forgotten = now.saturating_sub(rise.false_at) > level.windows(FALSE_RISE);
    level.rise.falses = if forgotten { 1 } else { rise.falses + 1 };
    level.rise.false_at = now;
    level.rise.at = 0;
    if level.rise.falses >= 2
        && let Some((window_ms, used)) = refusal.longer_than(level.window_ms)
    {
        lengthen(level, window_ms, used.max(FEWEST) * (1.0 - level.margin), refusal.chance, now);
    }
}

fn lengthen(level: &mut Level, window_ms: u64, used: f64, chance: f64, now: u64) {
    // As many requests at once as before.
    let before = level.depth * level.level;
    level.window_ms = window_ms;
    level.level = used;
    level.depth = (before / used).clamp(LEAST_DEPTH, 1.0);
    level.refused = used;
    level.doubt = None;
    level.rise = Rise { false_at: now, ..Rise::default() };
    level.decisions += 1;
    level.settle(now, chance);
}

/// Trials run away: the same pace, in steps of a shorter window. One that was found too short of late is not tried again.
pub(super) fn shorten(level: &mut Level, shorter_ms: Option<u64>, now: u64) {
    let Some(window_ms) = shorter_ms else { return };
    let lengthened =
        level.rise.false_at != 0 && now.saturating_sub(level.rise.false_at) < level.windows(RISE);
    let scale = window_ms as f64 / level.window_ms as f64;
    if lengthened
        || level.level < RUNAWAY * level.rise.good
        || level.refused.is_finite()
        || level.level * scale < FEWEST
    {
        return;
    }
    level.window_ms = window_ms;
    level.level *= scale;
    level.depth = (level.depth / scale).min(1.0);
    if let Trial::Level(more) = level.trial {
        level.trial = Trial::Level((more * scale).max(level.step()));
    }
    level.rise =
        Rise { base: level.rise.base * scale, top: level.level, good: level.rise.good * scale, ..level.rise };
}
