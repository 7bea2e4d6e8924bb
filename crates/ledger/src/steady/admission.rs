//! Whether one more request goes out under a level and its pace, and when again. It changes nothing but the pace's bucket
//! and the notes of what was turned away.

use std::sync::atomic::Ordering::Relaxed;

use aimd::steady::{Pace, Paced};

use super::Steady;
use crate::ticket::Outstanding;
use crate::{CeilingKind, Cost, Take, Ticket};

/// Where the window gates and not the pace, no more than this is left in the bucket, or a sixty-fourth of the level: what
/// leaves the window together would come back together.
const KEPT: (f64, f64) = (3.0, 64.0);
/// Bursts are clipped where the pace stops requests although so little of the level is in use.
const CLIPPED: f64 = 0.97;

impl Steady {
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
    pub(super) fn drain(&self, tokens: f64, now: u64) {
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
