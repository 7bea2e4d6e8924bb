//! Who is probed by this process, what a probe's answer does here, and what other processes are told of it. The
//! schedule and the meaning of results are `health`'s, when a parked account is back is `recovery`'s.
//!
//! In a deployment one process checks health: the one that holds a lease in the shared store. All others go by what it
//! tells. Parked accounts are probed by whoever claims them first.

mod accounts;
mod checks;
mod duty;
mod first;
mod host;
pub mod metrics;
mod news;
mod sound;

pub use duty::Duty;
pub use first::tell as tell_first_checks;
pub use host::Host;
pub use news::{learn, tell_ejections};

use accounts::Parked;
use checks::Checks;
use fleet::{Chain, Endpoint};
use health::run_recoveries;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use sound::Sounder;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use upstream::Connector;

/// How often large tiers are put in order.
const REFRESH: Duration = Duration::from_millis(100);

/// One endpoint over one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Target {
    /// The endpoint's number.
    endpoint: u32,
    protocol: Protocol,
}

/// HTTP first: it is what calls go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Protocol {
    Http,
    Ws,
}

impl Protocol {
    const ALL: [Protocol; 2] = [Protocol::Http, Protocol::Ws];

    fn as_str(self) -> &'static str {
        match self {
            Protocol::Http => "http",
            Protocol::Ws => "ws",
        }
    }
}

impl Target {
    /// The protocol that says most of an endpoint: HTTP where it has it.
    fn of(endpoint: &Endpoint) -> Target {
        let protocol = if endpoint.http.is_some() { Protocol::Http } else { Protocol::Ws };
        Target { endpoint: endpoint.number, protocol }
    }

    fn all_of(endpoint: &Endpoint) -> impl Iterator<Item = Target> + use<> {
        let http = endpoint.http.is_some().then_some(Protocol::Http);
        let ws = endpoint.ws.is_some().then_some(Protocol::Ws);
        let number = endpoint.number;
        http.into_iter().chain(ws).map(move |protocol| Target { endpoint: number, protocol })
    }
}

/// Checks health as far as `duty` says, and brings parked accounts back, until the process ends.
pub async fn run<H: Host>(host: Arc<H>, connector: Connector, duty: Duty) {
    let (sounder, soundings) = Sounder::new();
    tokio::task::spawn_local(sound::answer(Arc::clone(&host), connector, soundings));
    let (changes, changed) = watch::channel(0);
    let checks = Arc::new(Checks::new(Arc::clone(&host), sounder.clone()));
    let accounts = Arc::new(Parked { host: Arc::clone(&host), sounder });
    let checking = duty::run(Arc::clone(&host), checks, duty, changed.clone());
    let recovering = run_recoveries(accounts, changed, SmallRng::from_os_rng());
    tokio::pin!(checking, recovering);
    let mut refresh = tokio::time::interval(REFRESH);
    loop {
        tokio::select! {
            () = &mut checking => return,
            () = &mut recovering => return,
            () = host.woken() => changes.send_modify(|count| *count += 1),
            _ = refresh.tick() => host.fleet().put_in_order(fleet::clock::unix_ms()),
        }
    }
}

/// A newer block of one endpoint: the chain's head is what two of them agree on.
fn saw_block(chain: &Chain, endpoint: &Endpoint, block: u64) {
    endpoint.state.saw_block(block);
    let blocks = chain.endpoints.iter().map(|endpoint| endpoint.state.block()).filter(|block| *block > 0);
    chain.head.set(health::agreed_head(blocks).unwrap_or(0));
}
