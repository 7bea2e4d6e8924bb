//! What a client gets as the body of an answer: bytes of our own, an upstream's bytes as they come, or a page.

use super::Peer;
use crate::exchange::Rest;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::any::Any;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// The body's producer failed; the client's connection is reset.
pub(crate) type BodyError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) enum Body {
    Full(Option<Bytes>),
    /// An upstream's answer: what was held until the verdict was certain, then the rest.
    Answer(Box<Relay>),
    Page(axum::body::Body),
    /// A body, and what is let go of when it has ended.
    Holding(Box<(Body, Option<Box<dyn Any>>)>),
}

/// The body of an answer that its client's connection writes: with its end, or when it is dropped, the next request is waited for.
pub(crate) struct Sent {
    body: Body,
    /// `None`: the connection has room for other requests meanwhile.
    to: Option<Rc<Peer>>,
}

impl Sent {
    pub(crate) fn new(body: Body, to: Option<Rc<Peer>>) -> Sent {
        Sent { body, to }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(peer) = &self.to {
            peer.waits();
        }
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pub(crate) struct Relay {
    pub(crate) held: VecDeque<Bytes>,
    pub(crate) rest: Option<Rest>,
    /// Bytes still to come, if known.
    pub(crate) length: Option<u64>,
}

impl Body {
    pub(crate) fn empty() -> Body {
        Body::Full(None)
    }

    /// Holds `thing` until the last byte is taken, or the body is dropped.
    pub(crate) fn holding(self, thing: impl Any) -> Body {
        Body::Holding(Box::new((self, Some(Box::new(thing)))))
    }

    pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
        Body::Full(Some(bytes.into()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Body::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Body::Answer(relay) => relay.poll(cx),
            Body::Page(page) => Pin::new(page).poll_frame(cx).map_err(Into::into),
            Body::Holding(both) => {
                let (body, thing) = &mut **both;
                let polled = Pin::new(&mut *body).poll_frame(cx);
                if matches!(polled, Poll::Ready(None | Some(Err(_)))) || body.is_end_stream() {
                    thing.take();
                }
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Full(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Body::Answer(relay) => relay.held.is_empty() && relay.rest.is_none(),
            Body::Page(page) => page.is_end_stream(),
            Body::Holding(both) => both.0.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Body::Answer(relay) => relay.length.map_or_else(SizeHint::default, SizeHint::with_exact),
            Body::Page(page) => page.size_hint(),
            Body::Holding(both) => both.0.size_hint(),
        }
    }
}

impl Relay {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = match self.held.pop_front() {
            Some(chunk) => Some(Ok(chunk)),
            None => match self.rest.as_mut() {
                Some(rest) => std::task::ready!(rest.poll_chunk(cx)),
                None => None,
            },
        };
        match next {
            Some(Ok(chunk)) => {
                self.length = self.length.map(|length| length.saturating_sub(chunk.len() as u64));
                Poll::Ready(Some(Ok(Frame::data(chunk))))
            }
            Some(Err(error)) => {
                self.rest = None;
                Poll::Ready(Some(Err(error)))
            }
            None => {
                self.rest = None;
                Poll::Ready(None)
            }
        }
    }
}
