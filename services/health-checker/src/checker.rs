//! The running checker: what its tasks share, and how they are started and stopped.

use crate::{pages, reload};
use anyhow::Context;
use arc_swap::ArcSwap;
use config::Settings;
use fleet::Fleet;
use fleet::gates::Gates;
use prober::Duty;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use store::{Memory, Valkey};
use telemetry::histograms::Histograms;
use telemetry::operator::listen;
use telemetry::registry::Registry;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::LocalSet;
use upstream::Connector;

/// How often accounts that are gone are forgotten.
const UPKEEP: Duration = Duration::from_secs(5);
/// At the end the store has this long to hear that somebody else may check.
const GOODBYE: Duration = Duration::from_secs(1);

/// What all tasks share.
pub(crate) struct Checker {
    pub(crate) settings: Settings,
    pub(crate) fleet: ArcSwap<Fleet>,
    pub(crate) gates: Gates,
    pub(crate) memory: Memory,
    valkey: Valkey,
    histograms: Histograms,
    /// When checks were last known to go on, here or elsewhere; 0: never. Unix milliseconds.
    checked_at: AtomicU64,
    leaving: AtomicBool,
    wake: Notify,
}

impl Checker {
    pub(crate) fn new(
        settings: Settings,
        fleet: Fleet,
        gates: Gates,
        memory: Memory,
        valkey: Valkey,
        histograms: Histograms,
    ) -> Arc<Checker> {
        Arc::new(Checker {
            settings,
            fleet: ArcSwap::from_pointee(fleet),
            gates,
            memory,
            valkey,
            histograms,
            checked_at: AtomicU64::new(0),
            leaving: AtomicBool::new(false),
            wake: Notify::new(),
        })
    }

    /// When checks were last known to go on; `None`: not yet.
    pub(crate) fn unchecked_for_ms(&self) -> Option<u64> {
        let at = self.checked_at.load(Relaxed);
        (at > 0).then(|| fleet::clock::unix_ms().saturating_sub(at))
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Relaxed)
    }

    pub(crate) fn shared(&self) -> &Valkey {
        &self.valkey
    }
}

impl prober::Host for Checker {
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
        Some(&self.valkey)
    }

    fn wake(&self) {
        self.wake.notify_one();
        self.valkey.stir();
    }

    fn woken(&self) -> impl Future<Output = ()> {
        self.wake.notified()
    }

    fn checked(&self) {
        self.checked_at.store(fleet::clock::unix_ms(), Relaxed);
    }
}

/// Runs until SIGTERM or SIGINT; then another instance may begin at once.
pub(crate) fn run(checker: &Arc<Checker>, env: config::Env, registry: Registry) -> anyhow::Result<()> {
    let pages = listen(checker.settings.health_checker_server_port).context("HEALTH_CHECKER_SERVER_PORT")?;
    let operators = match checker.settings.metrics_enabled {
        true => Some(listen(checker.settings.metrics_port).context("METRICS_PORT")?),
        false => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let ended = local.block_on(&runtime, control(Arc::clone(checker), pages, operators, env, registry));
    local.block_on(&runtime, goodbye(checker));
    tracing::info!("stopped");
    ended
}

async fn control(
    checker: Arc<Checker>,
    pages: std::net::TcpListener,
    operators: Option<std::net::TcpListener>,
    env: config::Env,
    registry: Registry,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let addr = pages.local_addr()?;
    let metrics_addr = operators.as_ref().and_then(|listener| listener.local_addr().ok());
    serve(pages, pages::routes(Arc::clone(&checker)))?;
    if let Some(listener) = operators {
        serve(listener, pages::operator(Arc::clone(&checker), registry.clone()))?;
    }
    let metrics_addr = metrics_addr.map(|addr| addr.to_string()).unwrap_or_default();
    tracing::info!(%addr, metrics_addr, version = env!("CARGO_PKG_VERSION"), "listening");
    let checks = tokio::task::spawn_local(prober::run(Arc::clone(&checker), Connector::new(), Duty::Elected));
    let sharing = tokio::task::spawn_local(share(Arc::clone(&checker)));
    let reloads = tokio::task::spawn_local(reload::run(Arc::clone(&checker), env));
    let upkeep = tokio::task::spawn_local(upkeep(Arc::clone(&checker)));
    let ended = tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
        ended = checks => Err(anyhow::anyhow!("the checks ended: {ended:?}")),
        ended = sharing => Err(anyhow::anyhow!("the shared store's task ended: {ended:?}")),
        ended = reloads => Err(anyhow::anyhow!("the reloader ended: {ended:?}")),
        ended = upkeep => Err(anyhow::anyhow!("the upkeep ended: {ended:?}")),
    };
    if let Ok(signal) = &ended {
        tracing::info!(signal, delay = ?checker.settings.shutdown_delay, "leaving");
        checker.leaving.store(true, Relaxed);
        tokio::time::sleep(checker.settings.shutdown_delay).await;
    }
    ended.map(drop)
}

fn serve(listener: std::net::TcpListener, routes: axum::Router) -> anyhow::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    tokio::task::spawn_local(async move { axum::serve(listener, routes).await });
    Ok(())
}

async fn share(checker: Arc<Checker>) {
    let changed = || checker.wake.notify_one();
    let learn = |news| prober::learn(&*checker, news);
    checker.valkey.run(&checker.memory, changed, learn).await;
}

/// Forgets accounts that are gone.
async fn upkeep(checker: Arc<Checker>) {
    prober::metrics::of_build(env!("CARGO_PKG_VERSION"));
    let mut tick = tokio::time::interval(UPKEEP);
    loop {
        tick.tick().await;
        checker.memory.tidy();
    }
}

async fn goodbye(checker: &Checker) {
    let farewell = async {
        checker.valkey.release_checks().await;
        checker.valkey.goodbye(&checker.memory).await;
    };
    // Unheard, the lease ends by itself.
    let _ = tokio::time::timeout(GOODBYE, farewell).await;
}
