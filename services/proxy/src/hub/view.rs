//! What the hub is told of the fleet: who has a WebSocket and may be given more, and the blocks they were seen to have.

use super::account::at;
use crate::fleet::Chain;
use crate::select::opening;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use subscriptions::{Candidate, EndpointId, Event};

/// What was told last.
#[derive(Default)]
pub(super) struct View {
    candidates: Vec<Candidate>,
    heads: HashMap<EndpointId, u64>,
}

impl View {
    /// What changed since the last look; `None` for a chain that is served no more.
    pub(super) fn changes(&mut self, chain: Option<&Chain>, now_ms: u64) -> Vec<Event> {
        let candidates = chain.map_or_else(Vec::new, |chain| candidates(chain, now_ms));
        let mut events = Vec::new();
        for candidate in &candidates {
            let block =
                chain.and_then(|chain| at(chain, candidate.endpoint)).map_or(0, |(_, e)| e.state.block());
            if block > 0 && self.heads.insert(candidate.endpoint, block) != Some(block) {
                events.push(Event::Head { endpoint: candidate.endpoint, number: block });
            }
        }
        if candidates != self.candidates {
            self.candidates.clone_from(&candidates);
            events.insert(0, Event::Endpoints(candidates));
        }
        events
    }
}

/// Tier by tier as requests are served, and in each the least used first.
fn candidates(chain: &Chain, now_ms: u64) -> Vec<Candidate> {
    let mut all = Vec::new();
    for tier in &chain.tiers {
        let mut members: Vec<u16> = tier
            .order
            .iter()
            .map(|index| index.load(Relaxed))
            .filter(|index| chain.at(*index).ws.is_some())
            .collect();
        let score = |index: &u16| chain.at(*index).use_score(now_ms, false);
        members.sort_by(|a, b| score(a).total_cmp(&score(b)).then(a.cmp(b)));
        members.dedup();
        all.extend(members.into_iter().map(|index| {
            let endpoint = chain.at(index);
            let id = EndpointId(endpoint.number.into());
            (id, endpoint.state.view_ws(now_ms).usable, opening(endpoint, now_ms).is_none())
        }));
    }
    // If health excludes everybody, it excludes nobody.
    let healthy = all.iter().any(|(_, usable, open)| *usable && *open);
    let eligible = |usable: bool, open: bool| open && (usable || !healthy);
    all.into_iter()
        .map(|(endpoint, usable, open)| Candidate { endpoint, eligible: eligible(usable, open), open })
        .collect()
}
