//! How the first checks went, said once: a wrong URL or key is seen at the start and not by the first client.

use fleet::{Chain, Endpoint, Fleet};
use health::Rank;

/// One line per chain.
pub fn tell(fleet: &Fleet) {
    let now = fleet::clock::unix_ms();
    for chain in fleet.chains() {
        let names = |wanted: Found| names(chain, wanted, now);
        let (good, bad, limited) = (names(Found::Good), names(Found::Bad), names(Found::Limited));
        let unseen = names(Found::Unseen);
        if good.is_empty() {
            tracing::warn!(chain = %chain.name, bad, limited, unseen, "first checks: no endpoint is good");
        } else {
            tracing::info!(chain = %chain.name, good, bad, limited, unseen, "first checks");
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Found {
    Good,
    Bad,
    Limited,
    /// Where another process checks, its findings may not be complete yet.
    Unseen,
}

fn found(endpoint: &Endpoint, now: u64) -> Found {
    let over_http = endpoint.http.is_some();
    let view = if over_http { endpoint.state.view(now) } else { endpoint.state.view_ws(now) };
    match view.rank {
        _ if endpoint.account.park.is_parked(now) || endpoint.address.is_parked(now) => Found::Limited,
        Rank::Good => Found::Good,
        Rank::Unseen => Found::Unseen,
        Rank::ExpiredBad | Rank::Excluded => Found::Bad,
    }
}

fn names(chain: &Chain, wanted: Found, now: u64) -> String {
    let those = chain.endpoints.iter().filter(|endpoint| found(endpoint, now) == wanted);
    those.map(|endpoint| &*endpoint.id).collect::<Vec<_>>().join(", ")
}
