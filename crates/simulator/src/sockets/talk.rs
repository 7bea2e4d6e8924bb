//! One WebSocket of a provider, from the handshake to its end. Decides when what goes out, not what it says.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use http::request::Parts;
use http::{HeaderMap, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::{Command, Feeds};
use crate::perform::{Asked, Outcome, perform};
use crate::provider::{Shared, lock};
use crate::request::Request;
use crate::wire::Reset;

/// How long the other side may take to answer a close.
const CLOSING: Duration = Duration::from_secs(1);

/// A connection that becomes a socket.
pub(crate) struct Upgrade {
    pub(crate) on: OnUpgrade,
    pub(crate) head: Parts,
}

type Stream = WebSocketStream<TokioIo<Upgraded>>;

/// Whether a request is a handshake.
pub(crate) fn asks_for_socket(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// The headers of the answer that accepts a handshake.
pub(crate) fn accept(headers: &HeaderMap) -> Vec<(String, String)> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-accept", &key.unwrap_or_default())]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

impl Upgrade {
    /// Talks until either side ends it.
    pub(crate) async fn talk(self, shared: Arc<Shared>, reset: Reset) {
        let Ok(upgraded) = self.on.await else { return };
        let stream = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
        shared.sockets.open.fetch_add(1, Ordering::SeqCst);
        let feeds = Feeds::new(Arc::clone(&shared.node), Arc::clone(&shared.sockets));
        let talk = Talk { stream, head: self.head, feeds: Arc::new(Mutex::new(feeds)), shared, reset };
        // An error is an end that was asked for, or a peer that left.
        let _ = talk.run().await;
    }
}

struct Talk {
    stream: Stream,
    head: Parts,
    feeds: Arc<Mutex<Feeds>>,
    shared: Arc<Shared>,
    reset: Reset,
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.shared.sockets.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Talk {
    async fn run(mut self) -> Result<(), Error> {
        let mut state = self.shared.sockets.state.subscribe();
        let mut commands = self.shared.sockets.commands.subscribe();
        let mut pulse = self.shared.node.chain().pulse();
        let mut calls = FuturesUnordered::new();
        loop {
            let speaks = !state.borrow_and_update().silent;
            let tick = self.shared.node.chain().next_tick();
            tokio::select! {
                // Silence is from now on, whatever else is ready.
                biased;
                _ = state.changed() => {}
                Ok(command) = commands.recv() => {
                    if !self.carry_out(command).await? {
                        return Ok(());
                    }
                }
                message = self.stream.next(), if speaks => match message.transpose()? {
                    Some(Message::Text(text)) => calls.push(self.ask(text.into())),
                    Some(Message::Binary(bytes)) => calls.push(self.ask(bytes)),
                    Some(_) => {}
                    None => return Ok(()),
                },
                Some(outcome) = calls.next(), if speaks => {
                    if !self.answer(outcome).await? {
                        return Ok(());
                    }
                }
                _ = pulse.changed(), if speaks => self.tell().await?,
                () = tokio::time::sleep(tick.unwrap_or_default()), if speaks && tick.is_some() => self.tell().await?,
            }
        }
    }

    /// A call on its way. What is no JSON gets no answer.
    fn ask(&self, body: Bytes) -> std::pin::Pin<Box<dyn Future<Output = Outcome> + Send>> {
        let Some(request) = Request::parse(body) else { return Box::pin(std::future::ready(Outcome::Hang)) };
        let request = Arc::new(request);
        lock(&self.shared.memory).note(&self.head, &request, Instant::now());
        let (node, feeds) = (Arc::clone(&self.shared.node), Some(Arc::clone(&self.feeds)));
        perform(self.shared.behaviour(), Asked { node, request, feeds })
    }

    /// Sends an answer; false if the socket is to end instead.
    async fn answer(&mut self, outcome: Outcome) -> Result<bool, Error> {
        match outcome {
            Outcome::Sent(sent) => {
                let body = String::from_utf8_lossy(&sent.payload.collect()).into_owned();
                if !body.is_empty() {
                    self.stream.send(Message::text(body)).await?;
                }
                lock(&self.feeds).go_live();
                self.tell().await?;
            }
            Outcome::Hang => {}
            Outcome::Reset => {
                self.reset.arm();
                return Ok(false);
            }
            Outcome::Close => return Ok(false),
        }
        Ok(true)
    }

    async fn tell(&mut self) -> Result<(), Error> {
        let news = lock(&self.feeds).news();
        for text in news {
            self.stream.feed(Message::text(text)).await?;
        }
        self.stream.flush().await
    }

    async fn carry_out(&mut self, command: Command) -> Result<bool, Error> {
        match command {
            Command::Send(text) => self.stream.send(Message::text(text)).await?,
            Command::Reset => {
                self.reset.arm();
                return Ok(false);
            }
            Command::Close(code, reason) => {
                self.stream.close(Some(CloseFrame { code: code.into(), reason: reason.into() })).await?;
                let answered = async { while let Some(Ok(_)) = self.stream.next().await {} };
                // Whoever does not answer a close is left.
                let _ = tokio::time::timeout(CLOSING, answered).await;
                return Ok(false);
            }
        }
        Ok(true)
    }
}
