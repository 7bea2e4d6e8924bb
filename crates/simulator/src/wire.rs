//! How bytes go out, and how they stop going out. Decides pace and end of a body and of its connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::provider::InFlight;

/// What was sent before a cut needs to have left: a reset discards what the kernel still holds.
const BEFORE_CUT: Duration = Duration::from_millis(20);

const FILL: &[u8] = &[b'a'; 64 * 1024];

/// An answer's bytes, of any length in constant memory.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) head: Bytes,
    /// So many letters `a` between head and tail.
    pub(crate) fill: u64,
    pub(crate) tail: Bytes,
}

impl Payload {
    pub(crate) fn len(&self) -> u64 {
        self.head.len() as u64 + self.fill + self.tail.len() as u64
    }

    /// All of it at once.
    pub(crate) fn collect(&self) -> Vec<u8> {
        let mut all = self.head.to_vec();
        all.resize(all.len() + usize::try_from(self.fill).unwrap_or(usize::MAX), b'a');
        all.extend_from_slice(&self.tail);
        all
    }

    /// The next at most `max` bytes.
    fn take(&mut self, max: u64) -> Bytes {
        let upto = |length: usize| length.min(usize::try_from(max).unwrap_or(usize::MAX));
        if !self.head.is_empty() {
            return self.head.split_to(upto(self.head.len()));
        }
        if self.fill > 0 {
            let piece = Bytes::from_static(FILL)
                .slice(..upto(FILL.len().min(usize::try_from(self.fill).unwrap_or(FILL.len()))));
            self.fill -= piece.len() as u64;
            return piece;
        }
        self.tail.split_to(upto(self.tail.len()))
    }
}

impl From<Bytes> for Payload {
    fn from(head: Bytes) -> Self {
        Self { head, fill: 0, tail: Bytes::new() }
    }
}

/// How a body goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    Chunks { size: u64 },
    HangAfter(u64),
    ResetAfter(u64),
    CloseAfter(u64),
}

/// A body on its way.
pub(crate) struct Wire {
    payload: Payload,
    shape: Shape,
    sent: u64,
    reset: Reset,
    pause: Option<Pin<Box<Sleep>>>,
    _in_flight: InFlight,
}

impl Wire {
    pub(crate) fn new(payload: Payload, shape: Shape, reset: Reset, in_flight: InFlight) -> Self {
        Self { payload, shape, sent: 0, reset, pause: None, _in_flight: in_flight }
    }

    /// The most that may go out in one piece now.
    fn room(&self) -> u64 {
        match self.shape {
            Shape::Whole => u64::MAX,
            Shape::Chunks { size } => size.max(1),
            Shape::HangAfter(limit) | Shape::ResetAfter(limit) | Shape::CloseAfter(limit) => {
                limit - self.sent
            }
        }
    }

    fn end(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.shape {
            Shape::Whole | Shape::Chunks { .. } => return Poll::Ready(None),
            Shape::HangAfter(_) => return Poll::Pending,
            Shape::ResetAfter(_) | Shape::CloseAfter(_) => {}
        }
        let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(BEFORE_CUT)));
        std::task::ready!(pause.as_mut().poll(cx));
        if matches!(self.shape, Shape::ResetAfter(_)) {
            self.reset.arm();
        }
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())))
    }
}

impl Body for Wire {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let room = self.room();
        let piece = self.payload.take(room);
        if piece.is_empty() {
            return self.end(cx);
        }
        self.sent += piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        match self.shape {
            Shape::Whole => SizeHint::with_exact(self.payload.len()),
            Shape::Chunks { .. } | Shape::HangAfter(_) | Shape::ResetAfter(_) | Shape::CloseAfter(_) => {
                SizeHint::default()
            }
        }
    }
}

/// Whether a connection ends with a reset instead of a clean close.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reset(Arc<AtomicBool>);

impl Reset {
    pub(crate) fn arm(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A connection that closes the way its [`Reset`] says.
pub(crate) struct Socket {
    stream: TcpStream,
    reset: Reset,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, reset: Reset) -> Self {
        Self { stream, reset }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.reset.0.load(Ordering::SeqCst) {
            // A failure means the peer has gone already, which is what a reset is for.
            let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_make_up_the_payload(head in "[a-z]{0,9}", fill in 0..200_000u64, tail in "[a-z]{0,9}", max in 1..100_000u64) {
            let mut payload = Payload { head: head.into(), fill, tail: tail.into() };
            let whole = payload.collect();
            prop_assert_eq!(whole.len() as u64, payload.len());
            let mut pieces = Vec::new();
            loop {
                let piece = payload.take(max);
                if piece.is_empty() { break; }
                prop_assert!(piece.len() as u64 <= max);
                pieces.extend_from_slice(&piece);
            }
            prop_assert_eq!(pieces, whole);
        }
    }
}
