//! Every metric of the proxy: its name, its labels, and how a worker counts it without touching shared memory.
//!
//! A worker counts in plain cells; once a second, and before a scrape, the cells are folded into the registry.

mod fold;
mod names;

pub(crate) use fold::{gauges, of_gates, of_limits};
pub(crate) use names::{FLAGS_PANICS, FLAGS_READY, RELOAD_OK, RELOADS, describe};
pub(crate) use prober::metrics::of_store;

use crate::app::App;
use crate::fleet::{Chain, Endpoint};
use detect::{RuleId, Verdict};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use telemetry::histograms::Histograms;
use telemetry::local::{Count, Durations};

/// What one worker counted since the last fold.
pub(crate) struct Metrics {
    histograms: Histograms,
    chains: RefCell<Vec<Option<Rc<ChainCounts>>>>,
    endpoints: RefCell<Vec<Option<Rc<EndpointCounts>>>>,
    rules: RefCell<Vec<Option<(RuleId, Count)>>>,
    pub(crate) in_flight: Cell<i64>,
}

/// Counts of one chain.
pub(crate) struct ChainCounts {
    pub(crate) number: u32,
    name: Arc<str>,
    /// A few: looked through faster than hashed.
    codes: RefCell<Vec<(u16, Count)>>,
    pub(crate) took: Durations,
    retries: RefCell<HashMap<&'static str, Count>>,
    refused: RefCell<HashMap<&'static str, Count>>,
    saturated: Count,
    /// Sockets opened less those closed since the last fold.
    sockets: Cell<i64>,
    closes: RefCell<HashMap<&'static str, Count>>,
}

impl ChainCounts {
    pub(crate) fn new(number: u32, name: Arc<str>) -> ChainCounts {
        ChainCounts {
            number,
            name,
            codes: RefCell::default(),
            took: Durations::default(),
            retries: RefCell::default(),
            refused: RefCell::default(),
            saturated: Count::default(),
            sockets: Cell::new(0),
            closes: RefCell::default(),
        }
    }

    /// A request was answered with `code`.
    pub(crate) fn answered(&self, code: u16, took: std::time::Duration) {
        self.took.record(took);
        let mut codes = self.codes.borrow_mut();
        match codes.iter().find(|(known, _)| *known == code) {
            Some((_, count)) => count.add(1),
            None => {
                let count = Count::default();
                count.add(1);
                codes.push((code, count));
            }
        }
    }

    pub(crate) fn socket_opened(&self) {
        self.sockets.set(self.sockets.get() + 1);
    }

    pub(crate) fn socket_gone(&self) {
        self.sockets.set(self.sockets.get() - 1);
    }

    /// Why a client's socket ended.
    pub(crate) fn socket_closed(&self, why: &'static str) {
        self.closes.borrow_mut().entry(why).or_default().add(1);
    }
}

/// Counts of one endpoint. What every attempt counts comes first.
#[repr(C)]
pub(crate) struct EndpointCounts {
    pub(crate) took: Durations,
    /// Over HTTP and over WebSockets.
    pub(crate) attempts: [[Count; Verdict::ALL.len()]; 2],
    chain: Arc<str>,
    endpoint: Arc<str>,
    pub(crate) skipped: Count,
    pub(crate) decreases: Count,
    pub(crate) hits: [Count; 2],
}

impl Metrics {
    pub(crate) fn new(histograms: Histograms) -> Metrics {
        Metrics {
            histograms,
            chains: RefCell::default(),
            endpoints: RefCell::default(),
            rules: RefCell::default(),
            in_flight: Cell::new(0),
        }
    }

    pub(crate) fn chain(&self, chain: &Chain) -> Rc<ChainCounts> {
        slot(&self.chains, chain.number, || ChainCounts::new(chain.number, Arc::clone(&chain.name)))
    }

    pub(crate) fn endpoint(&self, chain: &Chain, endpoint: &Endpoint) -> Rc<EndpointCounts> {
        slot(&self.endpoints, endpoint.number, || EndpointCounts {
            took: Durations::default(),
            attempts: Default::default(),
            chain: Arc::clone(&chain.name),
            endpoint: Arc::clone(&endpoint.id),
            skipped: Count::default(),
            decreases: Count::default(),
            hits: Default::default(),
        })
    }

    /// The name of a chain that was counted here.
    pub(crate) fn chain_name(&self, number: u32) -> Option<String> {
        Some(self.chains.borrow().get(number as usize)?.as_ref()?.name.as_ref().to_owned())
    }

    /// The name of an endpoint that was counted here.
    pub(crate) fn endpoint_name(&self, number: u32) -> Option<String> {
        Some(self.endpoints.borrow().get(number as usize)?.as_ref()?.endpoint.as_ref().to_owned())
    }

    pub(crate) fn retry(&self, chain: &Chain, reason: &'static str) {
        self.chain(chain).retries.borrow_mut().entry(reason).or_default().add(1);
    }

    /// A request was refused because of who asked.
    pub(crate) fn refused(&self, chain: &Chain, reason: &'static str) {
        self.chain(chain).refused.borrow_mut().entry(reason).or_default().add(1);
    }

    pub(crate) fn saturated(&self, chain: &Chain) {
        self.chain(chain).saturated.add(1);
    }

    /// A detection rule decided on an answer.
    pub(crate) fn rule(&self, rule: RuleId) {
        let mut rules = self.rules.borrow_mut();
        let index = rule.index();
        if rules.len() <= index {
            rules.resize_with(index + 1, || None);
        }
        rules[index].get_or_insert_with(|| (rule, Count::default())).1.add(1);
    }
}

/// Forgets accounts and subjects of limits that are gone.
pub(crate) async fn upkeep(app: Arc<App>) {
    prober::metrics::of_build(env!("CARGO_PKG_VERSION"));
    let mut tick = tokio::time::interval(std::time::Duration::from_secs(5));
    loop {
        tick.tick().await;
        app.memory.tidy();
        app.limits.tidy();
    }
}

/// The counts with this number; made when first asked for.
fn slot<T>(slots: &RefCell<Vec<Option<Rc<T>>>>, number: u32, make: impl FnOnce() -> T) -> Rc<T> {
    let mut slots = slots.borrow_mut();
    let index = number as usize;
    if slots.len() <= index {
        slots.resize_with(index + 1, || None);
    }
    Rc::clone(slots[index].get_or_insert_with(|| Rc::new(make())))
}
