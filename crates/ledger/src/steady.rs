//! The steady law at work on one account: use per window, the pace that requests keep, and what is served and refused
//! told to the law. Of several processes each keeps its part of the level and its pace, and adds to its own use what the
//! others tell of theirs. How a level rises or falls is decided in `aimd::steady`.

mod bursts;
mod force;
mod seen;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aimd::Params;
use aimd::steady::{self, Level, Look, Pace, Paced, Refusal, Seen};

use crate::portion::Portion;
use crate::ticket::Outstanding;
use crate::{CeilingKind, CeilingView, Cost, Evidence, Footprint, Lowered, Slots, Take, Ticket, Unit};
use bursts::Bursts;
use force::Force;
use seen::Tally;

/// How often what is served is told to the law.
const LOOK_MS: u64 = 10;
/// Where the window gates and not the pace, no more than this is left in the bucket, or a sixty-fourth of the level: what
/// leaves the window together would come back together.
const KEPT: (f64, f64) = (3.0, 64.0);
/// Bursts are clipped where the pace stops requests although so little of the level is in use.
const CLIPPED: f64 = 0.97;
/// One of several processes may send so many at once, or as many as all of them if that is less: with one token, each
/// would lose what comes to it while nobody asks.
const AT_ONCE: f64 = 2.0;
/// An account is busy for so long after something was sent.
const BUSY_MS: u64 = 1_000;
/// What others use is told in thousandths of a request.
const MILLI: f64 = 1000.0;

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
    known: Mutex<Known>,
}

#[derive(Debug)]
struct SpanUse {
    window_ms: u64,
    sent: Slots,
    /// Refused ones: in use, but no evidence.
    left_out: Slots,
    /// Turned away by the pace alone.
    held: Slots,
    /// What all other processes use, as evidence: thousandths of a request.
    others: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    level: Option<Level>,
    look: Look,
    /// The window and the limit that a refusal stated last: then no other window is looked at.
    stated: Option<(u64, u64)>,
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
            known: Mutex::new(Known { level, ..Known::default() }),
        };
        steady.publish(&steady.known());
        steady
    }

    /// Room for `cost` as a ticket, if there is room for `ahead` before it.
    pub(crate) fn take(&self, cost: Cost, ahead: Cost, now: u64) -> Take {
        let largest = self.largest();
        if u64::from(cost.requests) > largest {
            return Take::TooBig { largest: largest as u32 };
        }
        match self.admit(cost.requests, ahead.requests, now) {
            Ok(room) => Take::Granted(Ticket { outstanding: Some(room), ..Ticket::free(cost) }),
            Err(again_at) => {
                self.portion.asked(cost.requests);
                Take::Dry { again_at, kind: CeilingKind::Learned }
            }
        }
    }

    /// Holds room for `n` requests under the level and its pace, or says when there is some: once `ahead` had theirs.
    fn admit(&self, n: u32, ahead: u32, now: u64) -> Result<Outstanding, u64> {
        let (room, held) = Outstanding::hold(&self.outstanding, n);
        let Some((span, ceiling, pace)) = self.force.read(&self.spans) else { return Ok(room) };
        let closed_until = self.closed_until.load(Relaxed);
        if now < closed_until {
            return Err(closed_until);
        }
        let used = span.sent.in_use(now, now);
        if used + held as f64 > most(ceiling) {
            self.drain(KEPT.0.max(ceiling / KEPT.1), now);
            return Err(span.frees(used + held as f64 - most(ceiling), now));
        }
        let short = used + held as f64 + f64::from(ahead) - most(ceiling);
        if short > 0.0 {
            return Err(span.frees(short, now));
        }
        self.keep_pace(&pace, n, ahead, now).map(|()| room).inspect_err(|_| {
            span.held.add_sent(n, now);
            let back = self.seen.back_at.load(Relaxed).saturating_add(2 * span.window_ms);
            if now > back && used < CLIPPED * most(ceiling) {
                self.seen.clipped.store(true, Relaxed);
            }
        })
    }

    /// Leaves no more than `tokens` in the pace's bucket.
    fn drain(&self, tokens: f64, now: u64) {
        if let Some((_, _, pace)) = self.force.read(&self.spans) {
            self.full_at.fetch_max(pace.drained(0, tokens, now), Relaxed);
        }
    }

    fn keep_pace(&self, pace: &Pace, n: u32, ahead: u32, now: u64) -> Result<(), u64> {
        let mut full_at = self.full_at.load(Relaxed);
        loop {
            if ahead > 0 {
                let after = paced(pace.ask(full_at, ahead, now))?;
                paced(pace.ask(after, n, now))?;
            }
            let next = paced(pace.ask(full_at, n, now))?;
            match self.full_at.compare_exchange_weak(full_at, next, Relaxed, Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => full_at = other,
            }
        }
    }

    /// More at once never fits.
    pub(crate) fn largest(&self) -> u64 {
        self.force.read(&self.spans).map_or(u64::MAX, |(_, ceiling, _)| most(ceiling) as u64)
    }

    /// What fits now, the pace aside.
    pub(crate) fn left(&self, now: u64) -> u64 {
        let Some((span, ceiling, _)) = self.force.read(&self.spans) else { return u64::MAX };
        let held = self.outstanding.load(Relaxed) as f64;
        (most(ceiling) - held - span.sent.in_use(now, now)).max(0.0) as u64
    }

    /// When `n` fit, if nothing else is sent until then.
    pub(crate) fn when(&self, n: u32, now: u64) -> u64 {
        let Some((span, ceiling, pace)) = self.force.read(&self.spans) else { return now };
        let held = self.outstanding.load(Relaxed) as f64 + f64::from(n);
        let short = span.sent.in_use(now, now) + held - most(ceiling);
        let aged = if short > 0.0 { span.frees(short, now) } else { now };
        let aged = aged.max(self.closed_until.load(Relaxed));
        match pace.ask(self.full_at.load(Relaxed), n, now) {
            Paced::Go { .. } => aged,
            Paced::Wait { until } => aged.max(until),
        }
    }

    /// The provider says that nothing is left until `until`. What it says of longer than a window is not about the level.
    pub(crate) fn close(&self, until: u64, now: u64) {
        if let Some((span, _, _)) = self.force.read(&self.spans)
            && until.saturating_sub(now) <= span.window_ms
        {
            self.closed_until.fetch_max(until, Relaxed);
        }
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
        let Known { level: Some(level), look, stated } = &mut *known else { return };
        let seen = Seen {
            sent_at,
            used: self.used_in(level.window_ms, sent_at, now) + 1.0,
            held: self.held_in(level.window_ms, sent_at, now),
            burst: self.bursts.at(sent_at),
            // Others' answers pay, too, and each process keeps the debt of all.
            answers: self.seen.answers.swap(0, Relaxed) as f64 / self.portion.share(),
            clipped: self.seen.clipped.swap(false, Relaxed),
            round_trip_ms: self.seen.round_trip_ms.load(Relaxed),
            shorter_ms: self.shorter_than(level.window_ms).filter(|_| stated.is_none()),
        };
        if steady::served(level, look, &seen, now) {
            self.publish(&known);
        }
    }

    /// A refusal, heard at `now`.
    pub(crate) fn refused(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        if evidence.probe {
            self.seen.still_refused_at.store(evidence.sent_at, Relaxed);
        }
        self.leave_out(evidence.requests, evidence.sent_at);
        if evidence.quota || evidence.overflow {
            return None;
        }
        self.change(evidence, now, steady::refused)
    }

    /// The probe that ends a park, sent at `sent_at`, was served.
    pub(crate) fn back(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        self.seen.back_at.store(now, Relaxed);
        self.drain(0.0, now);
        self.change(evidence, now, steady::back)
    }

    fn change(
        &self,
        evidence: &Evidence,
        now: u64,
        decide: impl Fn(&mut Option<Level>, &Refusal<'_>, u64) -> Option<steady::Moved>,
    ) -> Option<Lowered> {
        let at = evidence.sent_at;
        let mut known = self.known();
        let stated = self.state(&mut known, evidence);
        let ours = |span: &&SpanUse| known.stated.is_none_or(|(window_ms, _)| window_ms == span.window_ms);
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
            outlasted: own.map_or(0.0, |span| self.outlasted(span, known.level.as_ref(), now)),
            stated,
            round_trip_ms: self.seen.round_trip_ms.load(Relaxed),
            least: self.params.min_estimate as f64,
            chance: evidence.chance,
        };
        let moved = decide(&mut known.level, &refusal, now);
        self.publish(&known);
        moved.map(|moved| Lowered {
            window_ms: moved.window_ms,
            from: moved.from.map(|from| from.round() as u64),
            to: moved.to.round() as u64,
        })
    }

    /// What the refusal states of one of our windows, if that is new or moved by a fiftieth: providers state wrong numbers,
    /// and what was learned of one must not be forgotten each time that it is said again.
    fn state(&self, known: &mut Known, evidence: &Evidence) -> Option<(u64, f64)> {
        let (window_ms, limit) = evidence.named_window_ms.zip(evidence.stated)?;
        let same =
            |(window, before): (u64, u64)| window == window_ms && before.abs_diff(limit) * 50 <= before;
        if known.stated.is_some_and(same) || !self.spans.iter().any(|span| span.window_ms == window_ms) {
            return None;
        }
        known.stated = Some((window_ms, limit));
        Some((window_ms, limit as f64))
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    pub(crate) fn export(&self) -> Option<Level> {
        self.known().level
    }

    /// Takes over a record that others wrote after ours.
    pub(crate) fn adopt(&self, theirs: &Level) -> bool {
        if !self.spans.iter().any(|span| span.window_ms == theirs.window_ms) {
            return false;
        }
        let mut known = self.known();
        known.level = Some(known.level.map_or(*theirs, |ours| ours.beside(theirs)));
        self.publish(&known);
        true
    }

    /// What this process asks for and uses, for the others.
    pub(crate) fn footprint(&self, now: u64) -> Footprint {
        let used = |span: &SpanUse| (span.window_ms, (span.evidence(now, now) * MILLI) as u64);
        Footprint { wanted: self.portion.wanted(now), used: self.spans.iter().map(used).collect() }
    }

    /// What all others together ask for and use.
    pub(crate) fn beside(&self, others: &Footprint) {
        for span in &self.spans {
            let told = others.used.iter().find(|(window_ms, _)| *window_ms == span.window_ms);
            span.others.store(told.map_or(0, |(_, used)| *used), Relaxed);
        }
        if self.portion.beside(others.wanted) {
            self.publish(&self.known());
        }
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
    fn outlasted(&self, span: &SpanUse, level: Option<&Level>, now: u64) -> f64 {
        let at = self.seen.still_refused_at.load(Relaxed);
        if level.is_some_and(|level| at > level.hit) { span.evidence(at, now) + span.others() } else { 0.0 }
    }

    fn shorter_than(&self, window_ms: u64) -> Option<u64> {
        self.spans.iter().map(|span| span.window_ms).filter(|window| *window < window_ms).max()
    }

    /// Copies our part of the record out of it, for the hot path. The lock is held, so the last change wins.
    fn publish(&self, known: &Known) {
        let Some(level) = &known.level else { return self.force.lift() };
        let span = self.spans.iter().position(|span| span.window_ms == level.window_ms).unwrap_or(0);
        let (part, pace) = (self.portion.share(), level.pace());
        // A part is no whole number of requests. What that would lose is let through: the pace holds on the average.
        let ceiling = level.ceiling() * part + (1.0 - part);
        let depth = (pace.depth * part).max(pace.depth.min(AT_ONCE));
        self.force.set(span, ceiling, Pace { gap_us: pace.gap_us / part, depth });
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the bucket stands after it, or when to come again.
fn paced(asked: Paced) -> Result<u64, u64> {
    match asked {
        Paced::Go { full_at, .. } => Ok(full_at),
        Paced::Wait { until } => Err(until),
    }
}

/// What may be in use; a rounding error turns nobody away, and one request always fits.
fn most(ceiling: f64) -> f64 {
    ceiling.max(1.0) + 0.01
}

impl SpanUse {
    fn new(window_ms: u64) -> Self {
        Self {
            window_ms,
            sent: Slots::tenths_of(window_ms),
            left_out: Slots::tenths_of(window_ms),
            held: Slots::tenths_of(window_ms),
            others: AtomicU64::new(0),
        }
    }

    /// What was in use here at `at`, seen from `now`, without refused requests.
    fn evidence(&self, at: u64, now: u64) -> f64 {
        (self.sent.in_use(at, now) - self.left_out.in_use(at, now)).max(0.0)
    }

    /// What others use, as they told last.
    fn others(&self) -> f64 {
        self.others.load(Relaxed) as f64 / MILLI
    }

    /// When `short` has aged.
    fn frees(&self, short: f64, now: u64) -> u64 {
        let whole_window = now.saturating_add(self.window_ms).saturating_add(self.sent.slot_ms());
        self.sent.frees(short.ceil() as u64, 0, now).unwrap_or(whole_window).max(now + 1)
    }
}
