//! The SDK's requests over our own connections, so that it trusts what everything else here trusts.

use crate::upstream::{Connector, Question, Reply, ask_alone};
use bytes::Bytes;
use config::SecretUrl;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::BodyExt;
use launchdarkly_sdk_transport::{ByteStream, HttpTransport, ResponseFuture, TransportError};
use std::time::Duration;
use tokio::time::timeout;

/// Until an answer's head.
const HEAD: Duration = Duration::from_secs(10);
/// A stream that is silent for longer is dead: the service sends a comment every three minutes.
const SILENCE: Duration = Duration::from_secs(300);

#[derive(Clone)]
pub(super) struct Transport {
    connector: Connector,
}

impl Transport {
    pub(super) fn new(connector: Connector) -> Transport {
        Transport { connector }
    }
}

impl HttpTransport for Transport {
    fn request(&self, request: Request<Option<Bytes>>) -> ResponseFuture {
        let asking = ask(self.connector.clone(), request);
        // A task, because what is awaited here must be shareable between threads, and connecting is not.
        let task =
            tokio::spawn(
                async move { timeout(HEAD, asking).await.map_err(|_| "no answer in time".to_owned())? },
            );
        Box::pin(async move {
            match task.await {
                Ok(answer) => answer.map_err(failure),
                Err(error) => Err(TransportError::new(error)),
            }
        })
    }
}

fn failure(why: String) -> TransportError {
    TransportError::new(std::io::Error::other(why))
}

async fn ask(connector: Connector, request: Request<Option<Bytes>>) -> Result<Response<ByteStream>, String> {
    let (head, body) = request.into_parts();
    let url = SecretUrl::parse(&head.uri.to_string(), &["http", "https"])?;
    let body = body.unwrap_or_default();
    let question = Question { method: head.method, url: &url, headers: head.headers, body };
    let reply = ask_alone(&connector, question).await?;
    let mut response = Response::new(());
    *response.status_mut() = reply.response.status();
    response.headers_mut().clone_from(reply.response.headers());
    Ok(response.map(|()| chunks(reply)))
}

/// The body as it comes.
fn chunks(reply: Reply) -> ByteStream {
    Box::pin(stream::unfold(reply, |mut reply| async move {
        loop {
            let frame = match timeout(SILENCE, reply.response.frame()).await {
                Ok(frame) => frame?,
                Err(_) => return Some((Err(failure("silence".into())), reply)),
            };
            match frame {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Some((Ok(data), reply));
                    }
                }
                Err(error) => return Some((Err(TransportError::new(error)), reply)),
            }
        }
    }))
}
