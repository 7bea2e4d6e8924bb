//! The wiring: sockets are bound, workers and the acceptor get their threads, the calling thread serves operators,
//! checks health and waits for the end.

use super::{App, Configured};
use crate::flags::Provider;
use crate::hub::{self, Ask, Asks, Delivery};
use crate::net::{Dealer, deal};
use crate::upstream::Connector;
use crate::worker::{Order, Phase, Worker};
use crate::{checker, flags, metrics, operator, pages, reload};
use anyhow::Context;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;
use telemetry::operator::listen;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, channel, unbounded_channel};
use tokio::task::LocalSet;

/// What the hub may have for a worker at a time; then it waits, and reads nothing from providers.
const DELIVERIES: usize = 256;

/// Where the process listens.
pub(crate) struct Bound {
    clients: std::net::TcpListener,
    operators: Option<std::net::TcpListener>,
}

impl Bound {
    pub(crate) fn bind(settings: &config::Settings) -> anyhow::Result<Bound> {
        let clients = listen(settings.server_port).context("SERVER_PORT")?;
        let operators = match settings.metrics_enabled {
            true => Some(listen(settings.metrics_port).context("METRICS_PORT")?),
            false => None,
        };
        Ok(Bound { clients, operators })
    }

    /// The port for clients.
    pub(crate) fn port(&self) -> u16 {
        self.clients.local_addr().map_or(0, |addr| addr.port())
    }

    /// The port for operators, if there is one.
    pub(crate) fn operators_port(&self) -> Option<u16> {
        self.operators.as_ref()?.local_addr().ok().map(|addr| addr.port())
    }
}

/// Runs until SIGTERM or SIGINT; everything in flight is finished within the settings' time.
pub(crate) fn run(
    configured: Configured,
    flags: Provider,
    bound: Bound,
    env: config::Env,
    registry: telemetry::registry::Registry,
) -> anyhow::Result<()> {
    let threads = configured.settings.worker_threads.unwrap_or_else(processors);
    // One more than serve connections: the hub's.
    let (dealers, inboxes): (Vec<Dealer>, Vec<Inbox>) = (0..=threads).map(|_| desk()).unzip();
    let (hub, asks) = unbounded_channel();
    let app = Arc::new(App::new(configured, dealers, Asks::new(hub), registry.histograms().clone()));
    let connector = Connector::new();
    let workers = spawn_workers(&app, inboxes, asks, &connector)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let ended = local.block_on(&runtime, control(Arc::clone(&app), flags, bound, connector, env, registry));
    app.enter(Phase::Draining);
    let unfinished = join_within(workers, app.settings.shutdown_timeout, &app);
    if let Some(valkey) = &app.valkey {
        // Only now is nothing dispatched any more.
        local.block_on(&runtime, async {
            app.limits.goodbye().await;
            valkey.goodbye(&app.memory).await;
        });
    }
    if unfinished > 0 {
        tracing::warn!(connections = unfinished, "still open after SHUTDOWN_TIMEOUT");
    }
    tracing::info!("stopped");
    ended
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// What comes to a worker.
struct Inbox {
    orders: UnboundedReceiver<Order>,
    deliveries: Receiver<Delivery>,
}

fn desk() -> (Dealer, Inbox) {
    let (orders, ordered) = unbounded_channel();
    let (deliveries, delivered) = channel(DELIVERIES);
    let dealer = Dealer { orders, deliveries, connections: Arc::new(AtomicUsize::new(0)) };
    (dealer, Inbox { orders: ordered, deliveries: delivered })
}

/// The last worker is the hub's: it has no clients, but makes calls as the others do.
fn spawn_workers(
    app: &Arc<App>,
    inboxes: Vec<Inbox>,
    asks: UnboundedReceiver<Ask>,
    connector: &Connector,
) -> anyhow::Result<Vec<std::thread::JoinHandle<()>>> {
    let (last, mut asks) = (inboxes.len() - 1, Some(asks));
    let spawn = |(index, inbox): (u16, Inbox)| {
        let (app, connector) = (Arc::clone(app), connector.clone());
        let asks = if usize::from(index) == last { asks.take() } else { None };
        let name = if asks.is_some() { "hub".to_owned() } else { format!("worker-{index}") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let work = move || {
            let phases = app.phases();
            let router = pages::router(&app);
            let worker = Worker::new(app, index, connector, router);
            let local = LocalSet::new();
            if let Some(asks) = asks {
                local.spawn_local(hub::run(Rc::clone(&worker), asks));
            }
            // A task of its own: the future that is blocked on is polled whenever any task was woken. It is there to be woken
            // once, and asks the task for nothing before that has ended.
            let mut run = local.spawn_local(worker.run(inbox.orders, inbox.deliveries, phases));
            let mut waits = false;
            let ended = poll_fn(|cx| match std::mem::replace(&mut waits, true) && !run.is_finished() {
                true => Poll::Pending,
                false => Pin::new(&mut run).poll(cx),
            });
            if let Err(failure) = local.block_on(&runtime, ended) {
                std::panic::resume_unwind(failure.into_panic());
            }
        };
        Ok(std::thread::Builder::new().name(name).spawn(work)?)
    };
    (0u16..).zip(inboxes).map(spawn).collect()
}

/// Everything that is not a client's request.
async fn control(
    app: Arc<App>,
    flags: Provider,
    bound: Bound,
    connector: Connector,
    env: config::Env,
    registry: telemetry::registry::Registry,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let addr = bound.clients.local_addr()?;
    let metrics_addr = bound.operators.as_ref().and_then(|listener| listener.local_addr().ok());
    let sharing = tokio::task::spawn_local(share(Arc::clone(&app)));
    // Caps that are in force come before the first client.
    let mut flags = flags::follow(Arc::clone(&app), flags.open(&app, &connector)?).await;
    let acceptor = Acceptor::start(bound.clients, app.workers[..app.workers.len() - 1].to_vec())?;
    if let Some(listener) = bound.operators {
        let listener = TcpListener::from_std(listener)?;
        let routes = operator::routes(Arc::clone(&app), registry);
        tokio::task::spawn_local(async move { axum::serve(listener, routes).await });
    }
    let metrics_addr = metrics_addr.map(|addr| addr.to_string()).unwrap_or_default();
    tracing::info!(%addr, metrics_addr, version = env!("CARGO_PKG_VERSION"), "listening");
    let readiness = tokio::task::spawn_local(checker::follow(Arc::clone(&app), connector.clone()));
    let health = tokio::task::spawn_local(prober::run(Arc::clone(&app), connector, duty(&app.settings)));
    let reloads = tokio::task::spawn_local(reload::run(Arc::clone(&app), env));
    let upkeep = tokio::task::spawn_local(metrics::upkeep(Arc::clone(&app)));
    let ended = tokio::select! {
        _ = terminate.recv() => Ok("SIGTERM"),
        _ = interrupt.recv() => Ok("SIGINT"),
        ended = health => Err(anyhow::anyhow!("the health checks ended: {ended:?}")),
        ended = readiness => Err(anyhow::anyhow!("the watch over readiness ended: {ended:?}")),
        ended = reloads => Err(anyhow::anyhow!("the reloader ended: {ended:?}")),
        ended = sharing => Err(anyhow::anyhow!("the shared store's task ended: {ended:?}")),
        ended = &mut flags.task => Err(anyhow::anyhow!("reading flags ended: {ended:?}")),
        ended = upkeep => Err(anyhow::anyhow!("the metrics' upkeep ended: {ended:?}")),
    };
    if let Ok(signal) = &ended {
        tracing::info!(signal, delay = ?app.settings.shutdown_delay, "leaving");
        app.enter(Phase::Leaving);
        tokio::time::sleep(app.settings.shutdown_delay).await;
    }
    acceptor.stop();
    if ended.is_ok() {
        flags.stop().await;
    }
    ended.map(drop)
}

/// Whether this process checks health: alone it does, and else whoever is elected, among the proxies where there is no
/// separate checker.
fn duty(settings: &config::Settings) -> prober::Duty {
    match settings.store_backend {
        config::StoreBackend::Memory => prober::Duty::Always,
        config::StoreBackend::Valkey if settings.checks_inside() => prober::Duty::Elected,
        config::StoreBackend::Valkey => prober::Duty::Never,
    }
}

/// Keeps what this process knows in step with other processes, if it shares anything.
async fn share(app: Arc<App>) {
    match &app.valkey {
        Some(valkey) => {
            let learn = |news| prober::learn(&*app, news);
            tokio::select! {
                () = valkey.run(&app.memory, || app.parks_changed(), learn) => {}
                () = app.limits.run() => {}
            }
        }
        None => std::future::pending().await,
    }
}

/// The thread that accepts.
struct Acceptor {
    stop: tokio::sync::oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Acceptor {
    fn start(listener: std::net::TcpListener, workers: Vec<Dealer>) -> anyhow::Result<Acceptor> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let accept = async move {
            match TcpListener::from_std(listener) {
                Ok(listener) => tokio::select! {
                    () = deal(listener, workers) => {}
                    _ = stopped => {}
                },
                Err(error) => tracing::error!(%error, "listening for clients"),
            }
        };
        let thread =
            std::thread::Builder::new().name("accept".into()).spawn(move || runtime.block_on(accept))?;
        Ok(Acceptor { stop, thread })
    }

    fn stop(self) {
        // A thread that ended by itself has nobody to hear this.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Waits until the workers have finished their connections, at most `patience`; how many connections are left.
fn join_within(workers: Vec<std::thread::JoinHandle<()>>, patience: Duration, app: &App) -> usize {
    let deadline = std::time::Instant::now() + patience;
    let open = || app.workers.iter().map(|worker| worker.connections.load(Relaxed)).sum::<usize>();
    while open() > 0 && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    let left = open();
    if left == 0 {
        for worker in &app.workers {
            let _ = worker.orders.send(Order::Stop);
        }
        for worker in workers {
            let _ = worker.join();
        }
    }
    left
}
