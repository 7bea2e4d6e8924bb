//! Whether this process checks health: always, never, or while it holds the lease that one process of a deployment has.
//! Who is not on duty still confirms with a probe that a key was refused: nobody else knows of it.

use crate::checks::Checks;
use crate::host::Host;
use crate::{Target, news};
use fleet::{Fleet, PROBE_TIMEOUT};
use health::{Command, Prober, Settings, run_checks};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use store::Valkey;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A probe that outlasts both of its calls' time limits by this much is lost.
const SLACK: Duration = Duration::from_secs(2);
/// How often a new fleet is looked for.
const LOOK: Duration = Duration::from_millis(100);
/// Who cannot ask for the lease for this long takes it that nobody can: better two checkers than none.
const ALONE_AFTER: Duration = Duration::from_secs(3);
/// The lease is renewed so many times within its life.
const RENEWALS: u32 = 4;

/// Whether a process checks health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Nobody else does.
    Always,
    /// Whoever holds the lease does.
    Elected,
    /// Another process does.
    Never,
}

/// Checks while on duty.
pub(crate) async fn run<H: Host>(
    host: Arc<H>,
    checks: Arc<Checks<H>>,
    duty: Duty,
    mut changed: watch::Receiver<u64>,
) {
    let (told, mut on_duty) = watch::channel(duty == Duty::Always);
    let electing = elect(&*host, duty, told);
    tokio::pin!(electing);
    loop {
        let active = *on_duty.borrow_and_update();
        crate::metrics::checking(active);
        let term = async {
            if active {
                term(&host, Arc::clone(&checks), &mut changed).await;
            } else {
                confirm_keys(&host, &checks, &mut changed).await;
            }
        };
        tokio::select! {
            () = &mut electing => return,
            () = term => return,
            _ = on_duty.wait_for(|now| *now != active) => {}
        }
        tracing::info!(on_duty = !active, "health checks");
    }
}

/// Keeps the lease, or tries to get it, until dropped.
async fn elect<H: Host>(host: &H, duty: Duty, told: watch::Sender<bool>) {
    let (Duty::Elected, Some(valkey)) = (duty, host.valkey()) else {
        return std::future::pending().await;
    };
    let mut look = tokio::time::interval(LOOK);
    let (mut renew, mut alone_from) = (Instant::now(), Instant::now() + ALONE_AFTER);
    loop {
        let now = look.tick().await;
        let held = if valkey.is_up() {
            alone_from = now + ALONE_AFTER;
            if now < renew {
                continue;
            }
            renew = now + Valkey::checks_lease() / RENEWALS;
            valkey.claim_checks().await
        } else {
            // Once it is back, it must not have to wait for its turn.
            renew = now;
            *told.borrow() || now >= alone_from
        };
        told.send_if_modified(|before| std::mem::replace(before, held) != held);
    }
}

/// Checks health until dropped.
async fn term<H: Host>(host: &Arc<H>, checks: Arc<Checks<H>>, changed: &mut watch::Receiver<u64>) {
    let (commands, received) = mpsc::channel(1024);
    let (first_pass, mut over) = watch::channel(false);
    let mut seen = host.fleet();
    let settings = settings(host.settings());
    let checking =
        run_checks(checks, settings, targets(&seen), received, first_pass, SmallRng::from_os_rng());
    tokio::pin!(checking);
    let mut look = tokio::time::interval(LOOK);
    let mut told = false;
    loop {
        tokio::select! {
            () = &mut checking => return,
            _ = over.wait_for(|over| *over), if !told => {
                told = true;
                host.checked();
            }
            Ok(()) = changed.changed() => {
                news::tell_ejections(&**host);
                suspect(&host.fleet(), &commands);
            }
            _ = look.tick() => {
                if told {
                    host.checked();
                }
                let fleet = host.fleet();
                if !Arc::ptr_eq(&fleet, &seen) && commands.try_send(Command::Retarget(targets(&fleet))).is_ok() {
                    seen = fleet;
                }
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
    let of_chain = |chain: &Arc<fleet::Chain>| chain.endpoints.iter().flat_map(Target::all_of).collect();
    fleet.chains().into_iter().map(of_chain).collect()
}

/// Endpoints that were just ejected, here or elsewhere, or whose key was refused, are probed soon.
fn suspect(fleet: &Fleet, commands: &mpsc::Sender<Command<Target>>) {
    let now = fleet::clock::unix_ms();
    for (_, endpoint) in fleet.endpoints() {
        let warned = endpoint.state.take_warning();
        if warned || endpoint.state.rank(now).is_none() || endpoint.state.key_is_suspect() {
            // A full queue means that the prober is busy; the schedule will come to it.
            let _ = commands.try_send(Command::Suspect(Target::of(endpoint)));
        }
    }
}

/// Probes endpoints whose key was refused on a client's call, each once at a time, and tells whom calls ejected.
async fn confirm_keys<H: Host>(host: &Arc<H>, checks: &Arc<Checks<H>>, changed: &mut watch::Receiver<u64>) {
    let mut flights: JoinSet<Target> = JoinSet::new();
    let mut flying = HashSet::new();
    loop {
        tokio::select! {
            Ok(()) = changed.changed() => {
                news::tell_ejections(&**host);
                for (_, endpoint) in host.fleet().endpoints() {
                    let target = Target::of(endpoint);
                    if endpoint.state.key_is_suspect() && flying.insert(target) {
                        let checks = Arc::clone(checks);
                        flights.spawn(async move {
                            checks.probe(target).await;
                            target
                        });
                    }
                }
            }
            Some(landed) = flights.join_next() => match landed {
                Ok(target) => drop(flying.remove(&target)),
                // A probe that crashed: which one is not known, so all may be tried again.
                Err(_) => flying.clear(),
            },
        }
    }
}
