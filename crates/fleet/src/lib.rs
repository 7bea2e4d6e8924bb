//! The immutable view of the fleet that a request reads once: chains, their endpoints in tiers, and the state
//! that each endpoint carries over reloads.

mod build;
pub mod clock;
pub mod gates;
mod methods;
mod parking;
mod shared;
mod state;
pub mod tables;
pub mod watch;

pub use build::{BuildError, PROBE_TIMEOUT, build, filter_tag, fresh_for_ms};
pub use methods::{Methods, Refusal, Stored};
pub use parking::PARKS;
pub use shared::shared_store;
pub use state::{EndpointState, Mark};

use crate::gates::Gate;
use crate::tables::Tables;
use config::Role;
use detect::{Protocol, RuleId};
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use store::{Account, Park};
use upstream::Target;

/// How many of a large tier a request looks at.
pub const FEW: usize = 8;

/// All chains that are served.
#[derive(Default)]
pub struct Fleet {
    /// None before anything was loaded.
    tables: Option<Arc<Tables>>,
    /// Hashed fast: who configures them attacks nobody by their names.
    chains: FxHashMap<Box<str>, Arc<Chain>>,
    /// Those with a tier whose order is kept.
    large: Vec<Arc<Chain>>,
    numbers: HashSet<u32>,
}

/// One network and who serves it.
pub struct Chain {
    pub name: Arc<str>,
    /// Unique in the process and kept over reloads: where worker-local counters stand.
    pub number: u32,
    pub tables: Arc<Tables>,
    /// In the order of the file.
    pub endpoints: Vec<Endpoint>,
    /// Endpoints by role, in the order in which roles are used.
    pub tiers: Vec<Tier>,
    /// The highest block that two endpoints agree on.
    pub head: Arc<Head>,
    /// The highest block that a client was told of.
    pub told: Arc<Head>,
    pub methods: Arc<Methods>,
    /// Attempts at its endpoints in flight.
    pub gate: Arc<Gate>,
}

/// The endpoints of one role.
pub struct Tier {
    pub role: Role,
    /// Indices into [`Chain::endpoints`], kept about in order of use by a background task.
    pub order: Vec<AtomicU16>,
}

impl Tier {
    /// More than a request looks at.
    fn is_large(&self) -> bool {
        self.order.len() > FEW
    }
}

/// The best known block of a chain.
#[derive(Debug, Default)]
pub struct Head(std::sync::atomic::AtomicU64);

impl Head {
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Raises it to `block`, if that is higher.
    pub fn raise(&self, block: u64) {
        self.0.fetch_max(block, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn set(&self, block: u64) {
        self.0.store(block, std::sync::atomic::Ordering::Relaxed);
    }
}

/// One configured entry of a chain. What selection reads comes first, in one cache line; with thousands of endpoints
/// each line is a miss.
#[repr(C, align(64))]
pub struct Endpoint {
    /// Unique in the process and kept over reloads while its target stays the same.
    pub number: u32,
    pub role: Role,
    pub archive: bool,
    pub private: bool,
    pub skip_sync_check: bool,
    pub state: Arc<EndpointState>,
    pub account: Arc<Account>,
    /// What is parked when the provider refuses our address: everything on this host and port.
    pub address: Arc<Park>,
    pub weight: f64,
    /// Most blocks one `eth_getLogs` may span here.
    pub max_block_range: Option<u64>,
    pub http: Option<Box<Target>>,
    pub ws: Option<Box<Target>>,
    pub id: Arc<str>,
    pub provider: Box<str>,
    /// Both URLs: when they change it is another endpoint. Never printed.
    urls: Box<str>,
    /// Marks ids of filters that were made here: eight hexadecimal digits.
    pub filter_tag: [u8; 8],
}

impl Fleet {
    /// The name of a rule by its id and the generation of its table.
    pub fn rule_name(&self, rule: RuleId, generation: u32) -> String {
        let tables = self.tables.as_ref().filter(|tables| tables.generation == generation);
        tables.map_or_else(|| "of earlier rules".to_owned(), |tables| tables.rules.name(rule).to_owned())
    }

    pub fn tables(&self) -> Option<&Arc<Tables>> {
        self.tables.as_ref()
    }

    pub fn chain(&self, name: &str) -> Option<&Arc<Chain>> {
        self.chains.get(name)
    }

    /// All chains by name.
    pub fn chains(&self) -> Vec<&Arc<Chain>> {
        let mut chains: Vec<_> = self.chains.values().collect();
        chains.sort_by(|a, b| a.name.cmp(&b.name));
        chains
    }

    /// All chains, for what is done too often to sort them.
    pub fn in_any_order(&self) -> impl Iterator<Item = &Arc<Chain>> {
        self.chains.values()
    }

    /// Puts large tiers about in order of use, so that a request need look at the first few only.
    pub fn put_in_order(&self, now: u64) {
        self.large.iter().for_each(|chain| chain.put_in_order(now));
    }

    /// Whether the endpoint with this number is one of them.
    pub fn has_endpoint(&self, number: u32) -> bool {
        self.numbers.contains(&number)
    }

    /// All endpoints with their chains.
    pub fn endpoints(&self) -> impl Iterator<Item = (&Arc<Chain>, &Endpoint)> {
        self.in_any_order().flat_map(|chain| chain.endpoints.iter().map(move |endpoint| (chain, endpoint)))
    }
}

impl Endpoint {
    /// How calls reach it.
    pub fn call_protocol(&self) -> Protocol {
        if self.http.is_some() { Protocol::Http } else { Protocol::Ws }
    }

    /// What it was used for, for comparison within its tier: utilisation where it has a ceiling that `throttling`
    /// enforces and everybody compared has one, else the 24-hour count; both per weight.
    pub fn use_score(&self, now: u64, by_ceiling: bool) -> f64 {
        let by_count = || self.account.gate.use_24h(now) as f64;
        let used =
            if by_ceiling { self.account.gate.utilisation(now).unwrap_or_else(by_count) } else { by_count() };
        used / self.weight
    }
}

impl Chain {
    fn is_large(&self) -> bool {
        self.tiers.iter().any(Tier::is_large)
    }

    /// Of this chain alone: see [`Fleet::put_in_order`].
    pub fn put_in_order(&self, now: u64) {
        for tier in self.tiers.iter().filter(|tier| tier.is_large()) {
            let mut order: Vec<u16> = tier.order.iter().map(|index| index.load(Relaxed)).collect();
            order.sort_by(|a, b| {
                let score = |index: &u16| self.at(*index).use_score(now, false);
                score(a).total_cmp(&score(b))
            });
            // Readers may see an index twice and another one not at all for a moment; the next request sees it.
            tier.order.iter().zip(order).for_each(|(place, index)| place.store(index, Relaxed));
        }
    }

    /// The endpoint at `index`, which must come from this chain.
    pub fn at(&self, index: u16) -> &Endpoint {
        &self.endpoints[usize::from(index)]
    }
}
