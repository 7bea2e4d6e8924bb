//! Reads what was missed, the way of every call: whoever has room and health answers, and if possible the endpoint that
//! should know.

use crate::call;
use crate::request::Request;
use crate::rpc;
use crate::upstream::Codings;
use crate::why::Record;
use crate::worker::Worker;
use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;
use jsonrpc::Envelope;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use subscriptions::{Event, Fetch};

/// Carries out a fetch; what came of it.
pub(super) async fn fetch(worker: Rc<Worker>, chain: Arc<str>, fetch: Fetch) -> Event {
    let result = Box::pin(result(&worker, &chain, &fetch)).await;
    Event::fetched(&fetch, result)
}

async fn result(worker: &Rc<Worker>, chain: &str, fetch: &Fetch) -> Option<Bytes> {
    let fleet = worker.fleet();
    let chain = fleet.chain(chain)?;
    let params = std::str::from_utf8(&fetch.params).ok()?;
    let body: Bytes =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}","params":{params}}}"#, fetch.method).into();
    let Ok(Envelope::Single(call)) = jsonrpc::parse(&body, 1) else { return None };
    let started = Instant::now();
    let request = Request {
        worker,
        chain,
        started,
        deadline: started + worker.app.settings.proxy_timeout,
        codings: Codings::IDENTITY,
        archive: false,
        prefer: fetch.prefer.and_then(|endpoint| u32::try_from(endpoint.0).ok()),
        story: RefCell::new(Record::empty(worker.next_id())),
        toll: None,
    };
    let (outcome, _) = call::serve(&request, &call, &body).await;
    let text = rpc::pass_on(outcome.ok()?, HeaderMap::new()).into_body().collect().await.ok()?.to_bytes();
    let result = call::result_of(&text)?;
    Some(text.slice_ref(result.as_bytes()))
}
