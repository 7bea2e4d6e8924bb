//! An attempt at an endpoint that has only a WebSocket: over the line that its calls share. A batch goes call by call and
//! comes back as one, so that ids of ours suffice to tell answers apart.

use super::{Answer, Ask, Outcome, UnderWay};
use crate::fleet::Endpoint;
use crate::line::Heard;
use crate::request::Request;
use crate::route::{self, Safety};
use bytes::Bytes;
use detect::{Head, Protocol, Verdict};
use futures_util::future::join_all;
use http::{HeaderMap, StatusCode};
use jsonrpc::{Call, Envelope};

/// Asks over the shared line; the answer's verdict is certain, since a message comes whole.
pub(super) async fn exchange(
    request: &Request<'_>,
    endpoint: &Endpoint,
    ask: &Ask<'_>,
    under_way: UnderWay,
) -> Outcome {
    // Held until the answer is here.
    let _under_way = under_way;
    let over = Over { request, endpoint, ask };
    let calls = match jsonrpc::parse(&ask.body, usize::MAX) {
        Ok(Envelope::Single(call)) => return over.single(&call).await,
        Ok(Envelope::Batch(calls)) => calls,
        Err(_) => return Outcome::Unreachable("not a call".into()),
    };
    let calls: Vec<Call> = calls.into_iter().flatten().collect();
    over.batch(&calls).await
}

struct Over<'a> {
    request: &'a Request<'a>,
    endpoint: &'a Endpoint,
    ask: &'a Ask<'a>,
}

impl Over<'_> {
    async fn single(&self, call: &Call) -> Outcome {
        match self.heard(call).await {
            Some(Ok(text)) => self.answer(text),
            Some(Err(outcome)) => outcome,
            None => self.answer(Bytes::from_static(br#"{"jsonrpc":"2.0","id":null,"result":null}"#)),
        }
    }

    async fn batch(&self, calls: &[Call]) -> Outcome {
        let mut texts: Vec<Bytes> = Vec::with_capacity(calls.len());
        for heard in join_all(calls.iter().map(|call| self.heard(call))).await {
            match heard {
                Some(Ok(text)) => texts.push(text),
                Some(Err(outcome)) => return outcome,
                None => {}
            }
        }
        let mut body = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum::<usize>() + 2);
        jsonrpc::array(&mut body, texts.iter().map(|text| &text[..]));
        self.answer(body.into())
    }

    /// The answer with the call's own id; none to a notification.
    async fn heard(&self, call: &Call) -> Option<Result<Bytes, Outcome>> {
        let (chain, body) = (self.request.chain, &self.ask.body);
        let mut endpoints = (0u16..).zip(&chain.endpoints);
        let index = endpoints.find(|(_, endpoint)| endpoint.number == self.endpoint.number)?.0;
        let lines = &self.request.worker.lines;
        let write = |id: Option<&str>| {
            let mut text = Vec::with_capacity(body.len());
            call.write(body, id, &mut text);
            String::from_utf8(text).unwrap_or_default()
        };
        let Some(own) = call.id(body) else {
            lines.tell(chain, index, write(None));
            return None;
        };
        let mut heard = lines.ask(chain, index, |id| write(Some(id))).await;
        if ends_in_order(&heard) && self.may_repeat(call) {
            // The provider's own time limit met a call on its way: no fault, and no reason to fail.
            heard = lines.ask(chain, index, |id| write(Some(id))).await;
        }
        Some(match heard {
            Heard::Answer { text, id } => {
                let start = id.as_ptr().addr() - text.as_ptr().addr();
                Ok(jsonrpc::with_id(&text, start..start + id.len(), own).into())
            }
            Heard::Refused { status, headers, body } => Err(self.refused(status, &headers, body)),
            Heard::Unreachable(how) => Err(Outcome::Unreachable(how)),
            Heard::Closed { code, reason } => Err(self.closed(code, &reason)),
            Heard::Broken(how) => Err(Outcome::Broken(how)),
        })
    }

    fn may_repeat(&self, call: &Call) -> bool {
        route::need_of(call, &self.ask.body, false).safety == Safety::Repeatable
    }

    fn answer(&self, text: Bytes) -> Outcome {
        let none = HeaderMap::new();
        self.judged(self.head(&none), StatusCode::OK, text)
    }

    /// A handshake that was refused: nothing was sent, and what was said may be a limit.
    fn refused(&self, status: u16, headers: &HeaderMap, body: Bytes) -> Outcome {
        let head = Head { status: Some(status), ..self.head(headers) };
        let code = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
        self.if_it_tells(self.judged(head, code, body), format!("the WebSocket was refused with {status}"))
    }

    /// Closed with the call in flight: a limit says that it was not carried out, anything else says nothing.
    fn closed(&self, code: u16, reason: &str) -> Outcome {
        let none = HeaderMap::new();
        let head = Head { ws_close: Some((code, reason)), ..self.head(&none) };
        match self.judged(head, StatusCode::TOO_MANY_REQUESTS, Bytes::new()) {
            Outcome::Answered(answer) if tells(&answer) => Outcome::Answered(answer),
            Outcome::Answered(_) | Outcome::Unreachable(_) | Outcome::Broken(_) | Outcome::TimedOut => {
                Outcome::Broken(format!("the WebSocket was closed with {code}"))
            }
        }
    }

    fn if_it_tells(&self, outcome: Outcome, otherwise: String) -> Outcome {
        match outcome {
            Outcome::Answered(answer) if tells(&answer) => Outcome::Answered(answer),
            Outcome::Answered(_) | Outcome::Unreachable(_) | Outcome::Broken(_) | Outcome::TimedOut => {
                Outcome::Unreachable(otherwise)
            }
        }
    }

    fn judged(&self, head: Head<'_>, status: StatusCode, text: Bytes) -> Outcome {
        let rules = &self.request.chain.tables.rules;
        let mut stream = rules.stream();
        stream.push(rules, &head, &text);
        let judgement = stream.finish(rules, &head);
        let items = stream.items().to_vec();
        Outcome::Answered(Box::new(Answer {
            status,
            exhausted: None,
            batch: self.ask.batch,
            items,
            ..Answer::complete(text, judgement)
        }))
    }

    fn head<'h>(&'h self, headers: &'h HeaderMap) -> Head<'h> {
        Head {
            provider: Some(&*self.endpoint.provider).filter(|provider| !provider.is_empty()),
            host: self.endpoint.ws.as_ref().map(|target| &*target.host),
            method: self.ask.method,
            batch: self.ask.batch,
            ..Head::new(Protocol::Ws, headers, crate::clock::unix_ms())
        }
    }
}

/// Closed as a provider closes for its time limit or a restart.
fn ends_in_order(heard: &Heard) -> bool {
    matches!(heard, Heard::Closed { code: 1000 | 1001 | 1005 | 1012, .. })
}

/// Whether it says that we, or our key, are the reason.
fn tells(answer: &Answer) -> bool {
    answer.judgement.verdict.is_limit() || answer.judgement.verdict == Verdict::Auth
}
