//! Use of an account within one of the windows that it is learned on: what was sent, what of it is no evidence, and the
//! ceiling that all of it stands against. What the law is told of it is decided beside.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::NONE;
use crate::portion::Portion;
use crate::{CeilingKind, CeilingView, Slots, Unit};

/// What is sent counts against a ceiling for so much longer than the window. A provider that counts a rolling window
/// sees requests closer together than they were sent, by what their ways to it differ: refusals would come at a ceiling
/// that is kept, and cut it.
const WAYS_DIFFER_MS: u64 = 50;

/// By so much use may rise by rounding alone, where the slots at the end of several windows are counted in part.
const ROUNDED: u64 = 2;

/// A use that is larger by one part in so many is no news: windows are told apart by the square root of their use.
const NO_NEWS: u64 = 64;

/// What says whether a look is due comes first, in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct SpanUse {
    pub(super) window_ms: u64,
    known_clean: AtomicU64,
    /// What is sent from then on is no news until so much was asked for.
    quiet_from: AtomicU64,
    quiet_until: AtomicU64,
    /// Our part of what was learned.
    pub(super) ceiling: AtomicU64,
    /// What was learned, for all processes together.
    pub(super) learned: AtomicU64,
    pub(super) sent: Slots,
    /// Use, but no evidence of what the account bears.
    pub(super) probes: Seldom,
    pub(super) refused: Seldom,
}

/// Slots that many accounts never count in: made when the first one is counted.
#[derive(Debug, Default)]
pub(super) struct Seldom(OnceLock<Box<Slots>>);

impl SpanUse {
    pub(super) fn new(window_ms: u64) -> Self {
        Self {
            window_ms,
            known_clean: AtomicU64::new(0),
            quiet_from: AtomicU64::new(NONE),
            quiet_until: AtomicU64::new(0),
            ceiling: AtomicU64::new(NONE),
            learned: AtomicU64::new(NONE),
            sent: Slots::tenths_of(window_ms),
            probes: Seldom::default(),
            refused: Seldom::default(),
        }
    }

    /// The largest use that is known to be served.
    pub(super) fn clean(&self) -> u64 {
        self.known_clean.load(Ordering::Relaxed)
    }

    /// The largest use that is no news is `clean` now.
    pub(super) fn know(&self, clean: u64) {
        if self.known_clean.swap(clean, Ordering::Relaxed) > clean {
            self.expect_news();
        }
    }

    /// Whether too little was sent since use was last compared to have come above what was seen before.
    pub(super) fn is_quiet(&self, sent_at: u64, asked: u64) -> bool {
        sent_at >= self.quiet_from.load(Ordering::Relaxed)
            && asked <= self.quiet_until.load(Ordering::Relaxed)
    }

    /// What is sent from `now` on is no news until `asked` requests were asked for.
    pub(super) fn expect_quiet(&self, now: u64, asked: u64) {
        self.quiet_until.store(asked, Ordering::Relaxed);
        self.quiet_from.store(now, Ordering::Relaxed);
    }

    pub(super) fn expect_news(&self) {
        self.quiet_from.store(NONE, Ordering::Relaxed);
    }

    /// How many more than `observed` are no news.
    pub(super) fn unheard_of(&self, observed: u64) -> u64 {
        let clean = self.clean();
        clean.saturating_sub(observed).saturating_sub(ROUNDED).max(clean / NO_NEWS)
    }

    /// What the provider has seen at most in the window before `at`, probes and refused requests left out.
    pub(super) fn touched(&self, at: u64) -> u64 {
        self.sent.touched(at).saturating_sub(self.probes.touched(at) + self.refused.touched(at))
    }

    /// Trailing use at `at`, probes left out.
    pub(super) fn used(&self, at: u64) -> u64 {
        self.sent.within(at).saturating_sub(self.probes.within(at))
    }

    /// What stands against the ceiling at `now`.
    fn taken(&self, now: u64) -> u64 {
        self.sent.within_and(WAYS_DIFFER_MS, now)
    }

    pub(super) fn fits(&self, held: u64, now: u64) -> bool {
        let ceiling = self.ceiling.load(Ordering::Relaxed);
        ceiling == NONE || self.taken(now).saturating_add(held) <= ceiling
    }

    pub(super) fn left(&self, held: u64, now: u64) -> u64 {
        let ceiling = self.ceiling.load(Ordering::Relaxed);
        if ceiling == NONE { NONE } else { ceiling.saturating_sub(self.taken(now).saturating_add(held)) }
    }

    /// By how much `held` on top of what is in use exceeds the ceiling.
    pub(super) fn short_of(&self, held: u64, now: u64) -> u64 {
        self.taken(now).saturating_add(held).saturating_sub(self.ceiling.load(Ordering::Relaxed))
    }

    /// When enough has aged for `held` to fit. What is held and not sent yet will be in use for a window from
    /// about now.
    pub(super) fn frees(&self, held: u64, now: u64) -> u64 {
        let whole_window = now.saturating_add(self.window_ms).saturating_add(self.sent.slot_ms());
        self.sent.frees(self.short_of(held, now), WAYS_DIFFER_MS, now).unwrap_or(whole_window)
    }

    pub(super) fn view(&self, portion: &Portion, now: u64) -> Option<CeilingView> {
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

impl Seldom {
    /// As [`Slots::add_sent`], in tenths of `window_ms`.
    pub(super) fn add_sent(&self, n: u32, at: u64, window_ms: u64) {
        self.0.get_or_init(|| Box::new(Slots::tenths_of(window_ms))).add_sent(n, at);
    }

    pub(super) fn within(&self, at: u64) -> u64 {
        self.0.get().map_or(0, |slots| slots.within(at))
    }

    fn touched(&self, at: u64) -> u64 {
        self.0.get().map_or(0, |slots| slots.touched(at))
    }
}
