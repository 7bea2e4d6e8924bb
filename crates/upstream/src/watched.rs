//! Whether anything came over a connection since its last request. Reads nothing itself, and changes nothing of what passes.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Set by the first byte that comes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Rc<Cell<bool>>);

impl Heard {
    pub(crate) fn get(&self) -> bool {
        self.0.get()
    }

    pub(crate) fn note(&self) {
        self.0.set(true);
    }

    /// Whether anything came so far; from now on it is asked anew.
    pub(crate) fn forget(&self) -> bool {
        self.0.replace(false)
    }
}

/// A stream that tells `heard` of what comes.
pub(crate) struct Watched<S> {
    stream: S,
    heard: Heard,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, heard: Heard) -> Watched<S> {
        Watched { stream, heard }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            self.heard.note();
        }
        Poll::Ready(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
