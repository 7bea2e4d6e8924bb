//! Learned ceilings of one account at work: trailing use per window, what may be admitted, and what is served and
//! refused told to the law. This is the seam of laws: `admit`, `served`, `refused` and a versioned record.
//! How far a ceiling falls or grows is decided in `aimd`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aimd::{Params, Record, Witness};

use crate::portion::Portion;
use crate::ticket::Outstanding;
use crate::{CeilingKind, CeilingView, Cost, Evidence, Lowered, Slots, Take, Ticket, Unit};

/// A ceiling that is not known.
const NONE: u64 = u64::MAX;

/// What is sent counts against a ceiling for so much longer than the window. A provider that counts a rolling window
/// sees requests closer together than they were sent, by what their ways to it differ: refusals would come at a ceiling
/// that is kept, and cut it.
const WAYS_DIFFER_MS: u64 = 50;

/// How often use is compared with what was seen before.
const LOOK_MS: u64 = 10;

#[derive(Debug)]
pub(crate) struct Learned {
    params: Params,
    /// Which part of the ceilings is ours. What the law is told is what all processes see.
    portion: Portion,
    spans: Vec<SpanUse>,
    /// Admitted and not sent yet: stands against every span.
    outstanding: Arc<AtomicU64>,
    /// When the ceilings below must be read from the record again.
    refresh_at: AtomicU64,
    /// Before this, a use at or below every span's `known_clean` teaches nothing new.
    clean_until: AtomicU64,
    /// When something was last left out.
    left_out_at: AtomicU64,
    /// When use was last compared with what was seen before.
    looked_at: AtomicU64,
    record: Mutex<Record>,
}

#[derive(Debug)]
struct SpanUse {
    window_ms: u64,
    sent: Slots,
    /// Use, but no evidence of what the account bears.
    probes: Slots,
    refused: Slots,
    /// Our part of what was learned.
    ceiling: AtomicU64,
    /// What was learned, for all processes together.
    learned: AtomicU64,
    known_clean: AtomicU64,
}

impl Learned {
    pub(crate) fn new(params: Params, record: Record) -> Self {
        let record = record.or_fresh(&params);
        let learned = Self {
            params,
            portion: Portion::default(),
            spans: record.spans.iter().map(|span| SpanUse::new(span.window_ms)).collect(),
            outstanding: Arc::default(),
            refresh_at: AtomicU64::new(0),
            clean_until: AtomicU64::new(0),
            left_out_at: AtomicU64::new(0),
            looked_at: AtomicU64::new(u64::MAX),
            record: Mutex::new(record),
        };
        learned.publish(&learned.record(), 0);
        learned
    }

    /// Room for `cost` as a ticket, if there is room for `ahead` beside it.
    pub(crate) fn take(&self, cost: Cost, ahead: Cost, now: u64) -> Take {
        let largest = self.largest(now);
        if u64::from(cost.requests) > largest {
            return Take::TooBig { largest: largest as u32 };
        }
        match self.admit(cost.requests, ahead.requests, now) {
            Some(room) => Take::Granted(Ticket { outstanding: Some(room), ..Ticket::free(cost) }),
            None => {
                self.portion.asked(cost.requests);
                let first = cost.requests.saturating_add(ahead.requests);
                Take::Dry { again_at: self.when(first, now), kind: CeilingKind::Learned }
            }
        }
    }

    /// Holds room for `n` requests under every span's ceiling, or for none; none also if `leave` more have no room.
    pub(crate) fn admit(&self, n: u32, leave: u32, now: u64) -> Option<Outstanding> {
        self.refresh(now);
        let (room, held) = Outstanding::hold(&self.outstanding, n);
        let held = held.saturating_add(u64::from(leave));
        self.spans.iter().all(|span| span.fits(held, now)).then_some(room)
    }

    /// The smallest ceiling: more at once never fits.
    pub(crate) fn largest(&self, now: u64) -> u64 {
        self.refresh(now);
        self.spans.iter().map(|span| span.ceiling.load(Ordering::Relaxed)).min().unwrap_or(NONE)
    }

    /// What fits now.
    pub(crate) fn left(&self, now: u64) -> u64 {
        self.refresh(now);
        let held = self.outstanding.load(Ordering::Acquire);
        self.spans.iter().map(|span| span.left(held, now)).min().unwrap_or(NONE)
    }

    /// When `n` fit under every ceiling, if nothing else is sent until then.
    pub(crate) fn when(&self, n: u32, now: u64) -> u64 {
        self.refresh(now);
        let held = self.outstanding.load(Ordering::Acquire).saturating_add(u64::from(n));
        let record = self.record();
        let opens = |(span, known): (&SpanUse, &aimd::Span)| {
            let aged = span.frees(held, now);
            let short = span.short_of(held, now);
            let growth = known.next_growth(&self.params, now);
            let grows = known
                .estimate
                .zip(growth)
                .filter(|(e, _)| self.portion.all(short) <= e.step)
                .map_or(NONE, |(_, at)| at);
            if short == 0 { now } else { aged.min(grows) }
        };
        self.spans.iter().zip(&record.spans).map(opens).max().unwrap_or(now)
    }

    /// Counts `n` dispatched at `now`. Room held for them must be freed after this, not before.
    pub(crate) fn count(&self, n: u32, now: u64) {
        self.portion.asked(n);
        for span in &self.spans {
            span.sent.add_sent(n, now);
        }
    }

    /// Notes that `n` of those counted at `at` are probes.
    pub(crate) fn note_probes(&self, n: u32, at: u64) {
        self.left_out_at.fetch_max(at, Ordering::Relaxed);
        for span in &self.spans {
            span.probes.add_sent(n, at);
        }
    }

    fn note_refused(&self, n: u32, at: u64) {
        self.left_out_at.fetch_max(at, Ordering::Relaxed);
        for span in &self.spans {
            span.refused.add_sent(n, at);
        }
    }

    /// A request sent at `sent_at` was served.
    pub(crate) fn served(&self, sent_at: u64, now: u64) {
        // Use is compared with what was seen every 10 ms: a hundredth of the shortest span, and most requests pay
        // for one load.
        let looked_at = self.looked_at.load(Ordering::Relaxed);
        if sent_at >= looked_at && sent_at - looked_at < LOOK_MS {
            return;
        }
        self.looked_at.store(sent_at, Ordering::Relaxed);
        let news = sent_at >= self.clean_until.load(Ordering::Relaxed)
            || self
                .spans
                .iter()
                .any(|span| self.observed(span, sent_at) > span.known_clean.load(Ordering::Relaxed));
        if !news {
            return;
        }
        let used = self.observed_by_span(sent_at);
        let mut record = self.record();
        record.served(&used, sent_at);
        self.publish(&record, now);
    }

    /// A refusal, heard at `now`.
    pub(crate) fn refused(&self, evidence: &Evidence, now: u64) -> Option<Lowered> {
        let witness = evidence.witness();
        if witness != Witness::Probe {
            self.note_refused(evidence.requests, evidence.sent_at);
        }
        let proof = aimd::Evidence {
            sent_at: evidence.sent_at,
            observed: &self.spans.iter().map(|span| self.base(span, evidence.sent_at)).collect::<Vec<_>>(),
            used: &self.used_by_span(evidence.sent_at),
            named_window_ms: evidence.named_window_ms,
            witness,
        };
        let mut record = self.record();
        let decrease = aimd::decrease(&record, &self.params, &proof, now)?;
        record.clone_from(&decrease.record);
        self.publish(&record, now);
        Some(Lowered { window_ms: decrease.window_ms, from: decrease.from, to: decrease.to })
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    /// How much is asked for here: see [`Portion::wanted`].
    pub(crate) fn wanted(&self, now: u64) -> u64 {
        self.portion.wanted(now)
    }

    /// All other processes together want so much.
    pub(crate) fn beside(&self, others: u64, now: u64) {
        if self.portion.beside(others) {
            self.publish(&self.record(), now);
        }
    }

    pub(crate) fn export(&self) -> Record {
        self.record().clone()
    }

    /// Takes over what another replica learned. False if its windows are others: the first estimate froze ours.
    pub(crate) fn adopt(&self, other: &Record, now: u64) -> bool {
        let mut record = self.record();
        let merged = record.merge(other);
        self.publish(&record, now);
        merged
    }

    pub(crate) fn is_gated(&self) -> bool {
        self.spans.iter().any(|span| span.ceiling.load(Ordering::Relaxed) != NONE)
    }

    pub(crate) fn views(&self, now: u64) -> Vec<CeilingView> {
        self.refresh(now);
        self.spans.iter().filter_map(|span| span.view(&self.portion, now)).collect()
    }

    fn observed_by_span(&self, at: u64) -> Vec<u64> {
        self.spans.iter().map(|span| self.observed(span, at)).collect()
    }

    fn used_by_span(&self, at: u64) -> Vec<u64> {
        self.spans.iter().map(|span| self.portion.all(span.used(at))).collect()
    }

    /// What all processes used, as far as that can be told from what was used here.
    fn observed(&self, span: &SpanUse, at: u64) -> u64 {
        let recently = self.left_out_at.load(Ordering::Relaxed).saturating_add(span.window_ms) >= at;
        if !recently {
            return self.portion.all(span.sent.within(at));
        }
        self.portion.all(span.used(at).saturating_sub(span.refused.within(at)))
    }

    /// What a ceiling is cut from. Where there is one it bounds this, and slots are given the benefit of one request:
    /// ten that are counted as nine would become four.
    fn base(&self, span: &SpanUse, at: u64) -> u64 {
        let observed = self.observed(span, at);
        if span.ceiling.load(Ordering::Relaxed) == NONE {
            return observed;
        }
        self.portion.all(span.touched(at)).min(observed.saturating_add(1))
    }

    fn refresh(&self, now: u64) {
        if now >= self.refresh_at.load(Ordering::Relaxed) {
            self.publish(&self.record(), now);
        }
    }

    /// Copies out of the record what the hot path reads. The lock is held, so the last change wins.
    fn publish(&self, record: &Record, now: u64) {
        for (span, known) in self.spans.iter().zip(&record.spans) {
            let learned = known.ceiling(&self.params, now);
            span.learned.store(learned.unwrap_or(NONE), Ordering::Relaxed);
            span.ceiling.store(learned.map_or(NONE, |all| self.portion.of(all)), Ordering::Relaxed);
            span.known_clean.store(known.taught(), Ordering::Relaxed);
        }
        let growth = record.spans.iter().filter_map(|span| span.next_growth(&self.params, now)).min();
        self.refresh_at.store(growth.unwrap_or(u64::MAX), Ordering::Relaxed);
        let until = record.spans.iter().map(|span| span.clean.slot_ends()).min();
        self.clean_until.store(until.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpanUse {
    fn new(window_ms: u64) -> Self {
        Self {
            window_ms,
            sent: Slots::tenths_of(window_ms),
            probes: Slots::tenths_of(window_ms),
            refused: Slots::tenths_of(window_ms),
            ceiling: AtomicU64::new(NONE),
            learned: AtomicU64::new(NONE),
            known_clean: AtomicU64::new(0),
        }
    }

    /// What the provider has seen at most in the window before `at`, probes and refused requests left out.
    fn touched(&self, at: u64) -> u64 {
        self.sent.touched(at).saturating_sub(self.probes.touched(at) + self.refused.touched(at))
    }

    /// Trailing use at `at`, probes left out.
    fn used(&self, at: u64) -> u64 {
        self.sent.within(at).saturating_sub(self.probes.within(at))
    }

    /// What stands against the ceiling at `now`.
    fn taken(&self, now: u64) -> u64 {
        self.sent.within_and(WAYS_DIFFER_MS, now)
    }

    fn fits(&self, held: u64, now: u64) -> bool {
        let ceiling = self.ceiling.load(Ordering::Relaxed);
        ceiling == NONE || self.taken(now).saturating_add(held) <= ceiling
    }

    fn left(&self, held: u64, now: u64) -> u64 {
        let ceiling = self.ceiling.load(Ordering::Relaxed);
        if ceiling == NONE { NONE } else { ceiling.saturating_sub(self.taken(now).saturating_add(held)) }
    }

    /// By how much `held` on top of what is in use exceeds the ceiling.
    fn short_of(&self, held: u64, now: u64) -> u64 {
        self.taken(now).saturating_add(held).saturating_sub(self.ceiling.load(Ordering::Relaxed))
    }

    /// When enough has aged for `held` to fit. What is held and not sent yet will be in use for a window from
    /// about now.
    fn frees(&self, held: u64, now: u64) -> u64 {
        let whole_window = now.saturating_add(self.window_ms).saturating_add(self.sent.slot_ms());
        self.sent.frees(self.short_of(held, now), WAYS_DIFFER_MS, now).unwrap_or(whole_window)
    }

    fn view(&self, portion: &Portion, now: u64) -> Option<CeilingView> {
        let limit = self.learned.load(Ordering::Relaxed);
        (limit != NONE).then(|| CeilingView {
            window_ms: self.window_ms,
            unit: Unit::Requests,
            limit,
            kind: CeilingKind::Learned,
            used: portion.all(self.sent.within(now)),
        })
    }
}
