//! What a provider's socket said, judged by `detect` as every answer is, recorded where every attempt is recorded, and
//! put into the hub's words.

use super::account::at;
use crate::fleet::Chain;
use crate::line::Ending;
use crate::record::{At, Attempt, record_socket};
use crate::retry::Ended;
use crate::route::is_known;
use crate::worker::Worker;
use bytes::Bytes;
use detect::{Head, Judgement, Protocol, Verdict};
use http::HeaderMap;
use ledger::Cost;
use std::sync::Arc;
use std::time::{Duration, Instant};
use subscriptions::{Answer, Blame, End, EndpointId};

/// What is known of a call, or of a connect, when its answer comes.
pub(super) struct Sent {
    /// `None`: the connect itself.
    pub(super) method: Option<Box<str>>,
    pub(super) begun: Instant,
    /// Unix milliseconds.
    pub(super) sent_at: u64,
}

impl Sent {
    pub(super) fn now(method: Option<&str>) -> Sent {
        Sent { method: method.map(Into::into), begun: Instant::now(), sent_at: crate::clock::unix_ms() }
    }
}

/// Judges and records what one endpoint says.
pub(super) struct Meaning<'a> {
    pub(super) worker: &'a Worker,
    pub(super) chain: &'a Arc<Chain>,
    pub(super) endpoint: EndpointId,
}

impl Meaning<'_> {
    /// The connect worked, or nobody could be reached.
    pub(super) fn connected(&self, sent: &Sent, reached: bool) {
        let ended = if reached { None } else { Some(Ended::Unreachable) };
        self.record(sent, ended.as_ref());
    }

    /// The handshake was refused; when again, if the provider says so or has had enough.
    pub(super) fn refused(
        &self,
        sent: &Sent,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<Duration> {
        let judgement = self.judge(|head| Head { status: Some(status), headers, ..head }, sent, body)?;
        // A handshake is answered with 101 or it has failed, whatever the body says.
        let judgement = match judgement.verdict {
            Verdict::Ok | Verdict::ClientFault | Verdict::Capability => {
                Judgement { verdict: Verdict::UpstreamFault, ..judgement }
            }
            Verdict::UpstreamFault
            | Verdict::Syncing
            | Verdict::RateLimited
            | Verdict::QuotaExhausted
            | Verdict::Auth => judgement,
        };
        self.record(sent, Some(&Ended::Answered { status, judgement }));
        self.again(&judgement)
    }

    pub(super) fn answered(&self, sent: &Sent, result: Option<Bytes>, frame: Bytes) -> Answer {
        let Some(judgement) = self.judge(|head| head, sent, &frame) else { return Answer::None };
        self.record(sent, Some(&Ended::Answered { status: 200, judgement }));
        let blame = match judgement.verdict {
            Verdict::Ok => return result.map_or(Answer::None, Answer::Result),
            Verdict::ClientFault => Blame::Client,
            Verdict::Capability => Blame::Capability,
            Verdict::RateLimited | Verdict::QuotaExhausted => Blame::Limit { again: self.again(&judgement) },
            Verdict::Auth | Verdict::Syncing | Verdict::UpstreamFault => Blame::Upstream,
        };
        Answer::Error { answer: frame, blame }
    }

    /// A text that is neither an answer nor a notification: some providers say so that they have had enough.
    pub(super) fn said(&self, text: &[u8]) {
        let sent = Sent::now(None);
        let judgement = self.judge(|head| head, &sent, text).filter(|judgement| judgement.verdict.is_limit());
        if let Some(judgement) = judgement {
            self.record(&sent, Some(&Ended::Answered { status: 200, judgement }));
        }
    }

    /// The line has ended. A provider's own time limit and restart are no failure; nobody's vanishing client is.
    pub(super) fn ended(&self, ending: &Ending) -> End {
        let sent = Sent::now(None);
        match ending {
            Ending::Closed { code, reason } => self.closed(&sent, *code, reason),
            Ending::Broken(how) => {
                tracing::debug!(chain = %self.chain.name, endpoint = self.endpoint.0, how, "a provider's WebSocket broke");
                self.record(&sent, Some(&Ended::Broken));
                End::Failed
            }
            Ending::Silent => {
                self.record(&sent, Some(&Ended::TimedOut));
                End::Failed
            }
        }
    }

    fn closed(&self, sent: &Sent, code: u16, reason: &str) -> End {
        let judgement = self.judge(|head| Head { ws_close: Some((code, reason)), ..head }, sent, b"");
        let speaks =
            |judgement: &Judgement| judgement.verdict.is_limit() || judgement.verdict == Verdict::Auth;
        if matches!(code, 1000 | 1001 | 1005 | 1012) && !judgement.as_ref().is_some_and(speaks) {
            return End::Normal;
        }
        tracing::debug!(chain = %self.chain.name, endpoint = self.endpoint.0, code, reason, "a provider closed its WebSocket");
        let ended = judgement.map_or(Ended::Broken, |judgement| Ended::Answered { status: 200, judgement });
        self.record(sent, Some(&ended));
        End::Failed
    }

    fn judge<'h>(
        &self,
        with: impl FnOnce(Head<'h>) -> Head<'h>,
        sent: &'h Sent,
        body: &[u8],
    ) -> Option<Judgement>
    where
        Self: 'h,
    {
        let (_, endpoint) = at(self.chain, self.endpoint)?;
        static NONE: std::sync::LazyLock<HeaderMap> = std::sync::LazyLock::new(HeaderMap::new);
        let head = with(Head {
            method: sent.method.as_deref(),
            ..Head::new(Protocol::Ws, &NONE, crate::clock::unix_ms())
        });
        let head = Head {
            provider: Some(&*endpoint.provider).filter(|provider| !provider.is_empty()),
            host: endpoint.ws.as_ref().map(|target| &*target.host),
            ..head
        };
        Some(self.chain.tables.rules.judge(&head, body))
    }

    /// When an endpoint that has had enough may be asked again: what was recorded of it says so.
    fn again(&self, judgement: &Judgement) -> Option<Duration> {
        let (_, endpoint) = at(self.chain, self.endpoint).filter(|_| judgement.verdict.is_limit())?;
        let now = crate::clock::unix_ms();
        let parked =
            crate::select::opening(endpoint, now).map(|at| Duration::from_millis(at.saturating_sub(now)));
        Some(parked.or(judgement.wait).unwrap_or_default())
    }

    fn record(&self, sent: &Sent, ended: Option<&Ended>) {
        if let Some((index, _)) = at(self.chain, self.endpoint) {
            let method = sent.method.as_deref().unwrap_or("");
            let attempt = Attempt {
                index,
                method,
                known_method: is_known(method),
                cost: Cost::requests(1),
                overflow: false,
                sent_at: sent.sent_at,
                took: sent.begun.elapsed(),
                protocol: Protocol::Ws,
            };
            record_socket(At { worker: self.worker, chain: self.chain }, &attempt, ended);
        }
    }
}
