//! One message of a client: answered as the same body over HTTP would be, as one text with the client's own id.

use crate::fleet::Chain;
use crate::net::Body;
use crate::reply::Problem;
use crate::rpc;
use crate::why::RequestId;
use crate::worker::Worker;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use jsonrpc::Envelope;
use ledger::Cost;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Answers up to this size are looked at for their id; who sends more than this echoes it.
const LOOKED_AT: usize = 1 << 20;

/// Where the calls of one socket go.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) worker: Rc<Worker>,
    pub(super) chain: Arc<str>,
    pub(super) archive: bool,
    /// Who opened the socket; `None`: everybody may.
    pub(super) client: Option<crate::caller::Caller>,
}

impl Caller {
    /// The answer to `body`; none to notifications.
    pub(super) async fn answer(self, body: Bytes, prefer: Option<u32>) -> Option<Utf8Bytes> {
        let id = self.worker.next_id();
        // A bug in one call must not end the other calls of its worker.
        match AssertUnwindSafe(self.serve(id, prefer, &body)).catch_unwind().await {
            Ok(answer) => answer,
            Err(_) => {
                tracing::error!(%id, "a call on a WebSocket panicked");
                Some(error(&Problem::Internal, &body, id))
            }
        }
    }

    /// Whether who opened the socket may still ask.
    pub(super) fn is_welcome(&self) -> bool {
        let fleet = self.worker.fleet();
        fleet.chain(&self.chain).is_none_or(|chain| self.client_now(chain).is_ok())
    }

    /// Who asks, as the clients file stands now: a key may be withdrawn while its sockets are open.
    fn client_now(&self, chain: &Chain) -> Result<Option<crate::caller::Caller>, Problem> {
        let Some(client) = &self.client else { return Ok(None) };
        client.again(&self.worker.app, chain, crate::clock::unix_ms())
    }

    /// Whether who opened the socket may make this call now, which is charged to its limits as any other.
    pub(super) async fn may_subscribe(&self, method: &str) -> Result<(), Problem> {
        let fleet = self.worker.fleet();
        let chain = fleet.chain(&self.chain).ok_or(Problem::UnknownChain)?;
        let outcome = match self.client_now(chain) {
            Ok(Some(client)) if !client.may_call(method) => Err(Problem::Forbidden),
            Ok(Some(client)) => {
                let cost = Cost { requests: 1, units: chain.tables.costs.cost(method) };
                client.charge(cost, false).await.map(drop)
            }
            Ok(None) => Ok(()),
            Err(problem) => Err(problem),
        };
        outcome.inspect_err(|problem| self.worker.metrics.refused(chain, problem.reason()))
    }

    async fn serve(&self, id: RequestId, prefer: Option<u32>, body: &Bytes) -> Option<Utf8Bytes> {
        let fleet = self.worker.fleet();
        let Some(chain) = fleet.chain(&self.chain) else {
            return Some(error(&Problem::UnknownChain, body, id));
        };
        let client = match self.client_now(chain) {
            Ok(client) => client,
            Err(problem) => {
                self.worker.metrics.refused(chain, problem.reason());
                return Some(error(&problem, body, id));
            }
        };
        let response =
            rpc::serve_message(&self.worker, chain, id, self.archive, client.as_ref(), prefer, body).await;
        if response.status() == StatusCode::NO_CONTENT {
            return None;
        }
        let answer = text_of(response, body).await;
        Some(answer.unwrap_or_else(|| error(&Problem::AllAttemptsFailed, body, id)))
    }
}

/// The answer to `asked` in one piece. `None`: it broke off, or it is no answer of JSON-RPC and only HTTP could have
/// passed it on.
async fn text_of(response: Response<Body>, asked: &[u8]) -> Option<Utf8Bytes> {
    let well = response.status().is_success();
    let answer = response.into_body().collect().await.ok()?.to_bytes();
    if answer.len() > LOOKED_AT && well {
        return Utf8Bytes::try_from(answer).ok();
    }
    if answer.trim_ascii_start().starts_with(b"[") {
        return Utf8Bytes::try_from(answer).ok();
    }
    with_own_id(answer, id_of(asked))
}

/// A client on a socket finds its call by the id alone: what came without it, or with another, gets it.
pub(super) fn with_own_id(answer: Bytes, own: Option<&[u8]>) -> Option<Utf8Bytes> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(&answer).ok()?;
    if !members.contains_key("result") && !members.contains_key("error") {
        return None;
    }
    let given = members.get("id").map(|id| id.get());
    let fixed = match (given, own) {
        (_, None) => None,
        (Some(id), Some(own)) if id.as_bytes() == own => None,
        (Some(id), Some(own)) => {
            let start = id.as_ptr().addr() - answer.as_ptr().addr();
            Some(jsonrpc::with_id(&answer, start..start + id.len(), own))
        }
        (None, Some(own)) => {
            let members = answer.trim_ascii_start().get(1..).unwrap_or_default();
            Some([br#"{"id":"#, own, b",", members].concat())
        }
    };
    Utf8Bytes::try_from(fixed.map_or(answer, Bytes::from)).ok()
}

/// The id of the single call in `body`.
fn id_of(body: &[u8]) -> Option<&[u8]> {
    match jsonrpc::parse(body, usize::MAX) {
        Ok(Envelope::Single(call)) => call.id(body),
        Ok(Envelope::Batch(_)) => None,
        Err(malformed) => malformed.id(body),
    }
}

pub(super) fn error(problem: &Problem, body: &[u8], id: RequestId) -> Utf8Bytes {
    let mut text = Vec::with_capacity(256);
    problem.write(id_of(body), id, crate::clock::unix_ms(), &mut text);
    String::from_utf8(text).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(answer: &'static str) -> Option<String> {
        with_own_id(Bytes::from_static(answer.as_bytes()), Some(b"1.0")).map(|text| text.as_str().to_owned())
    }

    #[test]
    fn an_answer_carries_the_id_as_the_client_wrote_it() {
        for (answer, expected) in [
            (r#"{"jsonrpc":"2.0","id":1.0,"result":[ 1 ]}"#, r#"{"jsonrpc":"2.0","id":1.0,"result":[ 1 ]}"#),
            (r#"{"id":1,"result":null}"#, r#"{"id":1.0,"result":null}"#),
            (
                r#"{"error":{"code":-1,"message":"m"},"id":"x"}"#,
                r#"{"error":{"code":-1,"message":"m"},"id":1.0}"#,
            ),
        ] {
            assert_eq!(fixed(answer).as_deref(), Some(expected), "{answer}");
        }
    }

    #[test]
    fn an_error_that_names_nobody_gets_the_callers_id() {
        for answer in
            [r#"{"error":{"code":-5,"message":"m"}}"#, r#"{"id":null,"error":{"code":-5,"message":"m"}}"#]
        {
            let fixed = fixed(answer).expect("an answer");
            let read: serde_json::Value = serde_json::from_str(&fixed).expect("JSON");
            assert_eq!((&read["id"], &read["error"]["code"]), (&1.0.into(), &(-5).into()), "{answer}");
        }
    }

    #[test]
    fn what_is_no_answer_is_not_passed_on() {
        for answer in ["<html>", "", "{}", r#"{"message":"no"}"#, "7"] {
            assert_eq!(fixed(answer), None, "{answer}");
        }
    }
}
