//! One provider: a listening server, its script, and its memory of what it was asked.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::behaviour::Behaviour;
use crate::chain::Chain;
use crate::limit::{Limit, Meter};
use crate::memory::{Memory, Seen};
use crate::node::{Node, RpcError};
use crate::serve::Server;
use crate::sockets::{Command, Sockets};

/// What a provider is to be.
#[derive(Clone, Debug)]
pub struct Script {
    chain: Arc<Chain>,
    behaviour: Behaviour,
    lag: u64,
    archive: bool,
    seed: u64,
    remembers: usize,
}

impl Script {
    /// A healthy full node of `chain` that remembers the last 100,000 calls.
    #[must_use]
    pub fn new(chain: &Arc<Chain>) -> Self {
        Self {
            chain: Arc::clone(chain),
            behaviour: Behaviour::Healthy,
            lag: 0,
            archive: false,
            seed: 0,
            remembers: 100_000,
        }
    }

    /// Behaves like this.
    #[must_use]
    pub fn behaving(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    /// Is so many blocks behind the chain's head.
    #[must_use]
    pub fn lagging(mut self, blocks: u64) -> Self {
        self.lag = blocks;
        self
    }

    /// Keeps every state.
    #[must_use]
    pub fn archive(mut self) -> Self {
        self.archive = true;
        self
    }

    /// Numbers its filters from here.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Remembers at most so many calls; further ones are only counted.
    #[must_use]
    pub fn remembering(mut self, calls: usize) -> Self {
        self.remembers = calls;
        self
    }
}

/// A running provider on a port of its own, on 127.0.0.1 unless it is told where. Dropped, it stops.
pub struct Provider {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Keeps the port ours while we refuse connections. Never listens.
    _reservation: Socket,
    server: Mutex<Option<Server>>,
}

pub(crate) struct Shared {
    pub(crate) node: Arc<Node>,
    pub(crate) connections: AtomicUsize,
    in_flight: watch::Sender<usize>,
    behaviour: Mutex<Behaviour>,
    pub(crate) memory: Mutex<Memory>,
    pub(crate) sockets: Arc<Sockets>,
}

impl Provider {
    /// Starts a provider on the current runtime.
    ///
    /// # Errors
    /// When no port is to be had.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_at(script, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await
    }

    /// Starts a provider that listens on `address`.
    ///
    /// # Errors
    /// When the port is not to be had.
    pub(crate) async fn start_at(script: Script, address: SocketAddr) -> io::Result<Self> {
        let reservation = bind(address)?;
        let address = reservation.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let shared = Arc::new(Shared {
            node: Arc::new(Node::new(script.chain, script.lag, script.archive, script.seed)),
            connections: AtomicUsize::new(0),
            in_flight: watch::Sender::new(0),
            behaviour: Mutex::new(Behaviour::Healthy),
            memory: Mutex::new(Memory::new(script.remembers)),
            sockets: Arc::default(),
        });
        let provider = Self { shared, address, _reservation: reservation, server: Mutex::new(None) };
        provider.set(script.behaviour).await?;
        Ok(provider)
    }

    /// The address to ask.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The address to open a WebSocket to.
    #[must_use]
    pub fn ws_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// The address as host and port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Behaves differently from the next request on. [`Behaviour::RefuseConnections`] also closes the
    /// connections there are; when this returns, no new one is accepted.
    ///
    /// # Errors
    /// When the port cannot be listened on again.
    pub async fn set(&self, behaviour: Behaviour) -> io::Result<()> {
        let listens = !matches!(behaviour, Behaviour::RefuseConnections);
        *lock(&self.shared.behaviour) = behaviour;
        let running = lock(&self.server).take();
        let server = match (running, listens) {
            (Some(running), true) => Some(running),
            (None, true) => Some(Server::start(self.listen()?, Arc::clone(&self.shared))),
            (Some(running), false) => {
                running.end().await;
                None
            }
            (None, false) => None,
        };
        *lock(&self.server) = server;
        Ok(())
    }

    /// Falls so many blocks behind the chain's head.
    pub fn lag(&self, blocks: u64) {
        self.shared.node.set_lag(blocks);
    }

    /// Follows the chain no more, or again.
    pub fn freeze(&self, frozen: bool) {
        self.shared.node.freeze(frozen);
    }

    /// How many WebSockets are open.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.shared.sockets.open()
    }

    /// How many subscriptions there are on them.
    #[must_use]
    pub fn subscriptions(&self) -> usize {
        self.shared.sockets.subscriptions()
    }

    /// Answers this to whoever wants a WebSocket, or accepts again.
    pub fn refuse_sockets(&self, refusal: Option<Answer>) {
        self.shared.sockets.state.send_modify(|state| state.refusal = refusal);
    }

    /// Its WebSockets neither read nor send, not even pongs, or they do again.
    pub fn silence(&self, silent: bool) {
        self.shared.sockets.state.send_modify(|state| state.silent = silent);
    }

    /// Takes at most so many subscriptions on a WebSocket; the next gets this error.
    pub fn limit_subscriptions(&self, most: usize, error: RpcError) {
        self.shared.sockets.state.send_modify(|state| state.most = Some((most, error)));
    }

    /// Closes its WebSockets with this code and reason.
    pub fn close_sockets(&self, code: u16, reason: &str) {
        self.shared.sockets.command(Command::Close(code, reason.to_owned()));
    }

    /// Resets the connections of its WebSockets.
    pub fn reset_sockets(&self) {
        self.shared.sockets.command(Command::Reset);
    }

    /// Sends a text on its WebSockets, whatever it is.
    pub fn send_on_sockets(&self, text: &str) {
        self.shared.sockets.command(Command::Send(text.to_owned()));
    }

    /// The calls it was asked, oldest first, as far as it remembers.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.memory).seen().to_vec()
    }

    /// How often it was asked `method`, whatever it answered.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        lock(&self.shared.memory).count(method)
    }

    /// How many calls it was asked.
    #[must_use]
    pub fn total(&self) -> usize {
        lock(&self.shared.memory).total()
    }

    /// How many HTTP requests with a readable body, or messages on sockets, it got.
    #[must_use]
    pub fn posts(&self) -> usize {
        lock(&self.shared.memory).posts()
    }

    /// How many connections it accepted.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until exactly so many requests are with it, neither answered nor given up by who asked.
    pub async fn in_flight(&self, requests: usize) {
        let mut in_flight = self.shared.in_flight.subscribe();
        // The sender lives as long as we do.
        let _ = in_flight.wait_for(|now| *now == requests).await;
    }

    /// Forgets what it was asked.
    pub fn forget(&self) {
        lock(&self.shared.memory).forget();
    }

    /// How many calls its limit admitted in each aligned window that saw any, by the window's number since the epoch; empty
    /// without a limit.
    #[must_use]
    pub fn admitted_per_window(&self, window: Duration) -> BTreeMap<u64, u64> {
        self.meter().map(|meter| lock(&meter).admitted_per_window(window)).unwrap_or_default()
    }

    /// How many calls its limit refused; 0 without a limit.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.meter().map_or(0, |meter| lock(&meter).refused())
    }

    /// Changes its limit from now on, if it has one. What was used stays used.
    pub fn change_limit(&self, limit: Limit) {
        if let Some(meter) = self.meter() {
            lock(&meter).change(limit);
        }
    }

    fn meter(&self) -> Option<Arc<Mutex<Meter>>> {
        let behaviour = lock(&self.shared.behaviour);
        if let Behaviour::Limited { meter, .. } = &*behaviour { Some(Arc::clone(meter)) } else { None }
    }

    /// Stops, and waits until it has.
    pub async fn stop(self) {
        let running = lock(&self.server).take();
        if let Some(running) = running {
            running.end().await;
        }
    }

    fn listen(&self) -> io::Result<TcpListener> {
        let socket = bind(self.address)?;
        socket.listen(1024)?;
        TcpListener::from_std(socket.into())
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A request that is with the provider, until its body has gone out or its connection has ended.
pub(crate) struct InFlight(Arc<Shared>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|requests| *requests -= 1);
    }
}

impl Shared {
    pub(crate) fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|requests| *requests += 1);
        InFlight(Arc::clone(self))
    }

    pub(crate) fn behaviour(&self) -> Behaviour {
        lock(&self.behaviour).clone()
    }
}

/// A bound socket that shares its port with our other one: two that allow it may be bound, one may listen.
fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
