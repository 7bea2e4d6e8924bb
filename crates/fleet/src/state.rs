//! What one process knows of an endpoint beside its configuration: health, use in flight, newest block, latency.
//!
//! Requests read atomics; the trackers behind them are locked only when something changes. Of a candidate that is not
//! chosen a request reads one cache line here: with thousands of endpoints each line that it reads is a miss.

mod latency;

use detect::Verdict;
use health::{Change, Rank, Report, Rules, Standing, Tracker, View};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use latency::Latency;

/// Published ranks; what has none is excluded.
const EXCLUDED: u8 = u8::MAX;

#[derive(Debug)]
#[repr(C, align(64))]
pub struct EndpointState {
    in_flight: AtomicU32,
    latency: Latency,
    block: AtomicU64,
    /// Unix milliseconds from which the rank is another one although nothing happened.
    rank_until: AtomicU64,
    /// Unix milliseconds from which a half-open trial may run; 0: none.
    trial_due: AtomicU64,
    rank: AtomicU8,
    /// Ejected, or failures in a row: successes have something to undo.
    troubled: AtomicBool,
    /// It has only a WebSocket: what happens there is what calls meet.
    calls_over_ws: bool,
    /// Its key was refused and no probe has confirmed that yet.
    key_suspect: AtomicBool,
    away: AtomicBool,
    /// Calls ejected it, and others were not told yet.
    ejected_here: AtomicBool,
    /// Others ejected it, and no probe was sent because of that yet.
    warned: AtomicBool,
    last_verdict: AtomicU8,
    failed_at: AtomicU64,
    hit_at: AtomicU64,
    http: Mutex<Tracker>,
    ws: Mutex<Tracker>,
}

/// An attempt in flight. Dropped with the answer's body.
#[derive(Debug)]
pub struct Mark {
    state: Arc<EndpointState>,
    begun: u64,
}

impl Mark {
    /// The upstream died after the client had seen the first byte.
    pub fn broke_off(&self) {
        self.state.failed(self.begun, crate::clock::unix_ms());
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.state.in_flight.fetch_sub(1, Relaxed);
    }
}

impl EndpointState {
    /// `calls_over_ws`: calls have no other way to it.
    pub fn new(rules: Rules, calls_over_ws: bool) -> EndpointState {
        let state = EndpointState {
            in_flight: AtomicU32::new(0),
            latency: Latency::default(),
            block: AtomicU64::new(0),
            rank_until: AtomicU64::new(0),
            trial_due: AtomicU64::new(0),
            rank: AtomicU8::new(0),
            troubled: AtomicBool::new(false),
            calls_over_ws,
            key_suspect: AtomicBool::new(false),
            // A newcomer starts level with its tier, as who comes back does.
            away: AtomicBool::new(true),
            ejected_here: AtomicBool::new(false),
            warned: AtomicBool::new(false),
            last_verdict: AtomicU8::new(u8::MAX),
            failed_at: AtomicU64::new(0),
            hit_at: AtomicU64::new(0),
            http: Mutex::new(Tracker::new(rules)),
            ws: Mutex::new(Tracker::new(rules)),
        };
        state.publish(&state.tracker(), 0);
        state
    }

    /// Marks an attempt in flight.
    pub fn enter(self: &Arc<Self>, now: u64) -> Mark {
        self.in_flight.fetch_add(1, Relaxed);
        Mark { state: Arc::clone(self), begun: now }
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Relaxed)
    }

    /// Its place among the endpoints of its tier, smaller first; `None`: it is out of service.
    pub fn rank(&self, now: u64) -> Option<u8> {
        if now >= self.rank_until.load(Relaxed) {
            self.publish(&self.tracker(), now);
        }
        Some(self.rank.load(Relaxed)).filter(|rank| *rank != EXCLUDED)
    }

    /// Takes the half-open trial that is due, if there is one and nobody else has.
    pub fn claim_trial(&self, now: u64) -> bool {
        let due = self.trial_due.load(Relaxed);
        if due == 0 || due > now {
            return false;
        }
        let mut tracker = self.tracker();
        let taken = tracker.take_trial(now);
        self.publish(&tracker, now);
        taken
    }

    /// A call begun at `begun` was answered.
    pub fn served(&self, begun: u64, now: u64, took: Duration) -> Option<Change> {
        self.latency.sample(took);
        if !self.troubled.load(Relaxed) {
            return None;
        }
        let mut tracker = self.tracker();
        let change = tracker.served(begun, now);
        self.troubled.store(tracker.view(now).trial_due.is_some(), Relaxed);
        self.publish(&tracker, now);
        change
    }

    /// A call begun at `begun` failed and the endpoint is to blame.
    pub fn failed(&self, begun: u64, now: u64) -> Option<Change> {
        let mut tracker = self.tracker();
        let change = tracker.failed(begun, now);
        self.troubled.store(true, Relaxed);
        self.publish(&tracker, now);
        drop(tracker);
        if change.is_some() {
            self.ejected_here.store(true, Relaxed);
            self.leave();
        }
        change
    }

    /// True once after calls ejected it here.
    pub fn take_ejection(&self) -> bool {
        self.ejected_here.swap(false, Relaxed)
    }

    /// Another process ejected it: one failure here is enough for a while, and a probe should look.
    pub fn warned(&self, now: u64) {
        self.tracker().warned(now);
        self.warned.store(true, Relaxed);
    }

    /// True once after another process ejected it.
    pub fn take_warning(&self) -> bool {
        self.warned.swap(false, Relaxed)
    }

    /// Whether calls keep it out of service now.
    pub fn is_ejected(&self) -> bool {
        self.trial_due.load(Relaxed) != 0
    }

    /// A probe over HTTP ended.
    pub fn probed(&self, begun: u64, now: u64, ok: bool) -> Option<Change> {
        let mut tracker = self.tracker();
        let change = tracker.probe_result(begun, now, ok);
        self.publish(&tracker, now);
        drop(tracker);
        if !ok {
            self.leave();
        }
        change
    }

    /// A probe over WebSocket ended.
    pub fn probed_ws(&self, begun: u64, now: u64, ok: bool) -> Option<Change> {
        if self.calls_over_ws {
            self.probed(begun, now, ok);
        }
        self.ws_tracker().probe_result(begun, now, ok)
    }

    /// Another process probed it over HTTP.
    pub fn reported(&self, report: &Report, now: u64) -> Option<Change> {
        let mut tracker = self.tracker();
        let change = tracker.reported(report);
        self.publish(&tracker, now);
        drop(tracker);
        if !report.healthy {
            self.leave();
        }
        change
    }

    /// Another process probed it over WebSocket.
    pub fn reported_ws(&self, report: &Report, now: u64) -> Option<Change> {
        if self.calls_over_ws {
            self.reported(report, now);
        }
        self.ws_tracker().reported(report)
    }

    /// What probes over HTTP make of it, whatever calls say; `None`: not probed yet.
    pub fn probed_view(&self) -> Option<bool> {
        self.tracker().probed()
    }

    /// What probes over WebSocket make of it; `None`: not probed yet.
    pub fn probed_view_ws(&self) -> Option<bool> {
        self.ws_tracker().probed()
    }

    /// A WebSocket to it was opened.
    pub fn served_ws(&self, begun: u64, now: u64) -> Option<Change> {
        self.ws_tracker().served(begun, now)
    }

    /// A WebSocket to it could not be opened, or ended as none should.
    pub fn failed_ws(&self, begun: u64, now: u64) -> Option<Change> {
        self.ws_tracker().failed(begun, now)
    }

    /// Follows other rules from now on.
    pub fn follow(&self, rules: Rules, now: u64) {
        self.ws_tracker().set_rules(rules);
        let mut tracker = self.tracker();
        tracker.set_rules(rules);
        self.publish(&tracker, now);
    }

    pub fn view(&self, now: u64) -> View {
        self.tracker().view(now)
    }

    /// How soon the next probe over HTTP should come.
    pub fn standing(&self) -> Standing {
        self.tracker().standing()
    }

    /// How soon the next probe over WebSocket should come.
    pub fn standing_ws(&self) -> Standing {
        if self.calls_over_ws { self.standing() } else { self.ws_tracker().standing() }
    }

    pub fn view_ws(&self, now: u64) -> View {
        self.ws_tracker().view(now)
    }

    /// When it last failed, Unix milliseconds; 0: never.
    pub fn last_failed(&self) -> u64 {
        self.failed_at.load(Relaxed)
    }

    /// When it was last refused for a limit, Unix milliseconds; 0: never.
    pub fn last_hit(&self) -> u64 {
        self.hit_at.load(Relaxed)
    }

    pub fn hit(&self, now: u64) {
        self.hit_at.store(now, Relaxed);
    }

    /// The newest block it is known to have; 0: none.
    pub fn block(&self) -> u64 {
        self.block.load(Relaxed)
    }

    pub fn saw_block(&self, block: u64) {
        self.block.store(block, Relaxed);
    }

    pub fn suspect_key(&self) {
        self.key_suspect.store(true, Relaxed);
    }

    /// Whether its key was refused on a client's call and no probe has looked since.
    pub fn key_is_suspect(&self) -> bool {
        self.key_suspect.load(Relaxed)
    }

    /// A probe has looked: what it found counts.
    pub fn settle_key_suspicion(&self) {
        self.key_suspect.store(false, Relaxed);
    }

    pub fn said(&self, verdict: Verdict) {
        self.last_verdict.store(verdict as u8, Relaxed);
    }

    pub fn last_verdict(&self) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| *verdict as u8 == self.last_verdict.load(Relaxed))
    }

    /// It gets no requests now: once it is back it must not draw them all.
    pub fn leave(&self) {
        self.away.store(true, Relaxed);
    }

    pub fn is_away(&self) -> bool {
        self.away.load(Relaxed)
    }

    /// It is back; true for the one caller that saw it first.
    pub fn come_back(&self) -> bool {
        self.away.swap(false, Relaxed)
    }

    /// Average latency × attempts in flight, the lower the better.
    pub fn latency_score(&self, in_flight: u32) -> f64 {
        f64::from(self.latency.micros()) * f64::from(in_flight + 1)
    }

    fn publish(&self, tracker: &Tracker, now: u64) {
        let view = tracker.view(now);
        let rank = match view.rank {
            Rank::Good => 0,
            Rank::Unseen => 1,
            Rank::ExpiredBad => 2,
            Rank::Excluded => EXCLUDED,
        };
        self.rank.store(rank, Relaxed);
        self.rank_until.store(tracker.grows_old_at(now).unwrap_or(u64::MAX), Relaxed);
        self.trial_due.store(view.trial_due.unwrap_or(0), Relaxed);
        self.failed_at.store(view.failed_at, Relaxed);
    }

    fn tracker(&self) -> MutexGuard<'_, Tracker> {
        self.http.lock().expect("no holder of this lock can panic")
    }

    fn ws_tracker(&self) -> MutexGuard<'_, Tracker> {
        self.ws.lock().expect("no holder of this lock can panic")
    }
}
