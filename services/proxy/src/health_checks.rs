//! Health inside the process: who is probed, and what a probe's answer does. The schedule and the meaning of
//! results are `health`'s, when a parked account is back is `recovery`'s.

mod accounts;
mod sound;

use crate::app::App;
use crate::fleet::{Chain, Endpoint, Fleet, PROBE_TIMEOUT};
use crate::upstream::Connector;
use crate::{metrics, pages};
use ::metrics::{counter, histogram};
use accounts::Parked;
use health::{
    Command, Measured, OwnNetwork, Prober, Settings, Standing, agreed_head, run_checks, run_recoveries,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use recovery::Kind;
use sound::Sounder;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};

/// How often states that grow old are refreshed and tiers are put in order.
const REFRESH: Duration = Duration::from_millis(100);
/// A probe that outlasts both of its calls' time limits by this much is lost.
const SLACK: Duration = Duration::from_secs(2);

/// One endpoint over one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Target {
    /// The endpoint's number.
    endpoint: u32,
    protocol: Protocol,
}

/// HTTP first: it is what calls go over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Protocol {
    Http,
    Ws,
}

impl Protocol {
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

/// Checks health until the process ends.
pub(crate) async fn run(app: Arc<App>, connector: Connector) {
    let (sounder, soundings) = Sounder::new();
    tokio::task::spawn_local(sound::answer(Arc::clone(&app), connector, soundings));
    let (commands, received) = mpsc::channel(1024);
    let (first_pass, mut checked) = watch::channel(false);
    let (changes, changed) = watch::channel(0);
    let settings = settings(&app.settings);
    let prober =
        Arc::new(Checks { app: Arc::clone(&app), sounder: sounder.clone(), network: Mutex::default() });
    let accounts = Arc::new(Parked { app: Arc::clone(&app), sounder });
    let rng = SmallRng::from_os_rng;
    let targets = targets(&app.fleet.load());
    let checking = run_checks(prober, settings, targets, received, first_pass, rng());
    let recovering = run_recoveries(accounts, changed, rng());
    tokio::pin!(checking, recovering);
    let mut refresh = tokio::time::interval(REFRESH);
    let mut seen = app.fleet.load_full();
    loop {
        tokio::select! {
            () = &mut checking => return,
            () = &mut recovering => return,
            _ = checked.wait_for(|over| *over), if !app.checked.load(Relaxed) => app.checked.store(true, Relaxed),
            () = app.health_woken() => {
                changes.send_modify(|count| *count += 1);
                suspect(&app.fleet.load(), &commands);
            }
            _ = refresh.tick() => {
                let fleet = app.fleet.load_full();
                if !Arc::ptr_eq(&fleet, &seen) && commands.try_send(Command::Retarget(self::targets(&fleet))).is_ok() {
                    seen = Arc::clone(&fleet);
                }
                freshen(&fleet);
                // Only that it was asked counts here.
                let _ = pages::ask_readiness(&app);
            }
        }
    }
}

fn settings(settings: &config::Settings) -> Settings {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    Settings {
        interval_ms: millis(settings.health_check_interval),
        ephemeral_interval_ms: millis(settings.ephemeral_checks_interval),
        concurrency: usize::try_from(settings.health_check_concurrency).unwrap_or(usize::MAX),
        deadline_ms: millis(PROBE_TIMEOUT * 2 + SLACK),
    }
}

fn targets(fleet: &Fleet) -> Vec<Vec<Target>> {
    let of_chain = |chain: &Arc<Chain>| chain.endpoints.iter().flat_map(Target::all_of).collect();
    fleet.chains().into_iter().map(of_chain).collect()
}

/// Endpoints that were just ejected, or whose key was refused, are probed soon.
fn suspect(fleet: &Fleet, commands: &mpsc::Sender<Command<Target>>) {
    for (_, endpoint) in fleet.endpoints() {
        if endpoint.state.rank().is_none() || endpoint.state.key_is_suspect() {
            // A full queue means that the prober is busy; the schedule will come to it.
            let _ = commands.try_send(Command::Suspect(Target::of(endpoint)));
        }
    }
}

/// Recomputes what grows old without an event: ranks, and the order of large tiers.
fn freshen(fleet: &Fleet) {
    let now = crate::clock::unix_ms();
    for (_, endpoint) in fleet.endpoints() {
        endpoint.state.refresh(now);
    }
    fleet.chains().iter().for_each(|chain| chain.put_in_order(now));
}

/// Sends scheduled probes and applies what they find.
struct Checks {
    app: Arc<App>,
    sounder: Sounder,
    /// Whom we reach, by provider: is it them, or is it us?
    network: Mutex<OwnNetwork<Target, Box<str>>>,
}

impl Prober for Checks {
    type Target = Target;

    async fn probe(&self, target: Target) -> Standing {
        let fleet = self.app.fleet.load_full();
        let Some((chain, endpoint)) =
            fleet.endpoints().find(|(_, endpoint)| endpoint.number == target.endpoint)
        else {
            self.network().forget(&target);
            return Standing::Skipped;
        };
        let now = crate::clock::unix_ms();
        if endpoint.account.park.is_parked(now) || endpoint.address.is_parked(now) {
            return Standing::Skipped;
        }
        let sync = self.app.settings.health_check_sync_status && !endpoint.skip_sync_check;
        let begun = Instant::now();
        let Some(measured) = self.sounder.sound(target, sync).await else { return Standing::Bad };
        count(chain, endpoint, target.protocol, &measured, begun.elapsed());
        self.apply(chain, endpoint, target.protocol, &measured, now)
    }
}

impl Checks {
    /// Whether a failure says something about the endpoint: not while we reach hardly anybody.
    fn is_about_them(&self, endpoint: &Endpoint, protocol: Protocol, reached: bool) -> bool {
        let host = endpoint.http.as_ref().or(endpoint.ws.as_ref()).map_or("", |target| &*target.host);
        let provider = if endpoint.provider.is_empty() { host } else { &endpoint.provider };
        let mut network = self.network();
        network.tried(Target { endpoint: endpoint.number, protocol }, provider.into(), reached);
        !network.is_down()
    }

    fn network(&self) -> MutexGuard<'_, OwnNetwork<Target, Box<str>>> {
        self.network.lock().expect("no holder of this lock can panic")
    }

    /// A key that was refused on a client's call and again on a probe is not asked with for a while.
    fn refused_key(&self, chain: &Chain, endpoint: &Endpoint, now: u64) {
        if endpoint.state.key_is_suspect() {
            endpoint.park(chain, Kind::Auth, None, now, rand::random());
            self.app.wake_health();
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
        let now = crate::clock::unix_ms();
        if let Some(limited) = measured.limited {
            endpoint.park(chain, limited.kind, limited.hint, now, rand::random());
            let kind = if matches!(limited.kind, Kind::Quota { .. }) { "quota" } else { "burst" };
            let (chain, endpoint) = (chain.name.to_string(), endpoint.id.to_string());
            counter!(metrics::HITS, "chain" => chain, "endpoint" => endpoint, "kind" => kind).increment(1);
            self.app.wake_health();
        }
        if measured.auth {
            self.refused_key(chain, endpoint, now);
        }
        endpoint.state.settle_key_suspicion();
        if let Some(block) = measured.block {
            endpoint.state.saw_block(block);
            let blocks =
                chain.endpoints.iter().map(|endpoint| endpoint.state.block()).filter(|block| *block > 0);
            chain.head.set(agreed_head(blocks).unwrap_or(0));
        }
        let Some(ok) = measured.health() else { return Standing::Skipped };
        if !self.is_about_them(endpoint, protocol, measured.reached) && !ok {
            return Standing::Unsettled;
        }
        let (change, standing) = match protocol {
            Protocol::Http => (endpoint.state.probed(begun, now, ok), endpoint.state.standing()),
            Protocol::Ws => (endpoint.state.probed_ws(begun, now, ok), endpoint.state.standing_ws()),
        };
        if let Some(change) = change {
            let protocol = protocol.as_str();
            tracing::info!(chain = %chain.name, endpoint = %endpoint.id, protocol, ?change, "health changed");
        }
        standing
    }
}

fn count(chain: &Chain, endpoint: &Endpoint, protocol: Protocol, measured: &Measured, took: Duration) {
    let result = match (measured.health(), measured.reached) {
        (Some(true), _) => "good",
        (None, _) => "limited",
        (Some(false), true) => "bad",
        (Some(false), false) => "unreachable",
    };
    let (chain, endpoint) = (chain.name.to_string(), endpoint.id.to_string());
    let who = [("chain", chain.clone()), ("endpoint", endpoint.clone())];
    histogram!(metrics::CHECK_DURATION, &who).record(took.as_secs_f64());
    counter!(metrics::CHECKS, "chain" => chain, "endpoint" => endpoint, "protocol" => protocol.as_str(), "result" => result)
        .increment(1);
}

/// What a limit that a probe met is, for `recovery`.
fn kind_of(judgement: &detect::Judgement) -> Kind {
    match (judgement.verdict, judgement.scope) {
        (detect::Verdict::QuotaExhausted, _) => {
            Kind::Quota { daily: judgement.detail == detect::Detail::QuotaDaily }
        }
        (_, detect::Scope::Address) => Kind::Address,
        _ => Kind::Burst,
    }
}
