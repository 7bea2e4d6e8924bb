//! The caps on concurrency of this process: which there are, and how a request passes those on its way upstream. How far
//! they are tightened comes from `flags`.

mod gate;

pub use gate::{Gate, NAMESPACE, Place, Shed};

use config::{FlagsProvider, Settings};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long a request may wait at the gates before one attempt.
const HTTP: Duration = Duration::from_secs(1);
/// How long a WebSocket's handshake may.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// What the flags say: by flag, the limit.
pub type Caps = BTreeMap<String, NonZeroU32>;

/// All gates of the process.
pub struct Gates {
    /// Attempts in flight, until their answers' bodies have ended.
    pub upstream: Arc<Gate>,
    /// Open sockets of clients.
    pub websocket: Arc<Gate>,
    /// Sockets of clients that are being opened.
    pub handshake: Arc<Gate>,
    queue: u32,
    /// Nobody can ever tighten anything: the gates of all chains are open.
    fixed: bool,
    chains: Mutex<Chains>,
    came: Notify,
}

#[derive(Default)]
struct Chains {
    gates: HashMap<Box<str>, Arc<Gate>>,
    /// In force, also for chains that come with a reload.
    caps: Caps,
}

/// Leave to make one attempt; its place is free again when this is dropped.
#[derive(Debug)]
pub struct Permits {
    _chain: Place,
    _upstream: Place,
}

/// A cap that changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    pub gate: Box<str>,
    pub from: Option<NonZeroU32>,
    pub to: Option<NonZeroU32>,
}

impl Gates {
    pub fn new(settings: &Settings) -> Gates {
        let (queue, fixed) = (settings.gate_queue, settings.headgate_flags_provider == FlagsProvider::Static);
        let ceiling = |most: Option<u32>| most.and_then(NonZeroU32::new);
        let sockets = |name, most| Arc::new(Gate::new(name, ceiling(most), queue, HANDSHAKE));
        Gates {
            upstream: Arc::new(match ceiling(settings.max_upstream_in_flight) {
                None if fixed => Gate::open("upstream", HTTP),
                ceiling => Gate::new("upstream", ceiling, queue, HTTP),
            }),
            websocket: sockets("websocket", settings.max_websockets),
            handshake: sockets("websocket.handshake", None),
            queue,
            fixed,
            chains: Mutex::default(),
            came: Notify::new(),
        }
    }

    /// The gate of a chain: the same for as long as the chain is configured.
    pub fn of_chain(&self, chain: &str) -> Arc<Gate> {
        let mut chains = self.chains();
        if let Some(gate) = chains.gates.get(chain) {
            return Arc::clone(gate);
        }
        let name = format!("upstream.{chain}");
        let gate = match self.fixed {
            true => Gate::open(&name, HTTP),
            false => Gate::new(&name, None, self.queue, HTTP),
        };
        gate.tighten(&chains.caps);
        let gate = Arc::new(gate);
        chains.gates.insert(chain.into(), Arc::clone(&gate));
        self.came.notify_one();
        gate
    }

    /// Waits for a chain whose flag may not have been read yet.
    pub async fn chain_came(&self) {
        self.came.notified().await;
    }

    /// Forgets the gates of chains that are gone, once nobody is inside of them.
    pub fn keep_only(&self, configured: impl Fn(&str) -> bool) {
        self.chains().gates.retain(|chain, gate| configured(chain) || gate.load().in_flight > 0);
    }

    /// Every gate.
    pub fn all(&self) -> Vec<Arc<Gate>> {
        let mut chains: Vec<_> = self.chains().gates.values().cloned().collect();
        chains.sort_by(|a, b| a.name.cmp(&b.name));
        let ours = [&self.upstream, &self.websocket, &self.handshake].map(Arc::clone);
        ours.into_iter().chain(chains).collect()
    }

    /// Puts these caps in force, and what they do not name back to its ceiling.
    pub fn apply(&self, caps: &Caps) -> Vec<Change> {
        self.chains().caps.clone_from(caps);
        self.all().iter().filter_map(|gate| gate.tighten(caps)).collect()
    }

    /// The way upstream, if it is open at once.
    pub fn try_attempt(&self, chain: &Gate) -> Option<Permits> {
        // Known without a look at a gate that may not be in the cache.
        let chain = if self.fixed { Place::free() } else { chain.try_enter()? };
        Some(Permits { _chain: chain, _upstream: self.upstream.try_enter()? })
    }

    /// The same, waiting for it. The chain's gate comes first: who waits for the other one is in nobody's way but its
    /// own chain's.
    pub async fn attempt(&self, chain: &Gate, deadline: Instant) -> Result<Permits, Shed> {
        let until = deadline.min(Instant::now() + HTTP);
        let chain = chain.enter(until).await?;
        Ok(Permits { _chain: chain, _upstream: self.upstream.enter(until).await? })
    }

    fn chains(&self) -> MutexGuard<'_, Chains> {
        self.chains.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
