//! What all threads of the process share, and how they are started and stopped.

mod run;

pub(crate) use run::{Bound, run};

use crate::caller::Callers;
use crate::cors::Cors;
use crate::fleet::{self, Fleet};
use crate::gates::Gates;
use crate::hub::Asks;
use crate::net::{Budget, Dealer};
use crate::why::Glimpse;
use crate::worker::{Order, Phase};
use crate::{pages, select};
use arc_swap::{ArcSwap, ArcSwapOption};
use config::Settings;
use health::Readiness;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use store::{ClientLimits, Memory, Turns, Valkey};
use telemetry::histograms::Histograms;
use tokio::sync::{Notify, oneshot, watch};

/// What all requests together may hold of their bodies.
const BODIES: usize = 256 << 20;
/// What all answers together may hold beyond what each may.
const HELD: usize = 64 << 20;
/// What may wait for all clients' sockets together.
const QUEUES: usize = 256 << 20;

/// How many of the requests that did not go straight are shown.
const RECENT: usize = 20;

pub(crate) struct App {
    pub(crate) settings: Settings,
    pub(crate) fleet: ArcSwap<Fleet>,
    pub(crate) gates: Gates,
    pub(crate) selection: select::Policy,
    pub(crate) cors: Cors,
    pub(crate) memory: Memory,
    /// Who may ask; `None`: everybody, without limits.
    pub(crate) callers: ArcSwapOption<Callers>,
    /// What clients have used of their limits.
    pub(crate) limits: Arc<ClientLimits>,
    /// What keeps `memory` in step with other processes, if anything does.
    pub(crate) valkey: Option<Valkey>,
    pub(crate) bodies: Arc<Budget>,
    pub(crate) held: Arc<Budget>,
    pub(crate) queues: Arc<Budget>,
    /// Requests that wait for capacity.
    pub(crate) waiting: AtomicU32,
    /// In which order they came.
    pub(crate) turns: Turns,
    /// Those who serve connections, and last the hub's own.
    pub(crate) workers: Vec<Dealer>,
    /// Where clients' sockets ask for subscriptions.
    pub(crate) hub: Asks,
    pub(crate) histograms: Histograms,
    /// Tells ids of this process from those of others.
    pub(crate) process: u32,
    pub(crate) started: std::time::Instant,
    pub(crate) readiness: Mutex<Readiness>,
    /// When a checker was last known to be at work, here or elsewhere; 0: never. Unix milliseconds.
    checked_at: AtomicU64,
    /// The checker's own word, where `READY_STRICT` has it asked.
    pub(crate) checker_ready: AtomicBool,
    phase: AtomicU8,
    phases: watch::Sender<Phase>,
    health: Notify,
}

impl App {
    pub(crate) fn new(config: Configured, workers: Vec<Dealer>, hub: Asks, histograms: Histograms) -> App {
        let Configured { settings, fleet, gates, memory, callers, limits, valkey } = config;
        let selection = select::Policy {
            selection: settings.selection,
            throttling: settings.capacity_throttling_enabled,
            max_lag: settings.max_block_lag,
        };
        App {
            cors: Cors::new(&settings),
            fleet: ArcSwap::from_pointee(fleet),
            gates,
            selection,
            memory,
            callers: ArcSwapOption::from_pointee(callers),
            limits,
            valkey,
            bodies: Budget::new(BODIES),
            held: Budget::new(HELD),
            queues: Budget::new(QUEUES),
            waiting: AtomicU32::new(0),
            turns: Turns::default(),
            workers,
            hub,
            histograms,
            process: rand::random(),
            started: std::time::Instant::now(),
            readiness: Mutex::new(pages::readiness(&settings)),
            checked_at: AtomicU64::new(0),
            checker_ready: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Serving as u8),
            phases: watch::Sender::new(Phase::Serving),
            health: Notify::new(),
            settings,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::Serving,
            1 => Phase::Leaving,
            _ => Phase::Draining,
        }
    }

    pub(crate) fn phases(&self) -> watch::Receiver<Phase> {
        self.phases.subscribe()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
        self.phases.send_replace(phase);
    }

    /// Something happened that the prober should look at now.
    pub(crate) fn wake_health(&self) {
        self.health.notify_one();
        if let Some(valkey) = &self.valkey {
            valkey.stir();
        }
    }

    /// Others changed what is parked here.
    pub(crate) fn parks_changed(&self) {
        self.health.notify_one();
    }

    /// Whether the shared store answers in time; also if there is none to answer.
    pub(crate) fn store_is_reachable(&self) -> bool {
        self.valkey.as_ref().is_none_or(Valkey::keeps_up) && !self.limits.is_degraded()
    }

    /// Whether a checker is at work: as it says itself, where it is asked, or as its findings show.
    pub(crate) fn is_checked(&self) -> bool {
        if self.asks_checker() {
            return self.checker_ready.load(Relaxed);
        }
        let ago = fleet::clock::unix_ms().saturating_sub(self.checked_at.load(Relaxed));
        ago < fleet::fresh_for_ms(&self.settings)
    }

    /// Whether readiness goes by what the separate checker's `/ready` says, as with the predecessor.
    pub(crate) fn asks_checker(&self) -> bool {
        self.settings.ready_strict && !self.settings.checks_inside()
    }

    /// Has every worker fold its counts; the sum of the requests in flight.
    pub(crate) async fn fold(&self) -> i64 {
        let mut in_flight = 0;
        for worker in &self.workers {
            let (reply, folded) = oneshot::channel();
            if worker.orders.send(Order::Fold(reply)).is_ok() {
                in_flight += folded.await.unwrap_or(0);
            }
        }
        in_flight
    }

    /// The last requests that were retried, refused or failed, the newest first.
    pub(crate) async fn recent(&self) -> Vec<Glimpse> {
        let mut all = Vec::new();
        for worker in &self.workers {
            let (reply, told) = oneshot::channel();
            if worker.orders.send(Order::Recent(reply)).is_ok() {
                all.extend(told.await.unwrap_or_default());
            }
        }
        all.sort_by_key(|one| std::cmp::Reverse(one.started_unix_ms));
        all.truncate(RECENT);
        all
    }
}

impl prober::Host for App {
    fn fleet(&self) -> Arc<Fleet> {
        self.fleet.load_full()
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn histograms(&self) -> &Histograms {
        &self.histograms
    }

    fn valkey(&self) -> Option<&Valkey> {
        self.valkey.as_ref()
    }

    fn wake(&self) {
        self.wake_health();
    }

    fn woken(&self) -> impl Future<Output = ()> {
        self.health.notified()
    }

    fn checked(&self) {
        if self.checked_at.swap(fleet::clock::unix_ms(), Relaxed) == 0 {
            prober::tell_first_checks(&self.fleet.load());
        }
    }
}

/// What a configuration comes to, before anything runs.
pub(crate) struct Configured {
    pub(crate) settings: Settings,
    pub(crate) fleet: Fleet,
    pub(crate) gates: Gates,
    pub(crate) memory: Memory,
    pub(crate) callers: Option<Callers>,
    pub(crate) limits: Arc<ClientLimits>,
    pub(crate) valkey: Option<Valkey>,
}
