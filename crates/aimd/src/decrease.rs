//! Whether a refusal lowers a ceiling, which one and how far. Never raises one, never writes: the new record
//! is returned, and whoever keeps it writes it by compare-and-set.

use crate::blame::blamed;
use crate::{Estimate, Params, Record, Source, Span};

/// After a cut the ceiling keeps at least this part of the largest clean use of the last hour.
const CLEAN_SHARE: u64 = 8;
/// A step of growth is this part of the ceiling.
const STEP_SHARE: u64 = 10;

/// Who was refused. Only a client's ordinary request proves anything about a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Witness {
    /// A request that passed the ceiling.
    Client,
    /// A health or recovery probe: it parks the account and no more.
    Probe,
    /// A quota is used up: it says nothing about a rate.
    Quota,
    /// A request sent above the ceiling, because nobody else could serve it.
    Overflow,
}

/// A refusal and what was in use when the refused request was sent.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// When the refused request was sent, in the store's milliseconds.
    pub sent_at: u64,
    /// Trailing use per span at that instant, in the record's order; probes and refused requests left out. What a
    /// ceiling is cut from.
    pub observed: &'a [u64],
    /// The same with refused requests, this one included. By it a window is blamed: one request more is much for a
    /// short window and little for a long one.
    pub used: &'a [u64],
    /// The window that the refusal names, in milliseconds.
    pub named_window_ms: Option<u64>,
    /// Who was refused.
    pub witness: Witness,
}

/// A ceiling that came down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decrease {
    /// Which span of the record.
    pub span: usize,
    /// Its window in milliseconds.
    pub window_ms: u64,
    /// The ceiling in force before; `None` for the first estimate.
    pub from: Option<u64>,
    /// The ceiling now.
    pub to: u64,
    /// The record to keep.
    pub record: Record,
}

/// Decides whether `evidence`, heard at `now`, lowers a ceiling of `record`.
#[must_use]
pub fn decrease(record: &Record, params: &Params, evidence: &Evidence<'_>, now: u64) -> Option<Decrease> {
    match evidence.witness {
        Witness::Client => {}
        Witness::Probe | Witness::Quota | Witness::Overflow => return None,
    }
    if proves_nothing_new(record, evidence, now) {
        return None;
    }
    let index = blamed(record, evidence, now)?;
    let span = &record.spans[index];
    if is_cooling(span, now) {
        return None;
    }
    let cut = cut(span, params, evidence.observed[index], now);
    let from = span.ceiling(params, now);
    let mut next = record.clone();
    next.spans[index].estimate = Some(cut);
    Some(Decrease { span: index, window_ms: span.window_ms, from, to: cut.ceiling, record: next })
}

/// An attempt that was under way when the account was last cut belongs to the same episode. A cut that lies in
/// the future by more than the longest window is of a clock that was set back since, and bars nothing.
fn proves_nothing_new(record: &Record, evidence: &Evidence<'_>, now: u64) -> bool {
    let longest = record.spans.iter().map(|span| span.window_ms).max().unwrap_or(0);
    record.last_decrease().is_some_and(|last| evidence.sent_at <= last && last <= now.saturating_add(longest))
}

/// One decrease per window, counted either way so that a clock set back does not bar the next one for long.
fn is_cooling(span: &Span, now: u64) -> bool {
    span.estimate.is_some_and(|estimate| now.abs_diff(estimate.last_decrease) < span.window_ms)
}

fn cut(span: &Span, params: &Params, observed: u64, now: u64) -> Estimate {
    let in_force = span.ceiling(params, now);
    let base = observed.min(in_force.unwrap_or(u64::MAX));
    let floor = params.min_estimate.max(span.clean.largest(now) / CLEAN_SHARE);
    let ceiling = share(base, params.decrease_factor).max(floor).min(in_force.unwrap_or(u64::MAX));
    Estimate {
        ceiling,
        step: (ceiling / STEP_SHARE).max(1),
        before: in_force.unwrap_or(observed).max(ceiling),
        last_decrease: now,
        refused_level: observed,
        clean_since: 0,
        source: Source::Hit,
    }
}

/// ⌊base × factor⌋, never more than base whatever the factor is.
fn share(base: u64, factor: f64) -> u64 {
    let part = (base as f64 * factor).floor();
    if part > 0.0 { (part as u64).min(base) } else { 0 }
}
