//! One question over a WebSocket of its own, as a probe asks it.

use crate::connect::{Connector, Stream};
use crate::target::Target;
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The largest message that is read.
const MOST: usize = 64 * 1024;

/// What came back over the socket.
#[derive(Debug)]
pub enum Heard {
    Message(Bytes),
    /// The handshake was refused.
    Refused {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
    },
    /// The socket was closed instead of an answer.
    Closed {
        code: u16,
        reason: String,
    },
}

/// Opens a socket, sends `question` and waits for one message. The caller sets the time limit.
pub async fn ask_over_socket(
    connector: &Connector,
    target: &Target,
    question: String,
) -> Result<Heard, String> {
    match connector.dial_http1(target).await.map_err(|error| error.to_string())? {
        Stream::Plain(stream) => ask(stream, target, question).await,
        Stream::Tls(stream) => ask(stream, target, question).await,
    }
}

async fn ask<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    target: &Target,
    question: String,
) -> Result<Heard, String> {
    let config = WebSocketConfig::default().max_message_size(Some(MOST)).read_buffer_size(8 * 1024);
    match client_async_with_config(target.handshake(&generate_key()), stream, Some(config)).await {
        Ok((socket, _)) => exchange(socket, question).await,
        Err(Error::Http(refusal)) => {
            let (head, body) = refusal.into_parts();
            let (status, body) = (head.status.as_u16(), body.unwrap_or_default().into());
            Ok(Heard::Refused { status, headers: head.headers, body })
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    question: String,
) -> Result<Heard, String> {
    socket.send(Message::text(question)).await.map_err(|error| error.to_string())?;
    while let Some(message) = socket.next().await {
        match message.map_err(|error| error.to_string())? {
            Message::Text(text) => return Ok(Heard::Message(text.into())),
            Message::Binary(bytes) => return Ok(Heard::Message(bytes)),
            Message::Close(frame) => {
                let (code, reason) =
                    frame.map_or((1005, String::new()), |f| (f.code.into(), f.reason.to_string()));
                return Ok(Heard::Closed { code, reason });
            }
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
        }
    }
    Ok(Heard::Closed { code: 1006, reason: String::new() })
}
