//! What of an answer is still to come. The endpoint's in-flight mark, the places at the gates and the connection live as
//! long as it does.

use crate::decode::{Decoder, SLICE};
use crate::fleet::Mark;
use crate::gates::Permits;
use crate::net::BodyError;
use crate::upstream::{Connection, poll_frame};
use bytes::Bytes;
use http_body::Body as _;
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// What an attempt takes up while it is under way.
pub(super) struct UnderWay {
    pub(super) mark: Mark,
    pub(super) permits: Permits,
}

/// The unread part of an upstream's answer.
pub(crate) struct Rest {
    body: Incoming,
    connection: Option<Connection>,
    mark: Mark,
    permits: Option<Permits>,
    decoder: Option<Decoder>,
    /// How long the upstream may be silent once the client has seen the first byte.
    patience: Duration,
    silence: Option<Pin<Box<Sleep>>>,
    ended: bool,
}

impl Rest {
    pub(super) fn new(
        body: Incoming,
        connection: Connection,
        under_way: UnderWay,
        patience: Duration,
    ) -> Rest {
        Rest {
            body,
            connection: Some(connection),
            mark: under_way.mark,
            permits: Some(under_way.permits),
            decoder: None,
            patience,
            silence: None,
            ended: false,
        }
    }

    /// From here on the client waits for each chunk: silence has a limit, and `decoder` decodes for the client.
    pub(super) fn streaming(mut self, decoder: Option<Decoder>) -> Rest {
        self.decoder = decoder;
        self.silence = Some(Box::pin(sleep_until(Instant::now() + self.patience)));
        self
    }

    /// Nobody waits for the rest for now: its places are for others.
    pub(crate) fn step_aside(&mut self) {
        self.permits = None;
    }

    /// Whether the last chunk was the last one of all.
    pub(super) fn is_over(&self) -> bool {
        self.ended
    }

    /// The body was read to its end.
    pub(super) fn finish(mut self) {
        self.give_back();
    }

    /// The next chunk as it came over the wire.
    pub(super) async fn chunk(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        std::future::poll_fn(|cx| self.poll_raw(cx)).await
    }

    /// The next chunk for the client.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self.poll_raw(cx) {
            Poll::Ready(Some(Ok(chunk))) => {
                if let Some(silence) = &mut self.silence {
                    silence.as_mut().reset(Instant::now() + self.patience);
                }
                if self.ended {
                    // Who knows the length does not ask for what comes after the last chunk.
                    self.give_back();
                }
                Poll::Ready(Some(self.decoded(chunk)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.mark.broke_off();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                self.give_back();
                Poll::Ready(None)
            }
            Poll::Pending => {
                let Some(silence) = &mut self.silence else { return Poll::Pending };
                ready!(silence.as_mut().poll(cx));
                self.mark.broke_off();
                Poll::Ready(Some(Err("the upstream fell silent".into())))
            }
        }
    }

    fn decoded(&mut self, chunk: Bytes) -> Result<Bytes, BodyError> {
        let Some(decoder) = &mut self.decoder else { return Ok(chunk) };
        let mut plain = Vec::new();
        for slice in chunk.chunks(SLICE) {
            decoder.push(slice, &mut plain)?;
        }
        Ok(plain.into())
    }

    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            let http1 = self.connection.as_ref().is_some_and(Connection::is_http1);
            match ready!(poll_frame(&mut self.body, http1, cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.ended = self.body.is_end_stream();
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.ended = true,
            }
        }
    }

    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.give_back();
        }
    }
}
