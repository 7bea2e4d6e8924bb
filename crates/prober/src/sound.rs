//! Sends a probe to an endpoint. Connections belong to one thread, so whoever wants a probe asks the task that owns
//! them.

use crate::checks::kind_of;
use crate::host::Host;
use crate::{Protocol as Over, Target};
use bytes::Bytes;
use detect::{Head, Judgement, Protocol, Rules, Verdict};
use fleet::{Endpoint, PROBE_TIMEOUT};
use health::{Answer, Call, Limited, Measured, Said, measure};
use http::HeaderMap;
use ledger::{Cost, Sender as Whose};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use upstream::{Connector, Heard, Pools, ask_over_socket, by};

/// The largest answer to a probe that is read.
const MOST: usize = 64 * 1024;
/// How often connections that are not needed any more are looked for.
const TIDY: Duration = Duration::from_secs(1);

pub(crate) struct Job {
    target: Target,
    sync: bool,
    reply: oneshot::Sender<Measured>,
}

/// Asks for probes.
#[derive(Clone)]
pub(crate) struct Sounder(mpsc::UnboundedSender<Job>);

impl Sounder {
    pub(crate) fn new() -> (Sounder, mpsc::UnboundedReceiver<Job>) {
        let (jobs, received) = mpsc::unbounded_channel();
        (Sounder(jobs), received)
    }

    /// Probes an endpoint; with `sync` it is asked for its sync status as well. `None`: it is gone.
    pub(crate) async fn sound(&self, target: Target, sync: bool) -> Option<Measured> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Job { target, sync, reply }).ok()?;
        answer.await.ok()
    }
}

/// Answers jobs; their number is bounded by those who ask.
pub(crate) async fn answer<H: Host>(
    host: Arc<H>,
    connector: Connector,
    mut jobs: mpsc::UnboundedReceiver<Job>,
) {
    let line = Rc::new(Line { host, pools: Pools::new(connector.clone()), connector });
    let mut tidying = tokio::time::interval(TIDY);
    loop {
        tokio::select! {
            job = jobs.recv() => match job {
                Some(job) => drop(tokio::task::spawn_local(Rc::clone(&line).take(job))),
                None => return,
            },
            _ = tidying.tick() => line.tidy(),
        }
    }
}

/// The connections that probes go over.
struct Line<H> {
    host: Arc<H>,
    pools: Pools,
    connector: Connector,
}

impl<H: Host> Line<H> {
    async fn take(self: Rc<Line<H>>, job: Job) {
        let fleet = self.host.fleet();
        let found = fleet.endpoints().find(|(_, endpoint)| endpoint.number == job.target.endpoint);
        if let Some((chain, endpoint)) = found {
            let probe = Probe {
                pools: &self.pools,
                connector: &self.connector,
                rules: &chain.tables.rules,
                endpoint,
                protocol: job.target.protocol,
            };
            let measured = probe.both_calls(job.sync).await;
            // Whoever asked may have given up.
            let _ = job.reply.send(measured);
        }
    }

    /// Looks at every connection: too much to do after each probe.
    fn tidy(&self) {
        let fleet = self.host.fleet();
        self.pools.tidy(std::time::Instant::now(), |number| fleet.has_endpoint(number));
    }
}

/// One probe of one endpoint.
struct Probe<'a> {
    pools: &'a Pools,
    connector: &'a Connector,
    rules: &'a Rules,
    endpoint: &'a Endpoint,
    protocol: Over,
}

impl Probe<'_> {
    async fn both_calls(&self, sync: bool) -> Measured {
        let (said, body) = self.one_call(Call::BlockNumber).await;
        let block = Answer { said, body: &body };
        if !sync || said != Said::Answered {
            return measure(block, None);
        }
        let (said, body) = self.one_call(Call::Syncing).await;
        measure(block, Some(Answer { said, body: &body }))
    }

    async fn one_call(&self, call: Call) -> (Said, Bytes) {
        self.charge();
        let exchange = async {
            match self.protocol {
                Over::Http => self.over_http(call).await,
                Over::Ws => self.over_socket(call).await,
            }
        };
        match by(Instant::now() + PROBE_TIMEOUT, exchange).await {
            Some(Ok(heard)) => heard,
            Some(Err(_)) | None => (Said::Unreached, Bytes::new()),
        }
    }

    fn charge(&self) {
        self.endpoint.account.gate.charge(Cost::requests(1), Whose::Probe, fleet::clock::unix_ms());
    }

    async fn over_http(&self, call: Call) -> Result<(Said, Bytes), String> {
        let Some(target) = &self.endpoint.http else { return Err("no HTTP URL".into()) };
        let body = call.body(1).into();
        let (head, body) = self.pools.ask(self.endpoint.number, target, body, MOST, || self.charge()).await?;
        let status = Some(head.status.as_u16());
        let seen = Head { status, ..seen(self.endpoint, Protocol::Http, call, &head.headers) };
        Ok((said(&self.rules.judge(&seen, &body)), body))
    }

    async fn over_socket(&self, call: Call) -> Result<(Said, Bytes), String> {
        let Some(target) = &self.endpoint.ws else { return Err("no WebSocket URL".into()) };
        let none = HeaderMap::new();
        let seen = seen(self.endpoint, Protocol::Ws, call, &none);
        Ok(match ask_over_socket(self.connector, target, call.body(1)).await? {
            Heard::Message(body) => (said(&self.rules.judge(&seen, &body)), body),
            Heard::Refused { status, headers, body } => {
                let seen = Head { status: Some(status), headers: &headers, ..seen };
                (said(&self.rules.judge(&seen, &body)), Bytes::new())
            }
            Heard::Closed { code, reason } => {
                let seen = Head { ws_close: Some((code, &reason)), ..seen };
                (said(&self.rules.judge(&seen, b"")), Bytes::new())
            }
        })
    }
}

/// What is known of an answer before it is read.
fn seen<'a>(endpoint: &'a Endpoint, protocol: Protocol, call: Call, headers: &'a HeaderMap) -> Head<'a> {
    Head {
        provider: Some(&*endpoint.provider).filter(|provider| !provider.is_empty()),
        host: endpoint.http.as_ref().or(endpoint.ws.as_ref()).map(|target| &*target.host),
        method: Some(call.method()),
        ..Head::new(protocol, headers, fleet::clock::unix_ms())
    }
}

fn said(judgement: &Judgement) -> Said {
    match judgement.verdict {
        Verdict::Ok | Verdict::ClientFault => Said::Answered,
        Verdict::Capability => Said::Refused,
        Verdict::RateLimited | Verdict::QuotaExhausted => {
            Said::Limited(Limited { kind: kind_of(judgement), hint: judgement.wait })
        }
        Verdict::Auth => Said::Auth,
        Verdict::Syncing => Said::Syncing,
        Verdict::UpstreamFault => Said::Fault,
    }
}
