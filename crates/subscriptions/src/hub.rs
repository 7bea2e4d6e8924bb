//! The hub of one chain: takes what happened, decides what becomes of every subscription, and says what to do.

mod answers;
mod clients;
mod feeds;
mod places;
mod remembered;
mod sockets;
mod timers;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

use rand::RngCore;

use crate::action::Action;
use crate::endpoints::Endpoints;
use crate::event::{Allowance, Event};
use crate::fetches::Fetches;
use crate::group::Group;
use crate::ids::{CallId, ClientId, GroupId, SocketId};
use crate::socket::Socket;
use crate::topic::Topic;
use clients::Client;
use timers::{Timer, Timers};

/// How long a lost subscription may take to be served again, its gap filled.
pub(crate) const RECOVERY: Duration = Duration::from_secs(30);
/// How long an upstream may take to answer one of our calls.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a socket without subscriptions stays open.
const IDLE: Duration = Duration::from_secs(10);

/// What the operator decides.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether equal subscriptions share one upstream.
    pub share: bool,
    /// The most subscriptions on one upstream socket; at least 2 are used, one of which follows the heads.
    pub per_socket: usize,
    /// The most subscriptions of one client.
    pub per_client: usize,
    /// How long a client waits for its subscription.
    pub patience: Duration,
}

/// Decides what becomes of the subscriptions of one chain.
pub struct Hub {
    settings: Settings,
    rng: Box<dyn RngCore + Send>,
    endpoints: Endpoints,
    fetches: Fetches,
    groups: BTreeMap<GroupId, Group>,
    /// Bytes of logs that all groups remember.
    remembered: usize,
    shared: HashMap<Topic, GroupId>,
    clients: HashMap<ClientId, Client>,
    sockets: BTreeMap<SocketId, Socket>,
    /// Groups that have no socket.
    unplaced: BTreeSet<GroupId>,
    /// Something changed that may give them one.
    place_due: bool,
    /// Sockets that have something to ask.
    busy: BTreeSet<SocketId>,
    timers: Timers,
    actions: VecDeque<Action>,
    last: u64,
}

impl Hub {
    /// A hub that knows no endpoint yet. Ids come from `rng`: it must not be guessable.
    #[must_use]
    pub fn new(settings: Settings, rng: Box<dyn RngCore + Send>) -> Self {
        Self {
            settings,
            rng,
            endpoints: Endpoints::default(),
            fetches: Fetches::default(),
            groups: BTreeMap::new(),
            remembered: 0,
            shared: HashMap::new(),
            clients: HashMap::new(),
            sockets: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            place_due: false,
            busy: BTreeSet::new(),
            timers: Timers::default(),
            actions: VecDeque::new(),
            last: 0,
        }
    }

    /// Takes what happened. Times never go back. Afterwards, [`Hub::poll_action`] until there is none.
    pub fn apply(&mut self, event: Event, now: Instant, allowance: &mut dyn Allowance) {
        match event {
            Event::Subscribe { client, tag, method, params } => {
                self.subscribe(client, tag, method, params, now);
            }
            Event::Unsubscribe { client, tag, id } => self.unsubscribe(client, tag, id, now),
            Event::Gone { client } => self.gone(client, now),
            Event::Opened { socket } => self.opened(socket),
            Event::Refused { socket, again } => self.refused(socket, again, now),
            Event::Closed { socket, end } => self.closed(socket, end, now),
            Event::Answered { socket, call, answer } => self.answered(socket, call, answer, now),
            Event::Notified { socket, notification } => self.notified(socket, notification, now),
            Event::Fetched { fetch, result } => self.fetched(fetch, Some(result), now),
            Event::Unfetched { fetch } => self.fetched(fetch, None, now),
            Event::Endpoints(candidates) => self.endpoints_are(&candidates, now),
            Event::Head { endpoint, number } => self.seen(endpoint, number, now),
            Event::Tick => self.tick(now),
        }
        self.place_all(now, allowance);
        self.ask_all(now, allowance);
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Event::Tick`] is due next.
    #[must_use]
    pub fn next_timer(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Upstream sockets there are or will be.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Upstream subscriptions that clients want, whether they are served at the moment or not.
    #[must_use]
    pub fn upstream_subscriptions(&self) -> usize {
        self.groups.len()
    }

    fn tick(&mut self, now: Instant) {
        while let Some(timer) = self.timers.due(now) {
            match timer {
                Timer::Group(group) => self.group_due(group, now),
                Timer::Socket(socket) => self.socket_due(socket, now),
                Timer::Call(socket, call) => self.call_due(socket, call, now),
                Timer::Place => self.place_due = true,
            }
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn next_call(&mut self) -> CallId {
        CallId(self.next_id())
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("groups", &self.groups)
            .field("sockets", &self.sockets)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}
