//! The steady law at work on one account: use per window, the pace that requests keep, and what is served and refused
//! told to the law. Of several processes each keeps its part of the level and its pace, and adds to its own use what the
//! others tell of theirs. How a level rises or falls is decided in `aimd::steady`.

mod admission;
mod bursts;
mod force;
mod seen;
mod sharing;
mod span;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aimd::Params;
use aimd::steady::{self, Level, Look, Refusal, Seen};

use crate::portion::Portion;
use crate::{CeilingKind, CeilingView, Evidence, Lowered, Unit};
use bursts::Bursts;
use force::Force;
use seen::Tally;
use span::SpanUse;

/// How often what is served is told to the law.
const LOOK_MS: u64 = 10;
/// An account is busy for so long after something was sent.
const BUSY_MS: u64 = 1_000;

#[derive(Debug)]
pub(crate) struct Steady {
    params: Params,
    /// Which part of the level is ours.
    portion: Portion,
    spans: Vec<SpanUse>,
    /// Admitted and not sent yet.
    outstanding: Arc<AtomicU64>,
    /// When the pace's bucket is full, in microseconds.
    full_at: AtomicU64,
    bursts: Bursts,
    force: Force,
    seen: Tally,
    /// The provider says that nothing is left until then.
    closed_until: AtomicU64,
    /// When others were last heard of.
    heard_at: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    level: Option<Level>,
    look: Look,
}

impl Steady {
    pub(crate) fn new(params: Params, level: Option<Level>) -> Self {
        let mut windows = params.windows();
        if let Some(level) = level.filter(|level| !windows.contains(&level.window_ms)) {
            // What was learned keeps its window, whatever the setting says now.
            windows = vec![level.window_ms];
        }
        let steady = Self {
            params,
            portion: Portion::default(),
            spans: windows.into_iter().map(SpanUse::new).collect(),
            outstanding: Arc::default(),
            full_at: AtomicU64::new(0),
            bursts: Bursts::default(),
            force: Force::default(),
            seen: Tally::default(),
            closed_until: AtomicU64::new(0),
            heard_at: AtomicU64::new(0),
            known: Mutex::new(Known { level, ..Known::default() }),
        };
        steady.publish(&steady.known(), 0);
        steady
    }

    /// Counts `n` dispatched at `now`. Room held for them must be freed after this, not before.
    pub(crate) fn count(&self, n: u32, now: u64) {
        self.portion.asked(n);
        self.bursts.note(n, self.force.read(&self.spans).map(|(_, _, pace)| pace), now);
        for span in &self.spans {
            span.sent.add_sent(n, now);
        }
    }

    /// `n` of those counted at `at` are no evidence: they were refused.
    pub(crate) fn leave_out(&self, n: u32, at: u64) {
        for span in &self.spans {
            span.left_out.add_sent(n, at);
        }
    }

    /// A request sent at `sent_at` was served.
    pub(crate) fn served(&self, sent_at: u64, now: u64) {
        self.seen.answers.fetch_add(1, Relaxed);
        self.seen.took(now.saturating_sub(sent_at));
        let told_at = self.seen.told_at.load(Relaxed);
        if (now >= told_at && now - told_at < LOOK_MS) || self.force.read(&self.spans).is_none() {
            return;
        }
        self.seen.told_at.store(now, Relaxed);
        let mut known = self.known();
        let Known { level: Some(level), look } = &mut *known else { return };
        let seen = Seen {
            sent_at,
            used: self.used_in(level.window_ms, sent_at, now) + 1.0,
            held: self.held_in(level.window_ms, sent_at, now),
            burst: self.bursts.at(sent_at),
            // Others' answers pay, too, and each process keeps the debt of all.
            answers: self.seen.answers.swap(0, Relaxed) as f64 / self.portion.share(),
            clipped: self.seen.clipped.swap(false, Relaxed),
            round_trip_ms: self.seen.round_trip_ms.load(Relaxed),
            shorter_ms: self.shorter_than(level.window_ms).filter(|_| level.stated == 0.0),
        };
        if steady::served(level, look, &seen, now) || self.is_cut_off(now) {
            self.publish(&known, now);
        }
    }

    /// A refusal, heard at `now`.
    pub(crate) fn refused(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        self.leave_out(evidence.requests, evidence.sent_at);
        if evidence.probe {
            self.seen.still_refused_at.store(evidence.sent_at, Relaxed);
            // Not later: what others use is known as of now alone, and as they rest it falls.
            self.spans.iter().for_each(|span| span.outlast(evidence.sent_at, now));
        }
        if evidence.quota || evidence.overflow {
            return None;
        }
        self.change(evidence, now, steady::refused)
    }

    /// The probe that ends a park, sent at `sent_at`, was served.
    pub(crate) fn back(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        self.rested(now);
        self.change(evidence, now, steady::back)
    }

    /// A park ended. What gathered while the account rested would come at once, and from every process.
    pub(crate) fn rested(&self, now: u64) {
        self.seen.back_at.store(now, Relaxed);
        self.drain(0.0, now);
    }

    fn change(
        &self,
        evidence: &Evidence,
        now: u64,
        decide: impl Fn(&mut Option<Level>, &Refusal<'_>, u64) -> Option<steady::Moved>,
    ) -> Option<Lowered> {
        let at = evidence.sent_at;
        let mut known = self.known();
        let stated = self.news(known.level.as_ref(), evidence);
        let named = known.level.filter(|level| level.stated > 0.0).map(|level| level.window_ms);
        // Of an account that states its window no other one is looked at.
        let named = stated.map(|(window_ms, _)| window_ms).or(named);
        let ours = |span: &&SpanUse| named.is_none_or(|window_ms| window_ms == span.window_ms);
        let used = |span: &SpanUse| (span.window_ms, span.evidence(at, now) + span.others());
        let used: Vec<(u64, f64)> = self.spans.iter().filter(ours).map(used).collect();
        let window_ms = known.level.map_or(0, |level| level.window_ms);
        let own = self.spans.iter().find(|span| span.window_ms == window_ms);
        let refusal = Refusal {
            sent_at: at,
            used: &used,
            held: self.held_in(window_ms, at, now),
            burst: self.bursts.at(at),
            proven: known.look.proven(),
            requests: evidence.requests,
            probe: evidence.probe,
            named_window_ms: evidence.named_window_ms,
            outlasted: own.map_or(f64::INFINITY, |span| self.outlasted(span, known.level.as_ref())),
            stated,
            round_trip_ms: self.seen.round_trip_ms.load(Relaxed),
            least: self.params.min_estimate as f64,
            chance: evidence.chance,
        };
        let moved = decide(&mut known.level, &refusal, now);
        self.publish(&known, now);
        moved.map(|moved| Lowered {
            window_ms: moved.window_ms,
            from: moved.from.map(|from| from.round() as u64),
            to: moved.to.round() as u64,
        })
    }

    /// What the refusal states of one of our windows, if that is news: providers state wrong numbers, and what was learned
    /// must not be forgotten each time that one is said again, here or to another process.
    fn news(&self, level: Option<&Level>, evidence: &Evidence) -> Option<(u64, f64)> {
        let (window_ms, limit) = evidence.named_window_ms.zip(evidence.stated)?;
        let known = level.is_some_and(|level| level.believed(window_ms, limit as f64));
        let ours = self.spans.iter().any(|span| span.window_ms == window_ms);
        (ours && !known).then_some((window_ms, limit as f64))
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    pub(crate) fn export(&self) -> Option<Level> {
        self.known().level
    }

    /// Takes over a record that others wrote after ours.
    pub(crate) fn adopt(&self, theirs: &Level, now: u64) -> bool {
        if !self.spans.iter().any(|span| span.window_ms == theirs.window_ms) {
            return false;
        }
        let mut known = self.known();
        known.level = Some(known.level.map_or(*theirs, |ours| ours.beside(theirs)));
        self.publish(&known, now);
        true
    }

    /// The account is used just now. A first level is measured by what others told before there was one.
    pub(crate) fn is_busy(&self, now: u64) -> bool {
        self.bursts.is_busy(BUSY_MS, now)
    }

    pub(crate) fn is_gated(&self) -> bool {
        self.force.read(&self.spans).is_some()
    }

    pub(crate) fn view(&self, now: u64) -> Option<CeilingView> {
        let (span, _, _) = self.force.read(&self.spans)?;
        let limit = self.known().level?.ceiling() as u64;
        let used = (span.sent.in_use(now, now) + span.others()).round() as u64;
        let (window_ms, unit, kind) = (span.window_ms, Unit::Requests, CeilingKind::Learned);
        Some(CeilingView { window_ms, unit, limit, kind, used })
    }

    /// Use without refused requests, that of all processes.
    fn used_in(&self, window_ms: u64, at: u64, now: u64) -> f64 {
        let span = self.spans.iter().find(|span| span.window_ms == window_ms);
        span.map_or(0.0, |span| span.evidence(at, now) + span.others())
    }

    /// What the pace turned away here, as if all processes had turned away as much.
    fn held_in(&self, window_ms: u64, at: u64, now: u64) -> f64 {
        let span = self.spans.iter().find(|span| span.window_ms == window_ms);
        span.map_or(0.0, |span| span.held.in_use(at, now)) / self.portion.share()
    }

    /// What was in use when a probe was last refused in this episode.
    fn outlasted(&self, span: &SpanUse, level: Option<&Level>) -> f64 {
        let at = self.seen.still_refused_at.load(Relaxed);
        if level.is_some_and(|level| at > level.hit) { span.outlasted() } else { f64::INFINITY }
    }

    fn shorter_than(&self, window_ms: u64) -> Option<u64> {
        self.spans.iter().map(|span| span.window_ms).filter(|window| *window < window_ms).max()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
