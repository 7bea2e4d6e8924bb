//! One HTTP/1.1 request over a connection of its own, for services that are no endpoints. Same sockets, same trusted
//! roots, no pool.

use crate::connect::{Connector, Stream};
use crate::target::{Codings, Target};
use bytes::Bytes;
use config::SecretUrl;
use http::{HeaderMap, Method, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;

/// What is asked. `headers` are put over ours.
pub struct Question<'a> {
    pub method: Method,
    pub url: &'a SecretUrl,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// An answer whose body may still be coming. The connection ends with it.
pub struct Reply {
    pub response: Response<Incoming>,
    _sender: SendRequest<Full<Bytes>>,
}

/// Asks, and waits for the answer's head. The caller sets the time limit.
///
/// # Errors
/// No connection, or no answer over it, in words that quote no path.
pub async fn ask_alone(connector: &Connector, question: Question<'_>) -> Result<Reply, String> {
    let target = Target::new(question.url, &[]).map_err(|error| error.to_string())?;
    let mut request = target.request(question.body, Codings::IDENTITY, false);
    *request.method_mut() = question.method;
    request.headers_mut().extend(question.headers);
    let mut sender = match connector.dial_http1(&target).await.map_err(|error| error.to_string())? {
        Stream::Plain(stream) => begin(stream).await?,
        Stream::Tls(stream) => begin(stream).await?,
    };
    let response = sender.send_request(request).await.map_err(|error| format!("no answer: {error}"))?;
    Ok(Reply { response, _sender: sender })
}

impl Reply {
    /// The body, which must not be larger than `most` bytes.
    ///
    /// # Errors
    /// It is larger, or broke off.
    pub async fn whole(self, most: usize) -> Result<Bytes, String> {
        let body = Limited::new(self.response.into_body(), most).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| error.to_string())
    }
}

async fn begin<S>(stream: S) -> Result<SendRequest<Full<Bytes>>, String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    // Not a local task: who asks may be on a runtime of their own.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection that is no endpoint's ended");
        }
    });
    Ok(sender)
}
