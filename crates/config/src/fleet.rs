//! What an endpoints file says: chains, their endpoints, and the limits of the accounts behind them.
//! Decides what is usable and what is wrong; pure, `${file:…}` is read through a function it is given.

mod accounts;
mod endpoint;
mod fields;
mod limits;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use http::HeaderName;

use crate::env::Env;
use crate::finding::{Finding, quoted};
use crate::interpolate::Sources;
use crate::json::Node;
use crate::secret::{Secret, SecretUrl};
pub use limits::{Capacity, LearningConfig, LearningMode, RecoveryConfig};

/// The chains by name; the name is the path clients use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FleetConfig {
    pub chains: BTreeMap<String, ChainConfig>,
}

impl FleetConfig {
    /// Every endpoint with its chain's name, chains by name, endpoints in the file's order.
    pub fn endpoints(&self) -> impl Iterator<Item = (&str, &EndpointConfig)> {
        self.chains
            .iter()
            .flat_map(|(name, chain)| chain.endpoints.iter().map(move |endpoint| (name.as_str(), endpoint)))
    }
}

/// One chain's endpoints, in the file's order; may be empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainConfig {
    pub endpoints: Vec<EndpointConfig>,
}

/// One endpoint, everything put in. Not disabled: it has at least one URL and its role is what the file says.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointConfig {
    pub id: String,
    /// As written; selects detection rules. May be blank.
    pub provider: String,
    pub role: Role,
    pub archive: bool,
    /// `http` or `https`.
    pub http_url: Option<SecretUrl>,
    /// `ws` or `wss`.
    pub ws_url: Option<SecretUrl>,
    pub skip_sync_check: bool,
    /// What the limits below belong to. `<chain>/<id>` where the file names none.
    pub account: String,
    /// Whether another usable endpoint has the same account.
    pub shared_account: bool,
    /// Share of its tier, above 0, 1 by default.
    pub weight: f64,
    /// Sent upstream with every request, names in lower case.
    pub headers: Vec<(HeaderName, Secret)>,
    pub private: bool,
    /// Most blocks one `eth_getLogs` may span here.
    pub max_block_range: Option<u64>,
    /// None: no block in the file. Some: what the block leaves out has the predecessor's defaults.
    pub recovery: Option<RecoveryConfig>,
    /// All hold. Empty: the ceiling is learned. One entry per window, in order of their windows.
    pub capacity: Vec<Capacity>,
    pub learning: LearningConfig,
    /// Why the endpoint must not be used or probed.
    pub disabled: Option<String>,
}

/// In which order endpoints are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Primary,
    Fallback,
    Public,
}

impl Role {
    pub const WORDS: &'static [&'static str] = &["primary", "fallback", "public"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Fallback => "fallback",
            Self::Public => "public",
        }
    }

    /// The role that `word` names, in any case.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Primary, Self::Fallback, Self::Public]
            .into_iter()
            .find(|r| r.as_str().eq_ignore_ascii_case(word))
    }
}

/// The path of findings about the file as a whole; [`crate::load`] puts the file's name in its place.
pub(crate) const FILE: &str = "endpoints file";

/// Chain names whose paths are taken.
const RESERVED: [&str; 4] = ["health", "ready", "metrics", "status"];

/// Reads the text of an endpoints file. What is wrong stands in the findings; an error among them means
/// the fleet must not be used.
pub fn parse_fleet(
    text: &str,
    env: &Env,
    files: &dyn Fn(&Path) -> io::Result<String>,
) -> (FleetConfig, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut fleet = FleetConfig::default();
    let root = Node::parse(text).unwrap_or_else(|error| {
        findings.push(Finding::error(FILE, format!("not JSON: {error}")));
        Node::Null
    });
    let chains = members_or_error(&root, FILE, "an object of chains", &mut findings);
    for (name, node) in last_of_each(chains, FILE, "chain", &mut findings) {
        add_chain(&mut fleet, name, node, Sources { env, files }, &mut findings);
    }
    accounts::settle(&mut fleet, &mut findings);
    if fleet.endpoints().all(|(_, endpoint)| endpoint.disabled.is_some())
        && !findings.iter().any(Finding::is_error)
    {
        findings.push(Finding::error(FILE, "no endpoint in it can be used"));
    }
    (fleet, findings)
}

fn add_chain(
    fleet: &mut FleetConfig,
    name: &str,
    node: &Node,
    sources: Sources<'_>,
    findings: &mut Vec<Finding>,
) {
    if !usable_chain_name(name, findings) {
        return;
    }
    let mut chain = ChainConfig::default();
    let endpoints = members_or_error(node, name, "an object of endpoints", findings);
    for (id, node) in last_of_each(endpoints, name, "endpoint", findings) {
        chain.endpoints.push(endpoint::read(name, id, node, sources, findings));
    }
    if chain.endpoints.iter().all(|endpoint| endpoint.disabled.is_some()) {
        findings.push(Finding::warning(name, "the chain has no endpoint that can be used"));
    }
    fleet.chains.insert(name.to_owned(), chain);
}

fn usable_chain_name(name: &str, findings: &mut Vec<Finding>) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if RESERVED.contains(&name) {
        findings.push(Finding::error(name, "the name is reserved for a route of our own"));
    } else if name.is_empty() {
        findings.push(Finding::warning(FILE, "a chain without a name is left out: no path leads to it"));
    } else if !name.chars().all(plain) || name.chars().all(|c| c == '.') {
        let message = format!(
            "the chain's name {} has other characters than letters, digits, '-', '_' and '.'; clients must percent-encode them",
            quoted(name)
        );
        findings.push(Finding::warning(name, message));
    }
    !RESERVED.contains(&name) && !name.is_empty()
}

/// The members of what must be an object; none, and an error, where it is something else.
fn members_or_error<'n>(
    node: &'n Node,
    path: &str,
    wanted: &str,
    findings: &mut Vec<Finding>,
) -> &'n [(String, Node)] {
    node.members(wanted).unwrap_or_else(|message| {
        findings.push(Finding::error(path, message));
        &[]
    })
}

/// Each name once, with the value given last, in the order of first mention.
fn last_of_each<'n>(
    members: &'n [(String, Node)],
    path: &str,
    what: &str,
    findings: &mut Vec<Finding>,
) -> Vec<(&'n str, &'n Node)> {
    let mut place = BTreeMap::new();
    let mut unique: Vec<(&str, &Node)> = Vec::with_capacity(members.len());
    for (name, node) in members {
        match place.get(name.as_str()) {
            Some(&at) => {
                let message = format!("the {what} {} is there twice; the last one counts", quoted(name));
                findings.push(Finding::warning(path, message));
                unique[at] = (name.as_str(), node);
            }
            None => {
                place.insert(name.as_str(), unique.len());
                unique.push((name.as_str(), node));
            }
        }
    }
    unique
}
