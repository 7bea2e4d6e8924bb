//! One client's socket from its handshake to its end: reads calls, writes answers as they come, pings, and notices who
//! is silent or slow. Waits for the next event, then applies it; it never decides who serves a call.

use super::admission::Seat;
use super::batch::Mixed;
use super::calls::Caller;
use super::close::Why;
use super::outbox::Outbox;
use super::registry::Peer;
use super::subscribe::{hand_over, is_for_hub};
use crate::hub::{Ask, client_number};
use crate::net::Purse;
use crate::worker::Worker;
use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{Future, SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// Calls of one socket that are served at a time; it is not read from while there are as many.
const IN_FLIGHT: usize = 64;
/// How long the client's connection may take from the handshake's answer to the first frame.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to answer our close before its connection is cut.
const FAREWELL: Duration = Duration::from_secs(3);
/// What a socket reads at once. It stays allocated: thousands of sockets are idle most of the time.
const READ_BUFFER: usize = 4 * 1024;
/// How much small frames may add up to before they are written.
const WRITE_BUFFER: usize = 4 * 1024;

type Stream = WebSocketStream<TcpStream>;
type Answering = Pin<Box<dyn Future<Output = Option<Utf8Bytes>>>>;

/// A socket that is about to be served.
pub(super) struct Session {
    caller: Caller,
    seat: Seat,
}

impl Session {
    pub(super) fn new(
        worker: &Rc<Worker>,
        seat: Seat,
        chain: &Arc<str>,
        archive: bool,
        client: Option<crate::caller::Caller>,
    ) -> Session {
        let (worker, chain) = (Rc::clone(worker), Arc::clone(chain));
        Session { caller: Caller { worker, chain, archive, client }, seat }
    }

    /// Serves the socket once the connection is ours.
    pub(super) async fn serve(self, upgrade: OnUpgrade) {
        let Ok(Ok(upgraded)) = timeout(HANDSHAKE, upgrade).await else { return };
        let Session { caller, mut seat } = self;
        let Some(stream) = stream(upgraded, caller.worker.app.settings.max_body_bytes).await else { return };
        seat.opened();
        let mut socket = Socket::new(caller, stream, &seat);
        let why = socket.run().await;
        seat.closed(why);
        tracing::debug!(chain = %socket.caller.chain, why = why.as_str(), "client's WebSocket ended");
        Box::pin(socket.farewell(why)).await;
    }
}

/// The WebSocket on the bare connection: nothing of HTTP stays behind.
async fn stream(upgraded: Upgraded, most: u64) -> Option<Stream> {
    let parts = hyper_util::server::conn::auto::upgrade::downcast::<TokioIo<TcpStream>>(upgraded).ok()?;
    let most = usize::try_from(most).ok();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .max_message_size(most)
        .max_frame_size(most);
    let (connection, read) = (parts.io.into_inner(), parts.read_buf.to_vec());
    Some(WebSocketStream::from_partially_read(connection, read, Role::Server, Some(config)).await)
}

struct Socket {
    caller: Caller,
    stream: Stream,
    peer: Rc<Peer>,
    number: u64,
    calls: FuturesUnordered<Answering>,
    interval: Duration,
    tick: Pin<Box<Sleep>>,
    /// Something came since the last ping.
    heard: bool,
    pinged: bool,
    /// Frames handed to the connection, now and at the last tick.
    written: u64,
    written_before: u64,
    /// The process ends, and what had come before that was read.
    read_out: bool,
}

enum Event {
    Heard(Option<Result<Message, Error>>),
    Answered(Option<Utf8Bytes>),
    Close(Why),
    Tick,
    Unwritable,
}

impl Socket {
    fn new(caller: Caller, stream: Stream, seat: &Seat) -> Socket {
        let app = &caller.worker.app;
        let interval = app.settings.ws_ping_interval;
        let outbox = Outbox::new(Purse::of(&app.queues).open(), app.settings.ws_queue_bytes);
        let peer = Rc::new(Peer::new(outbox, seat.counts()));
        Socket {
            number: caller.worker.sockets.add(&peer),
            stream,
            peer,
            calls: FuturesUnordered::new(),
            interval,
            tick: Box::pin(sleep(interval)),
            heard: false,
            pinged: false,
            written: 0,
            written_before: 0,
            read_out: false,
            caller,
        }
    }

    /// Serves until it ends; why.
    async fn run(&mut self) -> Why {
        loop {
            let event = std::future::poll_fn(|cx| self.poll(cx)).await;
            if let Some(why) = self.apply(event) {
                return why;
            }
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        self.peer.outbox.wakes(cx.waker());
        if let Poll::Ready(Err(_)) = self.poll_write(cx) {
            return Poll::Ready(Event::Unwritable);
        }
        let closing = self.peer.outbox.closing();
        if let Some(why) = closing.filter(|why| *why != Why::Shutdown) {
            return Poll::Ready(Event::Close(why));
        }
        if self.peer.outbox.has_room() {
            if let Poll::Ready(Some(answer)) = self.calls.poll_next_unpin(cx) {
                return Poll::Ready(Event::Answered(answer));
            }
            if self.in_flight() < IN_FLIGHT && !self.read_out {
                match self.stream.poll_next_unpin(cx) {
                    Poll::Ready(heard) => return Poll::Ready(Event::Heard(heard)),
                    Poll::Pending => self.read_out = closing.is_some(),
                }
            }
        }
        // What was asked before the process was told to go is answered still.
        if self.read_out && self.in_flight() == 0 && self.peer.outbox.bytes() == 0 {
            return Poll::Ready(Event::Close(Why::Shutdown));
        }
        self.tick.as_mut().poll(cx).map(|()| Event::Tick)
    }

    fn in_flight(&self) -> usize {
        self.calls.len() + self.peer.waiting()
    }

    /// Hands frames to the connection until it takes no more.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.stream.poll_ready_unpin(cx))?;
            let Some(frame) = self.peer.outbox.frame() else { return self.stream.poll_flush_unpin(cx) };
            self.stream.start_send_unpin(frame)?;
            self.written += 1;
        }
    }

    /// Some: the socket ends.
    fn apply(&mut self, event: Event) -> Option<Why> {
        match event {
            Event::Heard(None) | Event::Unwritable => Some(Why::Vanished),
            Event::Heard(Some(Err(error))) => Some(fault(&error)),
            Event::Heard(Some(Ok(message))) => self.hear(message),
            Event::Answered(answer) => {
                if let Some(answer) = answer {
                    self.caller.worker.sockets.answer(&self.peer.outbox, &answer);
                }
                None
            }
            Event::Close(why) => Some(why),
            Event::Tick => self.tick(),
        }
    }

    fn hear(&mut self, message: Message) -> Option<Why> {
        self.heard = true;
        let body: Bytes = match message {
            Message::Text(text) => text.into(),
            // Some clients send JSON so; what is none is told as in a text.
            Message::Binary(bytes) => bytes,
            Message::Close(_) => return Some(Why::Client),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return None,
        };
        let (caller, peer) = (self.caller.clone(), Rc::clone(&self.peer));
        self.calls.push(if is_for_hub(&body) {
            Box::pin(hand_over(caller, self.number, peer, body))
        } else if let Some(batch) = Mixed::read(&body, &caller) {
            Box::pin(batch.serve(caller, self.number, peer, body))
        } else {
            Box::pin(caller.answer(body, peer.newest.get()))
        });
        None
    }

    /// Pings, and ends a socket that shows no life or takes nothing.
    fn tick(&mut self) -> Option<Why> {
        if self.peer.outbox.has_next() && self.written == self.written_before {
            return Some(Why::Slow);
        }
        if !self.caller.is_welcome() {
            return Some(Why::Unwelcome);
        }
        // While nothing is read, no pong can be seen.
        let reads = self.peer.outbox.has_room() && self.in_flight() < IN_FLIGHT;
        let alive = std::mem::take(&mut self.heard) || !reads;
        if self.pinged && !alive {
            return Some(Why::Silent);
        }
        self.written_before = self.written;
        self.pinged = true;
        self.tick.as_mut().reset(Instant::now() + self.interval);
        // It is written with the next frames; a connection that fails shows it there.
        self.stream.start_send_unpin(Message::Ping(Bytes::new())).err().map(|_| Why::Vanished)
    }

    /// Closes, and gives the client a moment to close as well. A connection that is cut with something unread would
    /// take the close with it.
    async fn farewell(mut self, why: Why) {
        self.calls.clear();
        self.peer.outbox.close(why);
        self.peer.outbox.forget();
        let close = why.frame();
        let ending = async {
            if let Some(frame) = close {
                self.stream.send(Message::Close(Some(frame))).await?;
            }
            while self.stream.next().await.transpose()?.is_some() {}
            Ok::<(), Error>(())
        };
        if why == Why::Vanished {
            return;
        }
        let until = Instant::now() + FAREWELL;
        // Whether or not the client answered, what follows is the same.
        let _ = tokio::time::timeout_at(until, ending).await;
        let _ = tokio::time::timeout_at(until, drain(self.stream.get_mut())).await;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Caller { worker, chain, .. } = &self.caller;
        worker.sockets.remove(self.number);
        if self.peer.has_asked() {
            let client = client_number(worker.index(), self.number);
            worker.app.hub.send(Ask::Gone { chain: Arc::clone(chain), client });
        }
    }
}

/// Reads what still comes, until the client has closed.
async fn drain(connection: &mut TcpStream) -> std::io::Result<()> {
    connection.shutdown().await?;
    let mut unread = vec![0; 4096];
    while connection.read(&mut unread).await? > 0 {}
    Ok(())
}

/// What reading failed with, as the end of a socket.
fn fault(error: &Error) -> Why {
    match error {
        Error::Capacity(_) => Why::TooLarge,
        Error::Utf8(_) => Why::NotText,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => Why::Vanished,
        Error::Protocol(_) | Error::AttackAttempt => Why::Protocol,
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Io(_)
        | Error::Tls(_)
        | Error::WriteBufferFull(_)
        | Error::Url(_)
        | Error::Http(_)
        | Error::HttpFormat(_) => Why::Vanished,
    }
}
