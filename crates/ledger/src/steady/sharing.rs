//! What one of several processes may send of a level: its part, and of a long window what the others leave. Where requests are
//! seconds apart, all keep one pace. Decides nothing about levels, and nothing of when others are told.

use std::sync::atomic::Ordering::Relaxed;

use aimd::steady::Pace;

use super::span::MILLI;
use super::{Known, Steady};
use crate::Footprint;

/// One of several processes may send so many at once, or as many as all of them if that is less: with one token, each
/// would lose what comes to it while nobody asks.
const AT_ONCE: f64 = 2.0;
/// In a window of so long it hardly matters that others are heard of a little late: what they leave may be used. In a shorter
/// one all of them would use it at once.
const LONG_MS: u64 = 30_000;
/// Where requests are so far apart, others hear of each before the next is due.
const SLOW_US: f64 = 5_000_000.0;
/// Who heard of nobody for so long keeps to its part.
const CUT_OFF_MS: u64 = 3_000;

impl Steady {
    /// What this process asks for and uses, for the others.
    pub(crate) fn footprint(&self, now: u64) -> Footprint {
        let used = |span: &super::SpanUse| (span.window_ms, (span.evidence(now, now) * MILLI) as u64);
        Footprint { wanted: self.portion.wanted(now), used: self.spans.iter().map(used).collect() }
    }

    /// What all others together ask for and use.
    pub(crate) fn beside(&self, others: &Footprint, now: u64) {
        let known = self.known();
        for span in &self.spans {
            let told = others.used.iter().find(|(window_ms, _)| *window_ms == span.window_ms);
            let used = told.map_or(0, |(_, used)| *used);
            let before = span.others.swap(used, Relaxed);
            let slow =
                known.level.filter(|level| level.window_ms == span.window_ms && is_slow(&level.pace()));
            if let Some(level) = slow {
                self.keep_up(&level.pace(), used.saturating_sub(before) as f64 / MILLI, now);
            }
        }
        self.heard_at.store(now, Relaxed);
        self.portion.beside(others.wanted);
        self.publish(&known, now);
    }

    /// Others sent as many as their use `rose` by: the pace is theirs, too. Who joins tells of all that it used at once.
    fn keep_up(&self, pace: &Pace, rose: f64, now: u64) {
        let sent = rose.round().min(pace.depth);
        let after = |full_at: u64| full_at.max(now.saturating_mul(1000)) + (sent * pace.gap_us) as u64;
        if sent >= 1.0 {
            let _ = self.full_at.fetch_update(Relaxed, Relaxed, |full_at| Some(after(full_at)));
        }
    }

    /// Others are there, and were not heard of lately.
    pub(super) fn is_cut_off(&self, now: u64) -> bool {
        self.portion.share() < 1.0 && now.saturating_sub(self.heard_at.load(Relaxed)) > CUT_OFF_MS
    }

    /// Copies our part of the record out of it, for the hot path. The lock is held, so the last change wins.
    pub(super) fn publish(&self, known: &Known, now: u64) {
        let Some(level) = &known.level else { return self.force.lift() };
        let span = self.spans.iter().position(|span| span.window_ms == level.window_ms).unwrap_or(0);
        let (share, pace, all) = (self.portion.share(), level.pace(), level.ceiling());
        let hears = share < 1.0 && !self.is_cut_off(now);
        let slow = hears && is_slow(&pace);
        // Under a shallow pace what two of them send at once is refused, so that to send more there only costs.
        let may_use_theirs = hears && level.window_ms >= LONG_MS && (slow || !level.is_shallow());
        let left = if may_use_theirs { all - self.spans[span].others() } else { 0.0 };
        // A part is no whole number of requests. What that would lose is let through: the pace holds on the average.
        let ceiling = (all * share + (1.0 - share)).max(left);
        let ours = if slow { pace } else { part_of(&pace, share.max(left / all)) };
        self.force.set(span, ceiling, ours);
    }
}

fn is_slow(pace: &Pace) -> bool {
    pace.gap_us >= SLOW_US
}

fn part_of(pace: &Pace, part: f64) -> Pace {
    Pace { gap_us: pace.gap_us / part, depth: (pace.depth * part).max(pace.depth.min(AT_ONCE)) }
}
