//! What one worker owns: its runtime's connections, its counts, its stories. Nothing here is shared between
//! threads but the application behind it.

use crate::app::App;
use crate::fleet::Fleet;
use crate::front::Front;
use crate::hub::Delivery;
use crate::line::Lines;
use crate::metrics::Metrics;
use crate::net::{Peers, Purse, Told};
use crate::rpc;
use crate::socket::Sockets;
use crate::upstream::{Connector, Hushed, LocalExecutor, Pools};
use crate::why::{Glimpse, RequestId, Ring, Story, tell};
use http::HeaderMap;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::{oneshot, watch};

/// How often counts are folded and idle connections closed.
const FOLD: Duration = Duration::from_secs(1);

/// What others ask of a worker.
pub(crate) enum Order {
    /// Serve this connection.
    Serve(std::net::TcpStream),
    /// Fold the counts now, for a scrape; the answer is the requests in flight.
    Fold(oneshot::Sender<i64>),
    /// Tell what happened to a request.
    Tell(RequestId, oneshot::Sender<Option<Story>>),
    /// Tell which requests were retried, refused or failed lately.
    Recent(oneshot::Sender<Vec<Glimpse>>),
    /// Fold the last counts and end.
    Stop,
}

/// How far the process is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Serving,
    /// Not ready any more; answers say `Connection: close`.
    Leaving,
    /// No new requests on kept-alive connections; those in flight are finished.
    Draining,
}

/// The fleet as one worker sees it: its requests share it without touching a count that other workers touch.
pub(crate) struct View(Arc<Fleet>);

impl std::ops::Deref for View {
    type Target = Fleet;

    fn deref(&self) -> &Fleet {
        &self.0
    }
}

pub(crate) struct Worker {
    pub(crate) app: Arc<App>,
    pub(crate) pools: Pools,
    /// To endpoints that have only a WebSocket.
    pub(crate) lines: Lines,
    connector: Connector,
    peers: Peers,
    pub(crate) metrics: Metrics,
    pub(crate) rng: RefCell<SmallRng>,
    pub(crate) stories: RefCell<Ring>,
    /// Open WebSockets of clients.
    pub(crate) sockets: Sockets,
    index: u16,
    fleet: RefCell<Rc<View>>,
    requests: Cell<u64>,
    /// How connections of clients are served; all of them read it here.
    server: auto::Builder<LocalExecutor>,
    /// What heads of answers on chain routes are made from.
    pub(crate) answer_head: HeaderMap,
    /// What all requests together may hold of their bodies.
    pub(crate) bodies: Purse,
    /// Everything that is not a JSON-RPC request.
    pub(crate) router: axum::Router,
}

impl Worker {
    pub(crate) fn new(app: Arc<App>, index: u16, connector: Connector, router: axum::Router) -> Rc<Worker> {
        let fleet = RefCell::new(Rc::new(View(app.fleet.load_full())));
        let (ping, patience) = (app.settings.ws_ping_interval, app.settings.proxy_timeout_per_try);
        let metrics = Metrics::new(app.histograms.clone());
        let (answer_head, bodies) = (rpc::answer_head(&app.cors), Purse::of(&app.bodies));
        Rc::new(Worker {
            app,
            pools: Pools::new(connector.clone()),
            lines: Lines::new(connector.clone(), ping, patience),
            connector,
            peers: Peers::new(Instant::now()),
            metrics,
            rng: RefCell::new(SmallRng::from_os_rng()),
            stories: RefCell::default(),
            sockets: Sockets::default(),
            index,
            fleet,
            requests: Cell::new(0),
            server: server(),
            answer_head,
            bodies,
            router,
        })
    }

    /// The fleet as it is now. A request reads it once.
    pub(crate) fn fleet(&self) -> Rc<View> {
        let current = self.app.fleet.load();
        let mut known = self.fleet.borrow_mut();
        if !Arc::ptr_eq(&current, &known.0) {
            *known = Rc::new(View(Arc::clone(&current)));
        }
        Rc::clone(&known)
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    /// The next request's number.
    pub(crate) fn next_id(&self) -> RequestId {
        self.requests.set(self.requests.get() + 1);
        RequestId { process: self.app.process, worker: self.index, count: self.requests.get() }
    }

    /// Carries out orders until told to stop.
    pub(crate) async fn run(
        self: Rc<Worker>,
        mut orders: UnboundedReceiver<Order>,
        mut deliveries: Receiver<Delivery>,
        phase: watch::Receiver<Phase>,
    ) {
        let mut fold = tokio::time::interval(FOLD);
        let mut draining = pin!(drained(phase));
        let mut serving = true;
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Stop) | None => break,
                    Some(order) => self.carry_out(order),
                },
                Some(delivery) = deliveries.recv() => self.sockets.deliver(&self, &delivery),
                () = &mut draining, if serving => {
                    serving = false;
                    self.peers.leave();
                    self.sockets.leave();
                }
                _ = fold.tick() => self.tidy(),
            }
        }
        self.metrics.fold(&self.app.fleet.load());
    }

    fn carry_out(self: &Rc<Worker>, order: Order) {
        match order {
            Order::Serve(stream) => match adopt(stream) {
                Ok(stream) => {
                    tokio::task::spawn_local(Rc::clone(self).serve(stream));
                }
                Err(error) => {
                    tracing::debug!(%error, "taking over a connection");
                    self.connection_ended();
                }
            },
            // A scraper that went away misses nothing: what was folded is in the registry.
            Order::Fold(reply) => drop(reply.send(self.metrics.fold(&self.app.fleet.load()))),
            Order::Tell(id, reply) => {
                let stories = self.stories.borrow();
                let fleet = self.app.fleet.load();
                let story = stories.find(id).map(|record| tell(record, &self.metrics, &fleet));
                drop(reply.send(story));
            }
            Order::Recent(reply) => {
                let recent = self.stories.borrow().recent(|number| self.metrics.chain_name(number));
                drop(reply.send(recent));
            }
            Order::Stop => {}
        }
    }

    fn tidy(&self) {
        self.metrics.fold(&self.app.fleet.load());
        let (fleet, now) = (self.fleet(), Instant::now());
        self.peers.look(now);
        self.pools.tidy(now, |number| fleet.has_endpoint(number));
        self.lines.tidy(now, |number| fleet.has_endpoint(number));
    }

    async fn serve(self: Rc<Worker>, stream: TcpStream) {
        // A peer that is gone already asks nothing any more.
        let ip = stream.peer_addr().map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.ip());
        let peer = self.peers.begin(ip);
        let front = Front::new(Rc::clone(&self), Rc::clone(&peer));
        let mut connection = pin!(self.server.serve_connection_with_upgrades(TokioIo::new(stream), front));
        let (hushed, mut finishing) = (Hushed::default(), false);
        let ended = poll_fn(|cx| {
            match peer.told(cx.waker()) {
                Told::End => return Poll::Ready(Ok(())),
                Told::Finish if !std::mem::replace(&mut finishing, true) => {
                    connection.as_mut().graceful_shutdown();
                }
                Told::Nothing | Told::Finish => {}
            }
            hushed.poll(connection.as_mut(), cx)
        });
        if let Err(error) = ended.await {
            tracing::debug!(%error, "client connection ended");
        }
        self.connection_ended();
    }

    /// A connection that goes on when the server of its HTTP is done with it.
    pub(crate) fn connection_begun(&self) {
        self.app.workers[usize::from(self.index)].connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn connection_ended(&self) {
        self.app.workers[usize::from(self.index)].connections.fetch_sub(1, Relaxed);
    }
}

fn server() -> auto::Builder<LocalExecutor> {
    let mut server = auto::Builder::new(LocalExecutor);
    // How long a head may take is for `Peers` to say.
    server.http1().header_read_timeout(None).max_buf_size(64 * 1024);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    server
}

/// Waits until the process finishes what is in flight.
async fn drained(mut phase: watch::Receiver<Phase>) {
    // Without a sender there is no process left to drain.
    let _ = phase.wait_for(|phase| *phase == Phase::Draining).await;
}

fn adopt(stream: std::net::TcpStream) -> std::io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    TcpStream::from_std(stream)
}
