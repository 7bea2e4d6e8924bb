//! Scheduled probes: sent, counted, and applied. A failure says nothing while our own network is down.

use crate::host::Host;
use crate::metrics as names;
use crate::sound::Sounder;
use crate::{Protocol, Target, news, saw_block};
use fleet::{Chain, Endpoint};
use health::{Measured, OwnNetwork, Prober, Standing};
use metrics::counter;
use recovery::Kind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// Sends scheduled probes and applies what they find.
pub(crate) struct Checks<H> {
    host: Arc<H>,
    sounder: Sounder,
    /// Whom we reach, by provider: is it them, or is it us?
    network: Mutex<OwnNetwork<Target, Box<str>>>,
}

impl<H: Host> Prober for Checks<H> {
    type Target = Target;

    async fn probe(&self, target: Target) -> Standing {
        let fleet = self.host.fleet();
        let Some((chain, endpoint)) =
            fleet.endpoints().find(|(_, endpoint)| endpoint.number == target.endpoint)
        else {
            self.network().forget(&target);
            return Standing::Skipped;
        };
        let now = fleet::clock::unix_ms();
        if endpoint.account.park.is_parked(now) || endpoint.address.is_parked(now) {
            return Standing::Skipped;
        }
        let sync = self.host.settings().health_check_sync_status && !endpoint.skip_sync_check;
        let begun = Instant::now();
        let Some(measured) = self.sounder.sound(target, sync).await else { return Standing::Bad };
        let who = [("chain", &*chain.name), ("endpoint", &*endpoint.id)];
        self.host.histograms().series(names::CHECK_DURATION, &who).record(begun.elapsed());
        count(chain, endpoint, target.protocol, &measured);
        self.apply(chain, endpoint, target.protocol, &measured, now)
    }
}

impl<H: Host> Checks<H> {
    pub(crate) fn new(host: Arc<H>, sounder: Sounder) -> Checks<H> {
        Checks { host, sounder, network: Mutex::default() }
    }

    /// Whether a failure says something about the endpoint: not while we reach hardly anybody.
    fn is_about_them(&self, endpoint: &Endpoint, protocol: Protocol, reached: bool) -> bool {
        let mut network = self.network();
        network.tried(Target { endpoint: endpoint.number, protocol }, news::provider(endpoint), reached);
        !network.is_down()
    }

    fn network(&self) -> MutexGuard<'_, OwnNetwork<Target, Box<str>>> {
        self.network.lock().expect("no holder of this lock can panic")
    }

    /// A key that was refused on a client's call and again on a probe is not asked with for a while.
    fn refused_key(&self, chain: &Chain, endpoint: &Endpoint, now: u64) {
        if endpoint.state.key_is_suspect() {
            endpoint.park(chain, Kind::Auth, None, now, rand::random());
            self.host.wake();
        }
    }

    fn apply(
        &self,
        chain: &Chain,
        endpoint: &Endpoint,
        protocol: Protocol,
        measured: &Measured,
        begun: u64,
    ) -> Standing {
        let now = fleet::clock::unix_ms();
        if let Some(limited) = measured.limited {
            endpoint.park(chain, limited.kind, limited.hint, now, rand::random());
            let kind = if matches!(limited.kind, Kind::Quota { .. }) { "quota" } else { "burst" };
            let (chain, endpoint) = (chain.name.to_string(), endpoint.id.to_string());
            counter!(names::HITS, "chain" => chain, "endpoint" => endpoint, "kind" => kind).increment(1);
            self.host.wake();
        }
        if measured.auth {
            self.refused_key(chain, endpoint, now);
        }
        endpoint.state.settle_key_suspicion();
        if let Some(block) = measured.block {
            saw_block(chain, endpoint, block);
        }
        let Some(ok) = measured.health() else { return Standing::Skipped };
        if !self.is_about_them(endpoint, protocol, measured.reached) && !ok {
            return Standing::Unsettled;
        }
        let (change, standing) = match protocol {
            Protocol::Http => (endpoint.state.probed(begun, now, ok), endpoint.state.standing()),
            Protocol::Ws => (endpoint.state.probed_ws(begun, now, ok), endpoint.state.standing_ws()),
        };
        news::tell(&*self.host, chain, endpoint, protocol, ok, begun);
        if let Some(change) = change {
            let protocol = protocol.as_str();
            tracing::info!(chain = %chain.name, endpoint = %endpoint.id, protocol, ?change, "health changed");
        }
        standing
    }
}

fn count(chain: &Chain, endpoint: &Endpoint, protocol: Protocol, measured: &Measured) {
    let result = match (measured.health(), measured.reached) {
        (Some(true), _) => "good",
        (None, _) => "limited",
        (Some(false), true) => "bad",
        (Some(false), false) => "unreachable",
    };
    let (chain, endpoint) = (chain.name.to_string(), endpoint.id.to_string());
    counter!(names::CHECKS, "chain" => chain, "endpoint" => endpoint, "protocol" => protocol.as_str(), "result" => result)
        .increment(1);
}

/// What a limit that a probe met is, for `recovery`.
pub(crate) fn kind_of(judgement: &detect::Judgement) -> Kind {
    match (judgement.verdict, judgement.scope) {
        (detect::Verdict::QuotaExhausted, _) => {
            Kind::Quota { daily: judgement.detail == detect::Detail::QuotaDaily }
        }
        (_, detect::Scope::Address) => Kind::Address,
        _ => Kind::Burst,
    }
}
