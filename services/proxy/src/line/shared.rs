//! The lines of one worker to endpoints that have nothing but a WebSocket: one to each, shared by all calls, which go
//! under ids of our own. It says what came; what that means is `exchange`'s.

use super::{Ending, Line, Told};
use crate::fleet::Chain;
use crate::upstream::Connector;
use bytes::Bytes;
use http::HeaderMap;
use ledger::{Cost, Sender};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use subscriptions::Incoming;
use tokio::sync::{mpsc, oneshot};

/// How long a line that nobody uses stays open.
const IDLE: Duration = Duration::from_secs(50);

/// All shared lines of a worker, by the endpoint's number.
pub(crate) struct Lines {
    connector: Connector,
    ping: Duration,
    patience: Duration,
    open: Rc<RefCell<HashMap<u32, Rc<Shared>>>>,
}

struct Shared {
    line: Line,
    waiting: RefCell<HashMap<u64, oneshot::Sender<Heard>>>,
    next: Cell<u64>,
    used: Cell<Instant>,
}

/// What came of a call.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    /// The whole answer, and our id in it.
    Answer {
        text: Bytes,
        id: Bytes,
    },
    Refused {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
    },
    Unreachable(String),
    Closed {
        code: u16,
        reason: String,
    },
    Broken(String),
}

impl Lines {
    pub(crate) fn new(connector: Connector, ping: Duration, patience: Duration) -> Lines {
        Lines { connector, ping, patience, open: Rc::default() }
    }

    /// Sends what `write` makes of a new id, and waits for its answer. The caller sets the time limit.
    pub(crate) async fn ask(
        &self,
        chain: &Arc<Chain>,
        index: u16,
        write: impl FnOnce(&str) -> String,
    ) -> Heard {
        let shared = self.to(chain, index);
        let id = shared.next.get();
        shared.next.set(id + 1);
        let (answer, answered) = oneshot::channel();
        shared.waiting.borrow_mut().insert(id, answer);
        let _call = Waiting { shared: &shared, id };
        shared.line.send(write(&id.to_string()));
        answered.await.unwrap_or_else(|_| Heard::Broken("the WebSocket ended".into()))
    }

    /// Sends what nobody answers.
    pub(crate) fn tell(&self, chain: &Arc<Chain>, index: u16, text: String) {
        self.to(chain, index).line.send(text);
    }

    /// Closes lines that idled too long, and those to endpoints that `kept` does not name.
    pub(crate) fn tidy(&self, now: Instant, kept: impl Fn(u32) -> bool) {
        let fresh = |shared: &Shared| now.saturating_duration_since(shared.used.get()) < IDLE;
        let needed = |shared: &Shared| fresh(shared) || !shared.waiting.borrow().is_empty();
        self.open.borrow_mut().retain(|number, shared| kept(*number) && needed(shared));
    }

    fn to(&self, chain: &Arc<Chain>, index: u16) -> Rc<Shared> {
        let endpoint = chain.at(index);
        if let Some(shared) = self.open.borrow().get(&endpoint.number) {
            shared.used.set(Instant::now());
            return Rc::clone(shared);
        }
        // A connect is use of the account beside the calls that follow.
        endpoint.account.gate.charge(Cost::requests(1), Sender::Client, crate::clock::unix_ms());
        let limit = Instant::now() + self.patience;
        let (line, told) = Line::open(&self.connector, chain, index, limit, self.ping);
        let shared = Rc::new(Shared {
            line,
            waiting: RefCell::default(),
            next: Cell::new(1),
            used: Cell::new(Instant::now()),
        });
        self.open.borrow_mut().insert(endpoint.number, Rc::clone(&shared));
        let (open, number) = (Rc::clone(&self.open), endpoint.number);
        let weak = Rc::downgrade(&shared);
        tokio::task::spawn_local(async move {
            listen(told, || weak.upgrade(), |shared| forget(&open, number, shared)).await;
        });
        shared
    }
}

/// Hands answers to their callers until the line ends; `forget` then takes it from the others' sight.
async fn listen(
    mut told: mpsc::Receiver<Told>,
    shared: impl Fn() -> Option<Rc<Shared>>,
    forget: impl Fn(&Rc<Shared>),
) {
    while let Some(told) = told.recv().await {
        let Some(shared) = shared() else { return };
        let end = match told {
            Told::Opened => continue,
            Told::Text(text) => {
                shared.hear(text);
                continue;
            }
            Told::Refused { status, headers, body } => Heard::Refused { status, headers, body },
            Told::Unreachable(how) => Heard::Unreachable(how),
            Told::Ended(Ending::Closed { code, reason }) => Heard::Closed { code, reason },
            Told::Ended(Ending::Broken(how)) => Heard::Broken(how),
            Told::Ended(Ending::Silent) => Heard::Broken("no answer to a ping".into()),
        };
        forget(&shared);
        for (_, caller) in shared.waiting.take() {
            // Who does not wait any more needs no answer.
            let _ = caller.send(end.clone());
        }
        return;
    }
}

fn forget(open: &RefCell<HashMap<u32, Rc<Shared>>>, number: u32, shared: &Rc<Shared>) {
    let mut open = open.borrow_mut();
    if open.get(&number).is_some_and(|known| Rc::ptr_eq(known, shared)) {
        open.remove(&number);
    }
}

impl Shared {
    fn hear(&self, text: Bytes) {
        let Incoming::Answer { id, frame, .. } = Incoming::read(text) else { return };
        let number = std::str::from_utf8(&id).ok().and_then(|id| id.trim_matches('"').parse().ok());
        let caller = number.and_then(|number: u64| self.waiting.borrow_mut().remove(&number));
        if let Some(caller) = caller {
            let _ = caller.send(Heard::Answer { text: frame, id });
        }
    }
}

/// A call that waits; given up, its answer is nobody's.
struct Waiting<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.waiting.borrow_mut().remove(&self.id);
    }
}
