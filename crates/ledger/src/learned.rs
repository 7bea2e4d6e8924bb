//! Learned ceilings of one account at work: trailing use per window, what may be admitted, and what is served and
//! refused told to the law. This is the seam of laws: `admit`, `served`, `refused` and a versioned record.
//! How far a ceiling falls or grows is decided in `aimd`.

mod span;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aimd::{Params, Record, Witness};

use crate::portion::Portion;
use crate::ticket::Outstanding;
use crate::{CeilingKind, CeilingView, Cost, Evidence, Lowered, Take, Ticket};
use span::SpanUse;

/// A ceiling that is not known.
const NONE: u64 = u64::MAX;

/// How often use is compared with what was seen before.
const LOOK_MS: u64 = 10;

/// What every request needs comes first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Learned {
    spans: Vec<SpanUse>,
    /// When use was last compared with what was seen before.
    looked_at: AtomicU64,
    /// Before this, a use at or below every span's `known_clean` teaches nothing new.
    clean_until: AtomicU64,
    /// Which part of the ceilings is ours. What the law is told is what all processes see.
    portion: Portion,
    /// When something was last left out.
    left_out_at: AtomicU64,
    /// When the ceilings of the spans must be read from the record again.
    refresh_at: AtomicU64,
    /// Admitted and not sent yet: stands against every span.
    outstanding: Arc<AtomicU64>,
    params: Params,
    record: Mutex<Record>,
}

impl Learned {
    pub(crate) fn new(params: Params, record: Record) -> Self {
        let record = record.or_fresh(&params);
        let learned = Self {
            spans: record.spans.iter().map(|span| SpanUse::new(span.window_ms)).collect(),
            looked_at: AtomicU64::new(u64::MAX),
            clean_until: AtomicU64::new(0),
            portion: Portion::default(),
            left_out_at: AtomicU64::new(0),
            refresh_at: AtomicU64::new(0),
            outstanding: Arc::default(),
            params,
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
            span.probes.add_sent(n, at, span.window_ms);
        }
    }

    fn note_refused(&self, n: u32, at: u64) {
        self.left_out_at.fetch_max(at, Ordering::Relaxed);
        for span in &self.spans {
            span.refused.add_sent(n, at, span.window_ms);
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
        let asked = self.portion.asked_so_far();
        let turned = sent_at >= self.clean_until.load(Ordering::Relaxed);
        if !turned && self.spans.iter().all(|span| span.is_quiet(sent_at, asked)) {
            return;
        }
        self.looked_at.store(sent_at, Ordering::Relaxed);
        let look = |span: &SpanUse| {
            if turned { self.observed(span, sent_at) } else { self.news(span, sent_at, asked) }
        };
        let used: Vec<u64> = self.spans.iter().map(look).collect();
        if turned || used.iter().any(|used| *used > 0) {
            let mut record = self.record();
            record.served(&used, sent_at);
            self.publish(&record, now);
        }
        self.spans.iter().filter(|span| !span.is_quiet(sent_at, asked)).for_each(|span| {
            let until = asked.saturating_add(self.portion.of(span.unheard_of(self.observed(span, now))));
            span.expect_quiet(now, until);
        });
    }

    /// How much of a span is in use, if that is more than was seen before. Use cannot rise by more than what is sent: until
    /// then nobody looks, and with many accounts none of what a look reads is in the cache.
    fn news(&self, span: &SpanUse, sent_at: u64, asked: u64) -> u64 {
        if span.is_quiet(sent_at, asked) {
            return 0;
        }
        let used = self.observed(span, sent_at);
        if used > span.clean() { used } else { 0 }
    }

    /// From now on every use is compared again.
    fn expect_news(&self) {
        self.spans.iter().for_each(SpanUse::expect_news);
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
        // What was asked for begins anew.
        self.expect_news();
        self.portion.wanted(now)
    }

    /// All other processes together want so much.
    pub(crate) fn beside(&self, others: u64, now: u64) {
        if self.portion.beside(others) {
            self.expect_news();
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
            span.know(known.taught());
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends by chance every `step_ms`, and compares what was seen with what was in use.
    fn check(step_ms: usize) {
        let params = Params::default();
        let learned = Learned::new(params, Record::new(&params));
        let mut largest = vec![0; learned.spans.len()];
        let (mut chance, mut slot) = (7_u64, 0);
        // Exact where there is little to see, where a window is well filled one request in 64 and what rounding adds are no news.
        let near = |seen: u64, used: u64| used <= seen + if seen < 64 { 0 } else { seen / 64 + 2 };
        for at in (1_800_000_000_000..).step_by(step_ms).take(20_000) {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let sent = if chance >> 60 == 0 { 9 } else { (chance >> 62) as u32 };
            if sent == 0 {
                continue;
            }
            learned.count(sent, at);
            let used: Vec<u64> = learned.spans.iter().map(|span| learned.observed(span, at)).collect();
            learned.served(at, at + 5);
            let turned = std::mem::replace(&mut slot, at / 300_000) != at / 300_000;
            for ((largest, used), known) in largest.iter_mut().zip(used).zip(&learned.record().spans) {
                *largest = if turned { used } else { used.max(*largest) };
                let seen = known.clean.newest();
                assert!(near(seen, used) && seen <= *largest, "{seen} seen of {used} and {largest} at {at}");
            }
        }
    }

    /// Kills: a look that is left out although use may have risen since, or in the next five minutes, of which nothing is
    /// known, or because another window has no news.
    #[test]
    fn the_largest_use_is_seen_however_seldom_spans_are_looked_at() {
        check(40);
        check(700);
        check(5000);
    }
}
