//! How far the gates are tightened while the process runs: one source of flags, chosen at the start and read again and
//! again. A source that is away changes nothing; what it says is never more than the gate's ceiling.

mod file;
mod launchdarkly;
mod ofrep;
mod provider;
mod value;

pub(crate) use provider::{Provider, Source};

use crate::app::App;
use crate::gates::{Change, Gates, NAMESPACE};
use crate::metrics::{FLAGS_PANICS, FLAGS_READY};
use ::metrics::{counter, gauge};
use futures_util::FutureExt;
use rand::Rng;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// How often a source is read.
const PERIOD: Duration = Duration::from_secs(5);
/// Added to each period, so that replicas do not come all at once: at most a tenth of it.
const JITTER: u32 = 10;
/// No reading takes longer.
const READ: Duration = Duration::from_secs(2);
/// A change is in force on every replica within this.
const IN_FORCE: Duration = Duration::from_secs(6);
const _: () = assert!(PERIOD.as_millis() + PERIOD.as_millis() / (JITTER as u128) < IN_FORCE.as_millis());
/// How long the start waits for the first values.
const FIRST: Duration = Duration::from_secs(3);
/// Between two attempts at the start.
const AGAIN: Duration = Duration::from_millis(100);
/// How long the end waits for a source to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Values by flag, as a source delivers them.
pub(crate) type Values = BTreeMap<String, Value>;

/// Where values come from.
pub(crate) trait Read {
    /// All values; at least those of `flags`. The error says why there are none, and quotes no secret.
    async fn read(&mut self, flags: &[Box<str>]) -> Result<Values, String>;

    /// What is to be done before the process ends.
    async fn close(&mut self) {}
}

/// A source, and what it said last.
pub(crate) struct Flags<S> {
    source: S,
    provider: &'static str,
    /// The last values: what is wrong with one is said once.
    last: Values,
    /// Said, and not over yet.
    outage: bool,
    period: Duration,
}

/// Follows the flags; whoever holds it can stop it.
pub(crate) struct Following {
    stop: oneshot::Sender<()>,
    pub(crate) task: tokio::task::JoinHandle<()>,
}

/// Waits for the first values, as long as a start may, and follows them from then on.
pub(crate) async fn follow(app: Arc<App>, source: Source) -> Following {
    let mut flags = Flags::new(source, app.settings.headgate_flags_provider.as_str(), PERIOD);
    flags.first(&app.gates).await;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::task::spawn_local(async move { flags.run(&app.gates, stopped).await });
    Following { stop, task }
}

impl Following {
    /// Lets the source say goodbye, but not for long.
    pub(crate) async fn stop(self) {
        // A task that ended by itself has nobody to hear this.
        let _ = self.stop.send(());
        if timeout(GOODBYE, self.task).await.is_err() {
            tracing::warn!("the provider of flags did not end in time");
        }
    }
}

impl<S: Read> Flags<S> {
    fn new(source: S, provider: &'static str, period: Duration) -> Flags<S> {
        Flags { source, provider, last: Values::new(), outage: false, period }
    }

    /// Reads until there are values, or as long as a start may wait for them.
    async fn first(&mut self, gates: &Gates) {
        let deadline = Instant::now() + FIRST;
        loop {
            let left = || deadline.saturating_duration_since(Instant::now());
            match self.refresh(gates, left().min(READ)).await {
                Ok(()) => return,
                Err(why) if left().is_zero() => return self.lost(&why),
                // A store that is being connected to is not an outage yet.
                Err(_) => sleep(AGAIN.min(left())).await,
            }
        }
    }

    async fn run(mut self, gates: &Gates, mut stopped: oneshot::Receiver<()>) {
        let mut tick = interval(self.period);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        tick.tick().await;
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => return self.source.close().await,
                () = gates.chain_came() => {}
                _ = tick.tick() => {
                    let most = self.period / JITTER;
                    sleep(rand::rng().random_range(Duration::ZERO..=most)).await;
                }
            }
            if let Err(why) = self.refresh(gates, READ).await {
                self.lost(&why);
            }
        }
    }

    /// Reads once and puts in force what was read. A bug in one reading must not be the last one.
    async fn refresh(&mut self, gates: &Gates, limit: Duration) -> Result<(), String> {
        let panics = counter!(FLAGS_PANICS);
        let flags: Vec<Box<str>> = gates.all().iter().map(|gate| gate.flag.clone()).collect();
        let reading = AssertUnwindSafe(self.source.read(&flags)).catch_unwind();
        let read = match timeout(limit, reading).await {
            Ok(Ok(read)) => read,
            Err(_) => Err("no answer in time".into()),
            Ok(Err(_)) => {
                panics.increment(1);
                tracing::error!(provider = self.provider, "reading flags panicked");
                Err("a bug of ours".into())
            }
        };
        gauge!(FLAGS_READY, "provider" => self.provider).set(if read.is_ok() { 1.0 } else { 0.0 });
        self.take(gates, &flags, read?);
        Ok(())
    }

    fn lost(&mut self, why: &str) {
        if !std::mem::replace(&mut self.outage, true) {
            let provider = self.provider;
            tracing::warn!(provider, why, "flags cannot be read; what was read before stays in force");
        }
    }

    fn take(&mut self, gates: &Gates, flags: &[Box<str>], values: Values) {
        if std::mem::take(&mut self.outage) {
            tracing::info!(provider = self.provider, "flags are read again");
        }
        self.doubt(flags, &values);
        let caps =
            values.iter().filter_map(|(flag, value)| Some((flag.clone(), value::limit(value)?))).collect();
        for Change { gate, from, to } in gates.apply(&caps) {
            let (from, to) = (words(from), words(to));
            tracing::info!(%gate, from, to, provider = self.provider, "the cap changed");
        }
        self.last = values;
    }

    /// Says what will have no effect, when it is new.
    fn doubt(&self, flags: &[Box<str>], values: &Values) {
        let known: BTreeSet<&str> = flags.iter().map(|flag| &**flag).collect();
        let new = values.iter().filter(|(flag, value)| self.last.get(*flag) != Some(*value));
        for (flag, value) in
            new.filter(|(flag, _)| [NAMESPACE, provider::VARIABLE].iter().any(|ours| flag.starts_with(ours)))
        {
            if !known.contains(&**flag) {
                tracing::warn!(flag, "there is no gate of this name: the flag has no effect");
            } else if value::limit(value).is_none() {
                tracing::warn!(flag, "not a whole number of at least 1: the gate stands at its ceiling");
            }
        }
    }
}

fn words(limit: Option<NonZeroU32>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

#[cfg(test)]
mod tests;
