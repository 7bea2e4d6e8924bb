//! One WebSocket to an endpoint: opened within a time limit, kept alive by pings, and ended by whoever ends it first.
//! It carries texts and tells its owner what came; it never reads what they mean.

mod shared;

pub(crate) use shared::{Heard, Lines};

use crate::fleet::Chain;
use crate::upstream::{Connector, Dialled, by, open_socket};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{self, Receiver, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// How long a provider may leave a ping unanswered, and how long it may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a provider may take to answer our close.
const FAREWELL: Duration = Duration::from_secs(1);
/// Frames that came and were not looked at yet; then nothing more is read.
const INBOX: usize = 256;
/// The largest message that is read: traces and logs can be large.
const MOST: usize = 128 << 20;
const READ_BUFFER: usize = 16 * 1024;

/// What a line tells its owner, in order. After `Refused`, `Unreachable` or `Ended` nothing follows.
#[derive(Debug)]
pub(crate) enum Told {
    Opened,
    /// The handshake was answered with something else.
    Refused {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
    },
    Unreachable(String),
    Text(Bytes),
    Ended(Ending),
}

/// How the endpoint ended a line. What we end ourselves tells nothing.
#[derive(Debug)]
pub(crate) enum Ending {
    /// With a close; 1005: without a code.
    Closed { code: u16, reason: String },
    /// The connection is gone.
    Broken(String),
    /// No pong in time, or nothing was taken.
    Silent,
}

/// The owner's end of a line. Dropped, the line closes with 1000.
#[derive(Debug)]
pub(crate) struct Line(UnboundedSender<Utf8Bytes>);

impl Line {
    /// Opens a line to the endpoint at `index`; what it tells arrives at the receiver. What is sent is bounded by the
    /// owner, who counts the calls it makes.
    pub(crate) fn open(
        connector: &Connector,
        chain: &Arc<Chain>,
        index: u16,
        limit: std::time::Instant,
        ping: Duration,
    ) -> (Line, Receiver<Told>) {
        let (texts, outgoing) = mpsc::unbounded_channel();
        let (tell, told) = mpsc::channel(INBOX);
        let (connector, chain) = (connector.clone(), Arc::clone(chain));
        tokio::task::spawn_local(async move {
            let config = WebSocketConfig::default()
                .read_buffer_size(READ_BUFFER)
                .write_buffer_size(READ_BUFFER)
                .max_message_size(Some(MOST))
                .max_frame_size(Some(MOST));
            let Some(target) = &chain.at(index).ws else { return };
            let stream = match by(limit, open_socket(&connector, target, config)).await {
                Some(Ok(Dialled::Open(stream))) => stream,
                Some(Ok(Dialled::Refused { status, headers, body })) => {
                    return drop(tell.send(Told::Refused { status, headers, body }).await);
                }
                Some(Err(error)) => return drop(tell.send(Told::Unreachable(error)).await),
                None => return drop(tell.send(Told::Unreachable("timed out".into())).await),
            };
            drop(chain);
            if tell.send(Told::Opened).await.is_ok() {
                let mut carrier = Carrier { stream, tell, pinged: None };
                carrier.carry(outgoing, ping).await;
            }
        });
        (Line(texts), told)
    }

    /// Sends a text; lost if the line has ended, of which its owner hears.
    pub(crate) fn send(&self, text: String) {
        // A line that has ended says so itself.
        let _ = self.0.send(text.into());
    }
}

struct Carrier<S> {
    stream: WebSocketStream<S>,
    tell: mpsc::Sender<Told>,
    /// When the ping was sent that nothing has followed yet.
    pinged: Option<Instant>,
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Carrier<S> {
    async fn carry(&mut self, mut outgoing: UnboundedReceiver<Utf8Bytes>, ping: Duration) {
        let step = ping.min(PATIENCE / 4);
        let mut tick = interval_at(Instant::now() + step, step);
        let mut next_ping = Instant::now() + ping;
        loop {
            let ended = tokio::select! {
                text = outgoing.recv() => match text {
                    Some(text) => self.send(Message::Text(text)).await,
                    None => return self.close().await,
                },
                message = self.stream.next() => self.hear(message).await,
                _ = tick.tick() => self.tick(&mut next_ping, ping).await,
            };
            if let Some(ending) = ended {
                // The owner may have gone at the same time.
                let _ = self.tell.send(Told::Ended(ending)).await;
                return;
            }
        }
    }

    async fn hear(
        &mut self,
        message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
    ) -> Option<Ending> {
        self.pinged = None;
        let text: Bytes = match message {
            Some(Ok(Message::Text(text))) => text.into(),
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => return None,
            Some(Ok(Message::Close(frame))) => return Some(self.closed(frame).await),
            Some(Err(error)) => return Some(Ending::Broken(error.to_string())),
            None => return Some(Ending::Broken("the connection ended".into())),
        };
        // Without an owner the line is closed from the other side of the select.
        let _ = self.tell.send(Told::Text(text)).await;
        None
    }

    async fn closed(&mut self, frame: Option<CloseFrame>) -> Ending {
        // The reply goes out while the end is read.
        let _ = timeout(FAREWELL, self.stream.next()).await;
        let (code, reason) = frame.map_or((1005, String::new()), |f| (f.code.into(), f.reason.to_string()));
        Ending::Closed { code, reason }
    }

    async fn tick(&mut self, next_ping: &mut Instant, ping: Duration) -> Option<Ending> {
        let now = Instant::now();
        if self.pinged.is_some_and(|since| now - since >= PATIENCE) {
            return Some(Ending::Silent);
        }
        if now < *next_ping || self.pinged.is_some() {
            return None;
        }
        *next_ping = now + ping;
        self.pinged = Some(now);
        self.send(Message::Ping(Bytes::new())).await
    }

    async fn send(&mut self, message: Message) -> Option<Ending> {
        match timeout(PATIENCE, self.stream.send(message)).await {
            Ok(Ok(())) => None,
            // What it said before it went is still to be read, and tells more than a failed write.
            Ok(Err(_)) => None,
            Err(_) => Some(Ending::Silent),
        }
    }

    async fn close(&mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        let closing = async {
            self.stream.send(Message::Close(Some(frame))).await?;
            while self.stream.next().await.transpose()?.is_some() {}
            Ok::<(), tokio_tungstenite::tungstenite::Error>(())
        };
        // Whether it answers makes no difference.
        let _ = timeout(FAREWELL, closing).await;
    }
}
