//! What is remembered of an account between hits, and the ceiling that follows from it at a given time.
//! Growth is computed when read, never written; nothing here decides a decrease.

use crate::{Params, Peaks};

/// All that learning knows of one account. Written whole, by compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// One span per window, shortest first. Never empty.
    pub spans: Vec<Span>,
}

/// One window of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Length of the window in milliseconds.
    pub window_ms: u64,
    /// What a hit taught, if one did: without an estimate nothing is throttled.
    pub estimate: Option<Estimate>,
    /// The largest uses served cleanly in the last hour.
    pub clean: Peaks,
}

/// A ceiling as it was last cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Requests per window, as last cut.
    pub ceiling: u64,
    /// Requests added per `increase_interval`.
    pub step: u64,
    /// The ceiling before the cut (for the first one: what was observed). Growth may come back to it.
    pub before: u64,
    /// When it was cut, in milliseconds.
    pub last_decrease: u64,
    /// What was in use when a refusal last came.
    pub refused_level: u64,
    /// The largest use served cleanly since the cut. Growth may reach twice that.
    pub clean_since: u64,
    /// Where the estimate comes from.
    pub source: Source,
}

/// Where an estimate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Cut by a hit.
    Hit,
    /// The refusal's text or headers stated the number.
    Stated,
    /// Read back from the store by a process that did not see the hit.
    Stored,
}

impl Record {
    /// A record without estimates, over the windows that `params` asks for.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        Self { spans: params.windows().into_iter().map(Span::new).collect() }
    }

    /// True once a hit taught anything.
    #[must_use]
    pub fn has_estimate(&self) -> bool {
        self.spans.iter().any(|span| span.estimate.is_some())
    }

    /// This record if it holds an estimate, whose windows are then frozen; else a fresh one over the windows
    /// that `params` asks for.
    #[must_use]
    pub fn or_fresh(self, params: &Params) -> Self {
        if self.has_estimate() { self } else { Self::new(params) }
    }

    /// When the account was last cut, on whichever span.
    #[must_use]
    pub fn last_decrease(&self) -> Option<u64> {
        self.spans.iter().filter_map(|span| span.estimate.map(|e| e.last_decrease)).max()
    }

    /// A request sent at `sent_at` was served; `used[i]` is the trailing use of span `i` at that instant, probes
    /// and refused requests left out. True if the record changed.
    pub fn served(&mut self, used: &[u64], sent_at: u64) -> bool {
        let mut changed = false;
        for (span, used) in self.spans.iter_mut().zip(used) {
            changed |= span.served(*used, sent_at);
        }
        changed
    }
}

impl Record {
    /// Takes over what another replica learned: per window the later cut, and the larger uses. False, and nothing
    /// changes, if the other's windows differ.
    pub fn merge(&mut self, other: &Self) -> bool {
        let windows = |record: &Self| record.spans.iter().map(|span| span.window_ms).collect::<Vec<_>>();
        if windows(self) != windows(other) {
            return false;
        }
        for (span, theirs) in self.spans.iter_mut().zip(&other.spans) {
            span.merge(theirs);
        }
        true
    }
}

impl Span {
    /// A window without an estimate.
    #[must_use]
    pub fn new(window_ms: u64) -> Self {
        Self { window_ms, estimate: None, clean: Peaks::default() }
    }

    /// The ceiling as grown at `now`, or `None` while nothing is known.
    #[must_use]
    pub fn ceiling(&self, params: &Params, now: u64) -> Option<u64> {
        let estimate = self.estimate?;
        let grown =
            estimate.ceiling.saturating_add(intervals(&estimate, params, now).saturating_mul(estimate.step));
        Some(grown.min(estimate.bound()).max(params.min_estimate))
    }

    /// When the ceiling next rises of its own, in milliseconds; `None` without an estimate or at its bound.
    #[must_use]
    pub fn next_growth(&self, params: &Params, now: u64) -> Option<u64> {
        let estimate = self.estimate?;
        if self.ceiling(params, now)? >= estimate.bound() {
            return None;
        }
        let next = intervals(&estimate, params, now).saturating_add(1);
        Some(estimate.last_decrease.saturating_add(next.saturating_mul(params.increase_interval_ms.max(1))))
    }

    /// The largest use that is no news, while the newest five minutes last: serving it changes nothing.
    #[must_use]
    pub fn taught(&self) -> u64 {
        self.clean.newest().min(self.estimate.map_or(u64::MAX, |estimate| estimate.clean_since))
    }

    fn merge(&mut self, other: &Self) {
        self.clean.merge(&other.clean);
        self.estimate = match (self.estimate, other.estimate) {
            (Some(mine), Some(theirs)) if mine.last_decrease > theirs.last_decrease => Some(mine),
            (Some(mine), Some(theirs)) if mine.last_decrease == theirs.last_decrease => {
                let clean_since = mine.clean_since.max(theirs.clean_since);
                Some(Estimate { clean_since, ceiling: mine.ceiling.min(theirs.ceiling), ..mine })
            }
            (mine, theirs) => theirs.or(mine),
        };
    }

    fn served(&mut self, used: u64, sent_at: u64) -> bool {
        let mut changed = self.clean.note(used, sent_at);
        if let Some(estimate) = &mut self.estimate
            && sent_at > estimate.last_decrease
            && used > estimate.clean_since
        {
            estimate.clean_since = used;
            changed = true;
        }
        changed
    }
}

impl Estimate {
    /// Growth ends here: nobody served more than half of it since the cut, and it was not more before.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.before.max(self.clean_since.saturating_mul(2))
    }
}

/// Whole intervals since the cut; a clock that went back gives none.
fn intervals(estimate: &Estimate, params: &Params, now: u64) -> u64 {
    now.saturating_sub(estimate.last_decrease) / params.increase_interval_ms.max(1)
}
