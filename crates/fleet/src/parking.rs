//! What a refusal parks: the account, or everything at the address. The one place that does and says so.

use super::{Chain, Endpoint};
use metrics::counter;
use recovery::{Hit, Kind};
use std::time::Duration;
use store::Change;

/// Accounts and addresses that were parked here, by reason.
pub const PARKS: &str = "headgate_parks_total";

/// Without a ceiling, a hit this soon after an account's return goes on with the episode.
const LONGEST_SPAN_MS: u64 = 60_000;

impl Endpoint {
    /// Parks what a refusal of this `kind` is about, with the wait that the provider stated; `jitter` is chance in 0..=1.
    pub fn park(&self, chain: &Chain, kind: Kind, hint: Option<Duration>, now: u64, jitter: f64) {
        let park = if kind == Kind::Address { &*self.address } else { &self.account.park };
        let gap_ms = self.account.gate.level().map_or(0, |level| level.gap_ms());
        let hit = Hit { now, hint, kind, window_ms: self.longest_window(now), gap_ms };
        if park.hit(&hit, jitter) == Change::Parked {
            let record = park.record();
            tracing::info!(
                chain = %chain.name, endpoint = %self.id, reason = record.reason.as_str(),
                until_unix_ms = record.parked_until, "parked"
            );
            let (chain, endpoint) = (chain.name.to_string(), self.id.to_string());
            counter!(PARKS, "chain" => chain, "endpoint" => endpoint, "reason" => record.reason.as_str())
                .increment(1);
            self.state.leave();
        }
    }

    fn longest_window(&self, now: u64) -> u64 {
        self.account
            .gate
            .snapshot(now)
            .iter()
            .map(|ceiling| ceiling.window_ms)
            .max()
            .unwrap_or(LONGEST_SPAN_MS)
    }
}
