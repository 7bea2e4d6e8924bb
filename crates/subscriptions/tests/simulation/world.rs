//! Everything outside the hub, in simulated time: nodes, wires with latency, dispatch, clients.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use subscriptions::{
    Action, Allowance, Answer, CallId, Candidate, ClientId, End, EndpointId, Event, Fetch, Grant, Hub,
    Incoming, Payload, Reason, Refusal, Settings, SocketId, SubscriptionId,
};

use crate::chain::Chain;
use crate::client::{Kind, Subscription};
use crate::node::{Node, Socket};

/// Something that happens at a time.
pub(crate) enum Due {
    Event(Event),
    /// A connect arrives at the node.
    Connect(SocketId, usize),
    /// A call arrives at the node.
    Call(SocketId, CallId, Box<str>, String),
    /// A call by dispatch arrives somewhere.
    Fetch(Fetch),
    /// A frame arrives at the hub.
    Frame(SocketId, String),
    /// A node hears of the network's chain.
    Hear(usize),
    /// The health checks look at all nodes.
    Poll,
}

pub(crate) struct World {
    pub(crate) now: u64,
    start: Instant,
    pub(crate) rng: SmallRng,
    pub(crate) hub: Hub,
    pub(crate) chain: Chain,
    pub(crate) nodes: Vec<Node>,
    due: BTreeMap<(u64, u64), Due>,
    count: u64,
    pub(crate) tokens: Tokens,
    pub(crate) subscriptions: BTreeMap<SubscriptionId, (ClientId, Subscription)>,
    asked: BTreeMap<u64, Kind>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) closed: Vec<(ClientId, Reason)>,
    /// Clients that may be told nothing any more.
    pub(crate) gone: Vec<ClientId>,
    pub(crate) fetched: Vec<String>,
    pub(crate) wrong: Vec<String>,
    /// The longest a message takes, in milliseconds.
    pub(crate) latency: u64,
}

/// The accounts' ceilings: so many per second, none by default.
#[derive(Default)]
pub(crate) struct Tokens {
    pub(crate) per_second: Option<u32>,
    taken: BTreeMap<(EndpointId, u64), u32>,
    start: Option<Instant>,
}

impl Allowance for Tokens {
    fn take(&mut self, endpoint: EndpointId, now: Instant) -> Grant {
        let (Some(most), Some(start)) = (self.per_second, self.start) else { return Grant::Now };
        let second = (now - start).as_secs();
        let taken = self.taken.entry((endpoint, second)).or_default();
        if *taken < most {
            *taken += 1;
            return Grant::Now;
        }
        Grant::At(start + Duration::from_secs(second + 1))
    }
}

pub(crate) fn settings() -> Settings {
    Settings { share: true, per_socket: 100, per_client: 1000, patience: Duration::from_secs(10) }
}

impl World {
    pub(crate) fn new(seed: u64, nodes: u64, settings: Settings) -> Self {
        #[expect(clippy::disallowed_methods, reason = "any instant will do as the start of simulated time")]
        let start = Instant::now();
        let chain = Chain::new(200);
        let nodes: Vec<Node> = (1..=nodes).map(|id| Node::new(EndpointId(id), &chain)).collect();
        let mut world = Self {
            now: 0,
            start,
            rng: SmallRng::seed_from_u64(seed),
            hub: Hub::new(settings, Box::new(SmallRng::seed_from_u64(seed))),
            chain,
            nodes,
            due: BTreeMap::new(),
            count: 0,
            tokens: Tokens { start: Some(start), ..Tokens::default() },
            subscriptions: BTreeMap::new(),
            asked: BTreeMap::new(),
            refused: Vec::new(),
            closed: Vec::new(),
            gone: Vec::new(),
            fetched: Vec::new(),
            wrong: Vec::new(),
            latency: 20,
        };
        world.tell_endpoints();
        world.after(1000, Due::Poll);
        world
    }

    pub(crate) fn tell_endpoints(&mut self) {
        let candidates = self.nodes.iter().map(|node| Candidate {
            endpoint: node.endpoint,
            eligible: node.eligible,
            open: true,
        });
        let candidates = candidates.collect();
        self.apply(Event::Endpoints(candidates));
    }

    pub(crate) fn after(&mut self, delay: u64, due: Due) {
        self.count += 1;
        self.due.insert((self.now + delay, self.count), due);
    }

    fn soon(&mut self) -> u64 {
        self.rng.random_range(1..=self.latency)
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        loop {
            let timer = self
                .hub
                .next_timer()
                .map(|at| u64::try_from((at - self.start).as_millis()).expect("small") + 1);
            let next = self.due.first_key_value().map(|((at, _), _)| *at);
            let Some(at) = timer.into_iter().chain(next).min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            if next.is_some_and(|next| next <= self.now) {
                let (_, due) = self.due.pop_first().expect("looked at");
                self.happen(due);
            } else {
                self.apply(Event::Tick);
            }
        }
        self.now = end;
    }

    pub(crate) fn apply(&mut self, event: Event) {
        let now = self.start + Duration::from_millis(self.now);
        self.hub.apply(event, now, &mut self.tokens);
        while let Some(action) = self.hub.poll_action() {
            self.act(action);
        }
    }

    pub(crate) fn subscribe(&mut self, client: u64, kind: Kind) {
        self.count += 1;
        let tag = self.count;
        self.asked.insert(tag, kind);
        let params = match kind {
            Kind::Heads => r#"["newHeads"]"#,
            Kind::Logs => r#"["logs",{}]"#,
            Kind::Pending => r#"["newPendingTransactions"]"#,
        };
        let (client, method) = (ClientId(client), "eth_subscribe".into());
        self.apply(Event::Subscribe { client, tag, method, params: params.into() });
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open { socket, endpoint } => {
                let node = self.nodes.iter().position(|node| node.endpoint == endpoint).expect("a node");
                let delay = self.soon();
                self.after(delay, Due::Connect(socket, node));
            }
            Action::Close { socket, .. } => {
                self.nodes.iter_mut().for_each(|node| drop(node.sockets.remove(&socket)));
            }
            Action::Call { socket, call, method, params } => {
                let params = String::from_utf8(params.to_vec()).expect("JSON");
                let delay = self.soon();
                self.after(delay, Due::Call(socket, call, method, params));
            }
            Action::Fetch(fetch) => {
                self.fetched.push(format!("{} {}", fetch.method, String::from_utf8_lossy(&fetch.params)));
                let delay = self.soon();
                self.after(delay, Due::Fetch(fetch));
            }
            Action::Subscribed { client, tag, result } => self.answered(client, tag, result),
            Action::Unsubscribed { .. } => {}
            Action::Deliver { members, payload, .. } => {
                members.iter().for_each(|member| self.deliver(member.client, member.id, &payload));
            }
            Action::CloseClient { client, reason } => {
                self.closed.push((client, reason));
                self.forget(client);
            }
        }
    }

    fn answered(&mut self, client: ClientId, tag: u64, result: Result<SubscriptionId, Refusal>) {
        let kind = self.asked.remove(&tag).expect("asked once");
        match result {
            Ok(id) => {
                let since = self.nodes.iter().map(Node::height).max().unwrap_or(0).max(self.chain.height());
                self.subscriptions.insert(id, (client, Subscription::new(kind, since)));
            }
            Err(refusal) => self.refused.push(refusal),
        }
    }

    fn deliver(&mut self, client: ClientId, id: SubscriptionId, payload: &Payload) {
        let mut text = Vec::new();
        payload.write(id, &mut text);
        let value: Value = serde_json::from_slice(&text).expect("JSON");
        let told = SubscriptionId::parse(value["params"]["subscription"].as_str().expect("an id"));
        assert_eq!((told, text.len()), (Some(id), payload.len()));
        match self.subscriptions.get_mut(&id) {
            Some((owner, subscription)) if *owner == client => {
                let result = subscription.take(&value["params"]["result"], &self.chain);
                self.wrong.extend(result.err().map(|wrong| format!("at {}: {client:?}: {wrong}", self.now)));
            }
            Some(_) | None => self.wrong.push(format!("{client:?} was told something after it had left")),
        }
    }

    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId) {
        let Some((client, _)) = self.subscriptions.remove(&id) else { return };
        self.apply(Event::Unsubscribe { client, tag: 0, id });
    }

    pub(crate) fn leave(&mut self, client: u64) {
        self.forget(ClientId(client));
        self.apply(Event::Gone { client: ClientId(client) });
    }

    fn forget(&mut self, client: ClientId) {
        self.subscriptions.retain(|_, (owner, _)| *owner != client);
        self.gone.push(client);
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Event(event) => self.apply(event),
            Due::Connect(socket, node) => {
                let node = &mut self.nodes[node];
                let event = if node.up {
                    node.sockets.insert(socket, Socket::default());
                    Event::Opened { socket }
                } else {
                    Event::Refused { socket, again: None }
                };
                self.apply(event);
            }
            Due::Call(socket, call, method, params) => self.call(socket, call, &method, &params),
            Due::Fetch(fetch) => self.fetch(&fetch),
            Due::Frame(socket, text) => self.frame(socket, text),
            Due::Hear(node) => self.hear(node),
            Due::Poll => {
                let heights: Vec<_> = self
                    .nodes
                    .iter()
                    .filter(|node| node.up)
                    .map(|node| (node.endpoint, node.height() as u64))
                    .collect();
                heights
                    .into_iter()
                    .for_each(|(endpoint, number)| self.apply(Event::Head { endpoint, number }));
                self.after(1000, Due::Poll);
            }
        }
    }

    /// Sends a message from a node; none overtakes another.
    fn send(&mut self, node: usize, socket: SocketId, due: impl FnOnce(SocketId) -> Due) {
        let delay = self.soon();
        let now = self.now;
        if self.nodes[node].silent {
            return;
        }
        let Some(wire) = self.nodes[node].sockets.get_mut(&socket) else { return };
        wire.last = wire.last.max(now + delay);
        let delay = wire.last - now;
        self.after(delay, due(socket));
    }

    fn call(&mut self, socket: SocketId, call: CallId, method: &str, params: &str) {
        let Some(at) = self.nodes.iter().position(|node| node.sockets.contains_key(&socket)) else { return };
        let node = &mut self.nodes[at];
        if let Some(blame) = node.refuses.filter(|_| method == "eth_subscribe") {
            let answer = Answer::Error { answer: format!("no from {at}").into(), blame };
            self.send(at, socket, |socket| Due::Event(Event::Answered { socket, call, answer }));
            return;
        }
        let result = match method {
            "eth_subscribe" => {
                let kind = match params {
                    r#"["newHeads"]"# => Kind::Heads,
                    r#"["newPendingTransactions"]"# => Kind::Pending,
                    _ => Kind::Logs,
                };
                node.subscribed += 1;
                let id = format!(r#""0x{:x}""#, node.subscribed);
                let wire = node.sockets.get_mut(&socket).expect("found by it");
                wire.subscriptions.insert(id.clone(), kind);
                id
            }
            "eth_unsubscribe" => {
                let wire = node.sockets.get_mut(&socket).expect("found by it");
                wire.subscriptions.remove(params.trim_matches(['[', ']']));
                "true".to_owned()
            }
            "eth_blockNumber" => format!(r#""{:#x}""#, node.height()),
            other => panic!("a call of {other}"),
        };
        let answer = Answer::Result(result.into());
        self.send(at, socket, |socket| Due::Event(Event::Answered { socket, call, answer }));
    }

    fn fetch(&mut self, fetch: &Fetch) {
        let able = |node: &&Node| node.up && !node.silent;
        let preferred = self.nodes.iter().find(|node| Some(node.endpoint) == fetch.prefer).filter(able);
        let node = preferred.or_else(|| self.nodes.iter().filter(able).max_by_key(|node| node.height()));
        let result = node.and_then(|node| self.look_up(node, fetch));
        let event = Event::fetched(fetch, result.map(Into::into));
        let delay = self.soon();
        self.after(delay, Due::Event(event));
    }

    fn look_up(&self, node: &Node, fetch: &Fetch) -> Option<String> {
        let params: Value = serde_json::from_slice(&fetch.params).expect("JSON");
        let number = |value: &Value| {
            usize::from_str_radix(value.as_str().expect("a number").trim_start_matches("0x"), 16)
                .expect("hex")
        };
        if fetch.method == "eth_getBlockByNumber" {
            let id = node.chain.get(number(&params[0]));
            return Some(id.map_or("null".to_owned(), |id| self.chain.head_json(*id, true)));
        }
        let (from, to) = (number(&params[0]["fromBlock"]), number(&params[0]["toBlock"]));
        let range = node.chain.get(from..=to)?;
        let logs = range.iter().flat_map(|id| {
            (0..self.chain.blocks[*id].logs).map(|index| self.chain.log_json(*id, index, false))
        });
        Some(format!("[{}]", logs.collect::<Vec<_>>().join(",")))
    }

    fn frame(&mut self, socket: SocketId, text: String) {
        if !self.nodes.iter().any(|node| node.sockets.contains_key(&socket)) {
            return;
        }
        let Incoming::Notification(notification) = Incoming::read(text.into()) else {
            panic!("a notification")
        };
        self.apply(Event::Notified { socket, notification });
    }

    /// The network has new blocks: the nodes hear of them, each in its time.
    pub(crate) fn spread(&mut self, slowest: u64) {
        for node in 0..self.nodes.len() {
            let delay = self.rng.random_range(0..=slowest);
            self.after(delay, Due::Hear(node));
        }
    }

    fn hear(&mut self, at: usize) {
        let head_first = self.rng.random();
        let node = &mut self.nodes[at];
        if !node.up || node.frozen {
            return;
        }
        let height = self.chain.height() - node.lag;
        let told = node.adopt(&self.chain, height, head_first);
        let wires: Vec<(SocketId, Vec<(String, Kind)>)> = node
            .sockets
            .iter()
            .map(|(socket, wire)| (*socket, wire.subscriptions.clone().into_iter().collect()))
            .collect();
        for (socket, subscriptions) in wires {
            for (kind, result) in &told {
                for (id, _) in subscriptions.iter().filter(|(_, other)| other == kind) {
                    let text = format!(
                        r#"{{"jsonrpc":"2.0","method":"eth_subscription","params":{{"subscription":{id},"result":{result}}}}}"#
                    );
                    self.send(at, socket, |socket| Due::Frame(socket, text));
                }
            }
        }
    }

    /// The node dies; its sockets end after a moment.
    pub(crate) fn kill(&mut self, at: usize, end: End) {
        self.nodes[at].up = false;
        let sockets: Vec<SocketId> = std::mem::take(&mut self.nodes[at].sockets).into_keys().collect();
        for socket in sockets {
            let delay = self.soon();
            self.after(delay, Due::Event(Event::Closed { socket, end }));
        }
    }

    /// The node is silent; its sockets are found to be after a while.
    pub(crate) fn silence(&mut self, at: usize) {
        self.nodes[at].silent = true;
        for socket in std::mem::take(&mut self.nodes[at].sockets).into_keys() {
            let delay = self.rng.random_range(2_000..12_000);
            self.after(delay, Due::Event(Event::Closed { socket, end: End::Failed }));
        }
    }

    /// The node is back, with the chain as the network has it.
    pub(crate) fn revive(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        (node.up, node.silent, node.frozen) = (true, false, false);
        self.after(0, Due::Hear(at));
    }

    /// Panics unless everybody was told everything, rightly.
    pub(crate) fn check(&self) {
        assert_eq!(self.wrong, Vec::<String>::new());
        for (id, (client, subscription)) in &self.subscriptions {
            if let Err(wrong) = subscription.is_complete(&self.chain) {
                panic!("{client:?} {id}: {wrong}");
            }
        }
    }
}
