//! A chain to choose from, for benchmarks: selection is too small a part of a request to be seen from outside.

use super::{Choice, Indices, Policy, Wish, select};
use crate::fleet::{Chain, Fleet, build};
use crate::gates::Gates;
use crate::tables::Tables;
use config::{Env, MethodCosts, Selection, Settings, parse_fleet};
use detect::Rules;
use ledger::{Cost, Sender};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::sync::Arc;
use store::{Memory, Turn};

/// An instant, in Unix milliseconds.
const NOW: u64 = 1_800_000_000_000;

/// A chain of healthy endpoints of one tier.
pub struct Choosing {
    chain: Arc<Chain>,
    tried: Indices,
    rng: SmallRng,
}

impl Choosing {
    /// As many endpoints, none of which has a ceiling.
    pub fn among(endpoints: usize) -> Choosing {
        let entry = |n| format!(r#""e{n}":{{"role":"primary","http_url":"http://e{n}.example"}}"#);
        let text = format!(r#"{{"main":{{{}}}}}"#, (0..endpoints).map(entry).collect::<Vec<_>>().join(","));
        let (config, _) = parse_fleet(&text, &Env::default(), &|_| Err(std::io::ErrorKind::NotFound.into()));
        let tables = Arc::new(Tables::new(Rules::builtin(), MethodCosts::builtin()));
        let (settings, memory) = (Settings::default(), Memory::default());
        let gates = Gates::new(&settings);
        let fleet = build(&config, tables, &settings, &memory, &Fleet::default(), &gates, NOW);
        let fleet = fleet.unwrap_or_else(|error| panic!("the benchmark's own fleet: {error}"));
        let chain = Arc::clone(fleet.chains()[0]);
        for endpoint in &chain.endpoints {
            endpoint.state.probed(NOW, NOW, true);
        }
        Choosing { chain, tried: Indices::default(), rng: SmallRng::seed_from_u64(1) }
    }

    /// One selection, and the use that follows it. The index of the chosen endpoint.
    pub fn choose(&mut self) -> Option<u16> {
        let wish = Wish {
            method: "eth_call",
            known_method: true,
            archive: false,
            block: None,
            range: None,
            only: None,
            given_away: false,
            may_try: true,
            may_wait: false,
            turn: Turn::NEWCOMER,
            public: true,
            cost: Cost::requests(1),
            now: NOW,
            tried: &self.tried,
            policy: Policy { selection: Selection::LeastUsed, throttling: true, max_lag: 0 },
        };
        let Choice::Take { index, .. } = select(&self.chain, &wish, &mut self.rng, |_, _| {}) else {
            return None;
        };
        self.chain.at(index).account.gate.charge(Cost::requests(1), Sender::Client, NOW);
        Some(index)
    }
}
