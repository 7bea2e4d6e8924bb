//! A client's WebSocket: asks, hears, and tells how it was closed.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::client::Reply;
use super::soon;

pub(crate) struct Socket {
    pub(crate) stream: WebSocketStream<TcpStream>,
    /// The headers of the handshake's answer.
    pub(crate) headers: http::HeaderMap,
}

impl Socket {
    /// Opens a socket to the chain `main`.
    pub(crate) async fn open(address: SocketAddr) -> Socket {
        Self::open_at(address, "/main", &[]).await.expect("the upgrade is accepted")
    }

    /// Opens a socket; a refusal comes back as the HTTP answer that it is.
    pub(crate) async fn open_at(
        address: SocketAddr,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Socket, Reply> {
        let stream = TcpStream::connect(address).await.expect("connects");
        stream.set_nodelay(true).expect("a socket option");
        let mut request = format!("ws://headgate.test{path}").into_client_request().expect("a request");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().expect("a value"));
        }
        // Tests open thousands.
        let config = WebSocketConfig::default().read_buffer_size(4096);
        match soon(tokio_tungstenite::client_async_with_config(request, stream, Some(config))).await {
            Ok((stream, answer)) => Ok(Socket { stream, headers: answer.into_parts().0.headers }),
            Err(Error::Http(refusal)) => {
                let (head, body) = refusal.into_parts();
                let body = body.unwrap_or_default().into();
                Err(Reply { status: head.status.as_u16(), headers: head.headers, body })
            }
            Err(error) => panic!("no answer to the handshake: {error}"),
        }
    }

    pub(crate) async fn send(&mut self, text: impl ToString) {
        soon(self.stream.send(Message::text(text.to_string()))).await.expect("is sent");
    }

    /// The next message; a close in its place is a failure.
    pub(crate) async fn hear(&mut self) -> Value {
        loop {
            match soon(self.stream.next()).await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).expect("JSON"),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("not a text: {other:?}"),
            }
        }
    }

    pub(crate) async fn ask(&mut self, call: impl ToString) -> Value {
        self.send(call).await;
        self.hear().await
    }

    /// Waits for the close, past whatever comes before it: its code (0: none given) and reason. `None`: cut off.
    pub(crate) async fn closed(&mut self) -> Option<(u16, String)> {
        loop {
            match soon(self.stream.next()).await {
                Some(Ok(Message::Close(frame))) => {
                    let frame = frame.map_or((0, String::new()), |f| (f.code.into(), f.reason.to_string()));
                    return Some(frame);
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }
}
