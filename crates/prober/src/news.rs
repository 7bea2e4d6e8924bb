//! What other processes tell of endpoints, taken over here; and what is told of ours.

use crate::host::Host;
use crate::{Protocol, saw_block};
use fleet::{Chain, Endpoint, Fleet};
use health::{OwnNetwork, Report};
use std::collections::HashMap;
use std::sync::Arc;
use store::{Finding, News};

/// Takes over what others found and whom they ejected.
pub fn learn<H: Host>(host: &H, news: Vec<News>) {
    let fleet = host.fleet();
    let places = places(&fleet);
    let now = fleet::clock::unix_ms();
    let (mut warned, mut fresh) = (false, false);
    for told in news {
        match told {
            News::Found { subject, finding, age_ms } => {
                fresh |= age_ms < fleet::fresh_for_ms(host.settings());
                if let Some((chain, endpoint, protocol)) = places.get(&subject) {
                    adopt(chain, endpoint, *protocol, &finding, now.saturating_sub(age_ms));
                }
            }
            News::Ejected { subject } => {
                if let Some((_, endpoint, _)) = places.get(&subject) {
                    endpoint.state.warned(now);
                    warned = true;
                }
            }
        }
    }
    if fresh {
        host.checked();
    }
    if warned {
        host.wake();
    }
}

/// Tells which endpoints calls ejected here since this was last called; nothing while it may be our own network.
pub fn tell_ejections<H: Host>(host: &H) {
    let Some(valkey) = host.valkey() else { return };
    let fleet = host.fleet();
    let mut network = OwnNetwork::new();
    for (_, endpoint) in fleet.endpoints() {
        network.tried(endpoint.number, provider(endpoint), !endpoint.state.is_ejected());
    }
    for (chain, endpoint) in fleet.endpoints() {
        if endpoint.state.take_ejection() && !network.is_down() {
            valkey.ejected(subject(chain, endpoint, Protocol::Http));
        }
    }
}

/// What this process found, for all others.
pub(crate) fn tell<H: Host>(
    host: &H,
    chain: &Chain,
    endpoint: &Endpoint,
    protocol: Protocol,
    ok: bool,
    begun: u64,
) {
    let Some(valkey) = host.valkey() else { return };
    let now = fleet::clock::unix_ms();
    let view = match protocol {
        Protocol::Http => endpoint.state.probed_view(),
        Protocol::Ws => endpoint.state.probed_view_ws(),
    };
    let finding = Finding {
        healthy: view.unwrap_or(ok),
        ok,
        took_ms: now.saturating_sub(begun),
        block: endpoint.state.block(),
    };
    valkey.found(subject(chain, endpoint, protocol), finding);
}

/// The company, or the host where that is not known.
pub(crate) fn provider(endpoint: &Endpoint) -> Box<str> {
    let host = endpoint.http.as_ref().or(endpoint.ws.as_ref()).map_or("", |target| &*target.host);
    if endpoint.provider.is_empty() { host.into() } else { endpoint.provider.clone() }
}

fn adopt(chain: &Chain, endpoint: &Endpoint, protocol: Protocol, finding: &Finding, measured_at: u64) {
    let Finding { healthy, ok, took_ms, block } = *finding;
    let report = Report { healthy, ok, begun: measured_at.saturating_sub(took_ms), measured_at };
    if block > 0 {
        saw_block(chain, endpoint, block);
    }
    let change = match protocol {
        Protocol::Http => endpoint.state.reported(&report, fleet::clock::unix_ms()),
        Protocol::Ws => endpoint.state.reported_ws(&report, fleet::clock::unix_ms()),
    };
    if let Some(change) = change {
        let protocol = protocol.as_str();
        tracing::info!(chain = %chain.name, endpoint = %endpoint.id, protocol, ?change, "health changed by report");
    }
}

fn subject(chain: &Chain, endpoint: &Endpoint, protocol: Protocol) -> String {
    store::subject(&chain.name, &endpoint.id, protocol.as_str())
}

type Places<'a> = HashMap<String, (&'a Arc<Chain>, &'a Endpoint, Protocol)>;

fn places(fleet: &Fleet) -> Places<'_> {
    let mut places = Places::new();
    for (chain, endpoint) in fleet.endpoints() {
        for protocol in Protocol::ALL {
            places.insert(subject(chain, endpoint, protocol), (chain, endpoint, protocol));
        }
    }
    places
}
