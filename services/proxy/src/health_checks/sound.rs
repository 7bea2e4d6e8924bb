//! Sends a probe to an endpoint. Connections belong to one thread, so whoever wants a probe asks the task that owns
//! them.

use super::kind_of;
use crate::app::App;
use crate::exchange::unjudged;
use crate::fleet::{Endpoint, PROBE_TIMEOUT};
use crate::upstream::{Connector, Pools};
use bytes::Bytes;
use detect::{Head, Judgement, Protocol, Verdict};
use health::{Answer, Call, Limited, Measured, Said, measure};
use ledger::{Cost, Sender as Whose};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// The largest answer to a probe that is read.
const MOST: usize = 64 * 1024;

/// What came back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sounding {
    pub(super) measured: Measured,
}

pub(super) struct Job {
    endpoint: u32,
    sync: bool,
    reply: oneshot::Sender<Sounding>,
}

/// Asks for probes.
#[derive(Clone)]
pub(super) struct Sounder(mpsc::UnboundedSender<Job>);

impl Sounder {
    pub(super) fn new() -> (Sounder, mpsc::UnboundedReceiver<Job>) {
        let (jobs, received) = mpsc::unbounded_channel();
        (Sounder(jobs), received)
    }

    /// Probes an endpoint; with `sync` it is asked for its sync status as well. `None`: it is gone.
    pub(super) async fn sound(&self, endpoint: u32, sync: bool) -> Option<Sounding> {
        let (reply, answer) = oneshot::channel();
        self.0.send(Job { endpoint, sync, reply }).ok()?;
        answer.await.ok()
    }
}

/// Answers jobs; their number is bounded by those who ask.
pub(super) async fn answer(app: Arc<App>, connector: Connector, mut jobs: mpsc::UnboundedReceiver<Job>) {
    let pools = Rc::new(Pools::new(connector));
    while let Some(job) = jobs.recv().await {
        let (app, pools) = (Arc::clone(&app), Rc::clone(&pools));
        tokio::task::spawn_local(async move {
            let fleet = app.fleet.load_full();
            let found = fleet.endpoints().find(|(_, endpoint)| endpoint.number == job.endpoint);
            if let Some((_, endpoint)) = found {
                let sounding = both_calls(&app, &pools, endpoint, job.sync).await;
                // Whoever asked may have given up.
                let _ = job.reply.send(sounding);
            }
            let kept = |number| fleet.endpoints().any(|(_, endpoint)| endpoint.number == number);
            pools.tidy(std::time::Instant::now(), kept);
        });
    }
}

async fn both_calls(app: &App, pools: &Pools, endpoint: &Endpoint, sync: bool) -> Sounding {
    let (said, body) = one_call(app, pools, endpoint, Call::BlockNumber).await;
    let block = Answer { said, body: &body };
    let measured = match sync && said == Said::Answered {
        true => {
            let (said, body) = one_call(app, pools, endpoint, Call::Syncing).await;
            measure(block, Some(Answer { said, body: &body }))
        }
        false => measure(block, None),
    };
    Sounding { measured }
}

async fn one_call(app: &App, pools: &Pools, endpoint: &Endpoint, call: Call) -> (Said, Bytes) {
    endpoint.account.gate.charge(Cost::requests(1), Whose::Probe, crate::clock::unix_ms());
    let exchange = unjudged(pools, endpoint, call.body(1).into(), MOST);
    match tokio::time::timeout(PROBE_TIMEOUT, exchange).await {
        Err(_) | Ok(Err(_)) => (Said::Unreached, Bytes::new()),
        Ok(Ok((head, body))) => {
            let seen = Head {
                provider: Some(&*endpoint.provider).filter(|provider| !provider.is_empty()),
                host: endpoint.http.as_ref().map(|target| &*target.host),
                method: Some(call.method()),
                status: Some(head.status.as_u16()),
                ..Head::new(Protocol::Http, &head.headers, crate::clock::unix_ms())
            };
            (said(&app.rules.judge(&seen, &body)), body)
        }
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
