//! A single GET over a connection of its own, for what is asked seldom.

use crate::connect::{Connector, Stream};
use crate::target::Target;
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

/// The status of a page. The caller sets the time limit.
///
/// # Errors
/// No connection, or no answer over it, in words.
pub async fn get_status(connector: &Connector, target: &Target) -> Result<u16, String> {
    match connector.dial_http1(target).await.map_err(|error| error.to_string())? {
        Stream::Plain(stream) => over(TokioIo::new(stream), target).await,
        Stream::Tls(stream) => over(TokioIo::new(stream), target).await,
    }
}

async fn over<S>(stream: S, target: &Target) -> Result<u16, String>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin,
{
    let handshake = http1::handshake::<_, Empty<Bytes>>(stream).await;
    let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
    let asked = sender.send_request(target.get());
    let driven = async {
        // How it ends is seen by who waits for the answer.
        let _ = connection.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = asked => answer.map(|answer| answer.status().as_u16()).map_err(|error| error.to_string()),
        () = driven => Err("no answer".to_owned()),
    }
}
