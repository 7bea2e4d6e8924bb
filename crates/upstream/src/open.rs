//! Opens a WebSocket to an endpoint and hands it over. The caller sets the time limit.

use crate::connect::{Connector, Stream};
use crate::target::Target;
use bytes::Bytes;
use http::HeaderMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// How an endpoint answered the handshake.
pub enum Dialled {
    Open(WebSocketStream<Stream>),
    Refused { status: u16, headers: HeaderMap, body: Bytes },
}

/// Opens a WebSocket; `Err` says why nobody answered the handshake.
pub async fn open_socket(
    connector: &Connector,
    target: &Target,
    config: WebSocketConfig,
) -> Result<Dialled, String> {
    let stream = connector.dial_http1(target).await.map_err(|error| error.to_string())?;
    match client_async_with_config(target.handshake(&generate_key()), stream, Some(config)).await {
        Ok((socket, _)) => Ok(Dialled::Open(socket)),
        Err(Error::Http(refusal)) => {
            let (head, body) = refusal.into_parts();
            let (status, body) = (head.status.as_u16(), body.unwrap_or_default().into());
            Ok(Dialled::Refused { status, headers: head.headers, body })
        }
        Err(error) => Err(error.to_string()),
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
