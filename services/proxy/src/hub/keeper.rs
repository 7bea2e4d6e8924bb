//! Keeps the subscriptions of one chain: waits for what happens, tells the hub, does what the hub says.

use super::account::{Accounts, at};
use super::asks::{Ask, Delivery, worker_of};
use super::fetch::fetch;
use super::meaning::{Meaning, Sent};
use super::view::View;
use crate::fleet::Chain;
use crate::line::{Line, Told};
use crate::worker::Worker;
use bytes::Bytes;
use rand::TryRngCore;
use rand::rngs::OsRng;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use subscriptions::{
    Action, CallId, ClientId, End, EndpointId, Event, Hub, Incoming, Notification, Settings, SocketId,
};
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// How often the fleet is looked at for changes.
const LOOK: Duration = Duration::from_millis(200);
/// Subscriptions that one client's socket may have.
const PER_CLIENT: usize = 1000;
/// What has happened and waits to be told to the hub; then the sockets are not read.
const INBOX: usize = 1024;

/// What happens beside what clients ask.
enum Happened {
    Line(SocketId, Told),
    Fetched(Event),
}

/// An upstream socket.
struct Held {
    line: Line,
    endpoint: EndpointId,
    connect: Sent,
    calls: HashMap<CallId, Sent>,
}

pub(super) struct Keeper {
    worker: Rc<Worker>,
    chain: Arc<str>,
    hub: Hub,
    view: View,
    lines: HashMap<SocketId, Held>,
    happened: mpsc::Sender<Happened>,
    inbox: Option<mpsc::Receiver<Happened>>,
}

impl Keeper {
    pub(super) fn new(worker: &Rc<Worker>, chain: &Arc<str>) -> Keeper {
        let settings = &worker.app.settings;
        let hub = Settings {
            share: settings.ws_share_subscriptions,
            per_socket: usize::try_from(settings.ws_subscriptions_per_socket).unwrap_or(usize::MAX),
            per_client: PER_CLIENT,
            patience: settings.proxy_timeout,
        };
        let (happened, inbox) = mpsc::channel(INBOX);
        Keeper {
            worker: Rc::clone(worker),
            chain: Arc::clone(chain),
            // Ids of subscriptions must not be guessed.
            hub: Hub::new(hub, Box::new(OsRng.unwrap_err())),
            view: View::default(),
            lines: HashMap::new(),
            happened,
            inbox: Some(inbox),
        }
    }

    /// Keeps until the process ends.
    pub(super) async fn run(mut self, mut asks: UnboundedReceiver<Ask>) {
        let Some(mut inbox) = self.inbox.take() else { return };
        let mut look = tokio::time::interval(LOOK);
        loop {
            let timer = self.hub.next_timer();
            let due = async {
                match timer {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ask = asks.recv() => match ask {
                    Some(ask) => {
                        self.look();
                        self.ask(ask);
                    }
                    None => return,
                },
                Some(happened) = inbox.recv() => self.happen(happened),
                () = due => self.apply(Event::Tick),
                _ = look.tick() => self.look(),
            }
            self.act().await;
        }
    }

    fn ask(&mut self, ask: Ask) {
        self.apply(match ask {
            Ask::Subscribe { client, tag, method, params, .. } => {
                Event::Subscribe { client, tag, method, params }
            }
            Ask::Unsubscribe { client, tag, id, .. } => Event::Unsubscribe { client, tag, id },
            Ask::Gone { client, .. } => Event::Gone { client },
        });
    }

    /// Tells the hub what changed in the fleet.
    fn look(&mut self) {
        let fleet = self.worker.fleet();
        let chain = fleet.chain(&self.chain).map(|chain| &**chain);
        for event in self.view.changes(chain, crate::clock::unix_ms()) {
            self.apply(event);
        }
    }

    fn apply(&mut self, event: Event) {
        let fleet = self.worker.fleet();
        let mut accounts = Accounts {
            chain: fleet.chain(&self.chain).map(|chain| &**chain),
            throttling: self.worker.app.settings.capacity_throttling_enabled,
            now_ms: crate::clock::unix_ms(),
        };
        self.hub.apply(event, Instant::now(), &mut accounts);
    }

    fn happen(&mut self, happened: Happened) {
        let event = match happened {
            Happened::Fetched(event) => Some(event),
            Happened::Line(socket, told) => self.line_told(socket, told),
        };
        event.into_iter().for_each(|event| self.apply(event));
    }

    fn line_told(&mut self, socket: SocketId, told: Told) -> Option<Event> {
        let fleet = self.worker.fleet();
        let held = self.lines.get_mut(&socket)?;
        let endpoint = held.endpoint;
        let Some(chain) = fleet.chain(&self.chain) else {
            self.lines.remove(&socket);
            return Some(Event::Closed { socket, end: End::Normal });
        };
        let meaning = Meaning { worker: &self.worker, chain, endpoint };
        match told {
            Told::Opened => {
                meaning.connected(&held.connect, true);
                Some(Event::Opened { socket })
            }
            Told::Text(text) => text_event(socket, held, &meaning, chain, text),
            Told::Refused { status, headers, body } => {
                let again = meaning.refused(&held.connect, status, &headers, &body);
                self.lines.remove(&socket);
                Some(Event::Refused { socket, again })
            }
            Told::Unreachable(how) => {
                tracing::debug!(chain = %self.chain, endpoint = endpoint.0, how, "a provider's WebSocket cannot be opened");
                meaning.connected(&held.connect, false);
                self.lines.remove(&socket);
                Some(Event::Refused { socket, again: None })
            }
            Told::Ended(ending) => {
                let end = meaning.ended(&ending);
                self.lines.remove(&socket);
                Some(Event::Closed { socket, end })
            }
        }
    }

    /// Does what the hub says, in order.
    async fn act(&mut self) {
        while let Some(action) = self.hub.poll_action() {
            match action {
                Action::Open { socket, endpoint } => self.open(socket, endpoint),
                Action::Close { socket, endpoint, end } => self.close(socket, endpoint, end),
                Action::Call { socket, call, method, params } => self.call(socket, call, &method, &params),
                Action::Fetch(wanted) => {
                    let (happened, worker) = (self.happened.clone(), Rc::clone(&self.worker));
                    let fetching = fetch(worker, Arc::clone(&self.chain), wanted);
                    tokio::task::spawn_local(async move {
                        // Without a keeper nobody misses anything.
                        let _ = happened.send(Happened::Fetched(fetching.await)).await;
                    });
                }
                Action::Subscribed { client, tag, result } => {
                    self.deliver(client, Delivery::Subscribed { client, tag, result }).await;
                }
                Action::Unsubscribed { client, tag, known } => {
                    self.deliver(client, Delivery::Unsubscribed { client, tag, known }).await;
                }
                Action::Deliver { members, payload, endpoint } => {
                    let endpoint = endpoint.and_then(|endpoint| u32::try_from(endpoint.0).ok());
                    self.tell_all(&Delivery::Told { members, payload, endpoint }).await;
                }
                Action::CloseClient { client, reason } => {
                    self.deliver(client, Delivery::Close { client, reason }).await;
                }
            }
        }
    }

    fn open(&mut self, socket: SocketId, endpoint: EndpointId) {
        let fleet = self.worker.fleet();
        let found = fleet.chain(&self.chain).and_then(|chain| Some((chain, at(chain, endpoint)?.0)));
        let Some((chain, index)) = found else {
            self.apply(Event::Refused { socket, again: None });
            return;
        };
        let settings = &self.worker.app.settings;
        let limit = Instant::now() + settings.proxy_timeout_per_try;
        let connector = self.worker.connector();
        let (line, told) = Line::open(connector, chain, index, limit, settings.ws_ping_interval);
        tokio::task::spawn_local(pass_on(socket, told, self.happened.clone()));
        let held = Held { line, endpoint, connect: Sent::now(None), calls: HashMap::new() };
        self.lines.insert(socket, held);
    }

    fn close(&mut self, socket: SocketId, endpoint: EndpointId, end: End) {
        self.lines.remove(&socket);
        if end == End::Failed {
            let fleet = self.worker.fleet();
            if let Some(chain) = fleet.chain(&self.chain) {
                tracing::info!(chain = %self.chain, endpoint = endpoint.0, "a provider's head stands still");
                Meaning { worker: &self.worker, chain, endpoint }.connected(&Sent::now(None), false);
            }
        }
    }

    fn call(&mut self, socket: SocketId, call: CallId, method: &str, params: &Bytes) {
        let Some(held) = self.lines.get_mut(&socket) else { return };
        let params = String::from_utf8_lossy(params);
        let name = serde_json::Value::from(method);
        held.line.send(format!(r#"{{"jsonrpc":"2.0","id":{},"method":{name},"params":{params}}}"#, call.0));
        held.calls.insert(call, Sent::now(Some(method)));
    }

    async fn deliver(&self, client: ClientId, delivery: Delivery) {
        let (worker, _) = worker_of(client);
        if let Some(dealer) = self.worker.app.workers.get(usize::from(worker)) {
            // A worker that has ended has no clients any more.
            let _ = dealer.deliveries.send(delivery).await;
        }
    }

    async fn tell_all(&self, delivery: &Delivery) {
        for dealer in &self.worker.app.workers {
            let _ = dealer.deliveries.send(delivery.clone()).await;
        }
    }
}

/// Passes on what a line tells, until it has ended.
async fn pass_on(socket: SocketId, mut told: mpsc::Receiver<Told>, happened: mpsc::Sender<Happened>) {
    while let Some(told) = told.recv().await {
        if happened.send(Happened::Line(socket, told)).await.is_err() {
            return;
        }
    }
}

fn text_event(
    socket: SocketId,
    held: &mut Held,
    meaning: &Meaning<'_>,
    chain: &Chain,
    text: Bytes,
) -> Option<Event> {
    match Incoming::read(text) {
        Incoming::Answer { id, result, frame } => {
            let call = CallId(std::str::from_utf8(&id).ok()?.trim_matches('"').parse().ok()?);
            let sent = held.calls.remove(&call)?;
            let answer = meaning.answered(&sent, result, frame);
            Some(Event::Answered { socket, call, answer })
        }
        Incoming::Notification(notification) => {
            saw_block(chain, held.endpoint, &notification);
            Some(Event::Notified { socket, notification })
        }
        Incoming::Neither(text) => {
            meaning.said(&text);
            None
        }
    }
}

/// A head that was told: who is told of it must be able to read it.
fn saw_block(chain: &Chain, endpoint: EndpointId, notification: &Notification) {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        number: &'a str,
        #[serde(rename = "parentHash")]
        _parent_hash: &'a str,
    }
    let Ok(head) = serde_json::from_slice::<Head<'_>>(&notification.result) else { return };
    let number = head.number.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    if let (Some(number), Some((_, endpoint))) = (number, at(chain, endpoint)) {
        endpoint.state.saw_block(number);
        chain.told.raise(number);
    }
}
