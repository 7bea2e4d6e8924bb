//! The steady law at work on one account: use per window, the pace that requests keep, and what is served and refused
//! told to the law. Of several processes each counts its own use. How a level rises or falls is decided in
//! `aimd::steady`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aimd::Params;
use aimd::steady::{self, Level, Look, Pace, Paced, Refusal, Seen};

use crate::ticket::Outstanding;
use crate::{CeilingKind, CeilingView, Cost, Evidence, Lowered, Slots, Take, Ticket, Unit};

/// A ceiling that is not known.
const NONE: f64 = f64::INFINITY;
/// How often what is served is told to the law.
const LOOK_MS: u64 = 10;
/// Where the window gates and not the pace, no more than this is left in the bucket, or a sixty-fourth of the level: what
/// leaves the window together would come back together.
const KEPT: (f64, f64) = (3.0, 64.0);
/// Bursts are clipped where the pace stops requests although so little of the level is in use.
const CLIPPED: f64 = 0.97;

#[derive(Debug)]
pub(crate) struct Steady {
    params: Params,
    spans: Vec<SpanUse>,
    /// Admitted and not sent yet.
    outstanding: Arc<AtomicU64>,
    /// When the pace's bucket is full, in microseconds.
    full_at: AtomicU64,
    gaps: Gaps,
    force: Force,
    seen: Tally,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct SpanUse {
    window_ms: u64,
    sent: Slots,
    /// Refused ones and probes: in use, but no evidence.
    left_out: Slots,
}

/// What of the record the hot path reads. Fields are read one by one: a moment's mixture of two levels is as good as
/// either.
#[derive(Debug)]
struct Force {
    span: AtomicU64,
    ceiling: AtomicU64,
    gap_us: AtomicU64,
    depth: AtomicU64,
}

/// What happened since the law was last told.
#[derive(Debug, Default)]
struct Tally {
    told_at: AtomicU64,
    answers: AtomicU64,
    clipped: AtomicBool,
    round_trip_ms: AtomicU64,
    back_at: AtomicU64,
}

/// How close requests of late followed each other: by the slot of ten milliseconds, the gap before the last one in it.
#[derive(Debug, Default)]
struct Gaps {
    last: AtomicU64,
    /// A slot's number, and milliseconds.
    words: [AtomicU64; Gaps::RING],
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
            spans: windows.into_iter().map(SpanUse::new).collect(),
            outstanding: Arc::default(),
            full_at: AtomicU64::new(0),
            gaps: Gaps::default(),
            force: Force::default(),
            seen: Tally::default(),
            known: Mutex::new(Known { level, look: Look::default() }),
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
            Err(again_at) => Take::Dry { again_at, kind: CeilingKind::Learned },
        }
    }

    /// Holds room for `n` requests under the level and its pace, or says when there is some: once `ahead` had theirs.
    fn admit(&self, n: u32, ahead: u32, now: u64) -> Result<Outstanding, u64> {
        let (room, held) = Outstanding::hold(&self.outstanding, n);
        let Some((span, ceiling, pace)) = self.force.read(&self.spans) else { return Ok(room) };
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
        match pace.ask(self.full_at.load(Relaxed), n, now) {
            Paced::Go { .. } => aged,
            Paced::Wait { until } => aged.max(until),
        }
    }

    /// Counts `n` dispatched at `now`. Room held for them must be freed after this, not before.
    pub(crate) fn count(&self, n: u32, now: u64) {
        self.gaps.note(now);
        for span in &self.spans {
            span.sent.add_sent(n, now);
        }
    }

    /// `n` of those counted at `at` are no evidence: probes, refused ones.
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
            answers: self.seen.answers.swap(0, Relaxed) as f64,
            clipped: self.seen.clipped.swap(false, Relaxed),
            round_trip_ms: self.seen.round_trip_ms.load(Relaxed),
            shorter_ms: self.shorter_than(level.window_ms),
        };
        if steady::served(level, look, &seen, now) {
            self.publish(&known);
        }
    }

    /// A refusal, heard at `now`.
    pub(crate) fn refused(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        if !evidence.probe {
            self.leave_out(evidence.requests, evidence.sent_at);
        }
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
        let used: Vec<(u64, f64)> =
            self.spans.iter().map(|span| (span.window_ms, self.used_in(span.window_ms, at, now))).collect();
        let mut known = self.known();
        let window_ms = known.level.map_or(0, |level| level.window_ms);
        let own = self.spans.iter().find(|span| span.window_ms == window_ms);
        let refusal = Refusal {
            sent_at: at,
            used: &used,
            busiest: own.map_or(0.0, |span| span.sent.busiest(at) as f64),
            gap_ms: self.gaps.before(at) as f64,
            requests: evidence.requests,
            probe: evidence.probe,
            named_window_ms: evidence.named_window_ms,
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

    pub(crate) fn is_gated(&self) -> bool {
        self.force.read(&self.spans).is_some()
    }

    pub(crate) fn view(&self, now: u64) -> Option<CeilingView> {
        let (span, ceiling, _) = self.force.read(&self.spans)?;
        Some(CeilingView {
            window_ms: span.window_ms,
            unit: Unit::Requests,
            limit: ceiling as u64,
            kind: CeilingKind::Learned,
            used: span.sent.in_use(now, now).round() as u64,
        })
    }

    /// Use without refused requests and probes.
    fn used_in(&self, window_ms: u64, at: u64, now: u64) -> f64 {
        let own = self.spans.iter().find(|span| span.window_ms == window_ms);
        let own = own.map_or(0.0, |span| span.sent.in_use(at, now) - span.left_out.in_use(at, now));
        own.max(0.0)
    }

    fn shorter_than(&self, window_ms: u64) -> Option<u64> {
        self.spans.iter().map(|span| span.window_ms).filter(|window| *window < window_ms).max()
    }

    /// Copies out of the record what the hot path reads. The lock is held, so the last change wins.
    fn publish(&self, known: &Known) {
        let Some(level) = &known.level else {
            return self.force.set(0, NONE, Pace { gap_us: 0.0, depth: 1.0 });
        };
        let span = self.spans.iter().position(|span| span.window_ms == level.window_ms).unwrap_or(0);
        self.force.set(span, level.ceiling(), level.pace());
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

impl Default for Force {
    fn default() -> Self {
        let force = Self {
            span: AtomicU64::new(0),
            ceiling: AtomicU64::new(0),
            gap_us: AtomicU64::new(0),
            depth: AtomicU64::new(0),
        };
        force.set(0, NONE, Pace { gap_us: 0.0, depth: 1.0 });
        force
    }
}

impl Force {
    fn set(&self, span: usize, ceiling: f64, pace: Pace) {
        self.span.store(span as u64, Relaxed);
        self.ceiling.store(ceiling.to_bits(), Relaxed);
        self.gap_us.store(pace.gap_us.to_bits(), Relaxed);
        self.depth.store(pace.depth.to_bits(), Relaxed);
    }

    /// `None` while no level is known.
    fn read<'a>(&self, spans: &'a [SpanUse]) -> Option<(&'a SpanUse, f64, Pace)> {
        let number = |word: &AtomicU64| f64::from_bits(word.load(Relaxed));
        let ceiling = number(&self.ceiling);
        let span = spans.get(self.span.load(Relaxed) as usize).filter(|_| ceiling.is_finite())?;
        Some((span, ceiling, Pace { gap_us: number(&self.gap_us), depth: number(&self.depth) }))
    }
}

impl Gaps {
    const RING: usize = 32;
    const SLOT_MS: u64 = 20;
    const BITS: u32 = 20;

    fn note(&self, now: u64) {
        let slot = now / Self::SLOT_MS;
        let gap = now.saturating_sub(self.last.swap(now, Relaxed)).min((1 << Self::BITS) - 1);
        self.words[slot as usize % Self::RING].store((slot << Self::BITS) | gap, Relaxed);
    }

    /// Before the request sent at `at`; long if it is forgotten.
    fn before(&self, at: u64) -> u64 {
        let slot = at / Self::SLOT_MS;
        let word = self.words[slot as usize % Self::RING].load(Relaxed);
        if word >> Self::BITS == slot { word & ((1 << Self::BITS) - 1) } else { u64::from(u32::MAX) }
    }
}

impl Tally {
    /// A mean that moves an eighth of the way each time.
    fn took(&self, ms: u64) {
        let mean = self.round_trip_ms.load(Relaxed);
        let next = if mean == 0 { ms } else { (7 * mean + ms).div_ceil(8) };
        self.round_trip_ms.store(next, Relaxed);
    }
}

impl SpanUse {
    fn new(window_ms: u64) -> Self {
        Self { window_ms, sent: Slots::tenths_of(window_ms), left_out: Slots::tenths_of(window_ms) }
    }

    /// When `short` has aged.
    fn frees(&self, short: f64, now: u64) -> u64 {
        let whole_window = now.saturating_add(self.window_ms).saturating_add(self.sent.slot_ms());
        self.sent.frees(short.ceil() as u64, 0, now).unwrap_or(whole_window).max(now + 1)
    }
}
