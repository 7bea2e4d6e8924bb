//! What a connection that closes under a request comes to, over streams that close when told.

use super::*;
use crate::watched::{Heard, Watched};
use config::SecretUrl;
use h2::Reason;
use hyper::client::conn::http1;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::sync::mpsc;

const BODY: &[u8] = b"{}";

fn target() -> Target {
    let url = SecretUrl::parse("https://a.example/", &["https"]).expect("a good URL");
    Target::new(&url, &[]).expect("a good target")
}

fn lost_of<T>(answer: &Result<T, Failure>) -> Result<Option<Lost>, &'static str> {
    match answer {
        Ok(_) => Err("answered"),
        Err(Failure::Connect(_)) => Err("not connected"),
        Err(Failure::Closed(lost, _)) => Ok(Some(*lost)),
        Err(Failure::Sent(_)) => Ok(None),
    }
}

/// How a peer ends a connection.
#[derive(Clone, Copy, Debug)]
enum Ends {
    Closes,
    Leaves(Reason),
    Resets,
}

/// A peer with HTTP/2 that answers some requests, looks at no more of them when told, and ends so when told again.
async fn peer(stream: DuplexStream, answers: usize, ends: Ends, mut told: mpsc::Receiver<()>) {
    let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
    for _ in 0..answers {
        let (_, mut respond) = connection.accept().await.expect("a request").expect("a good one");
        respond.send_response(Response::new(()), true).expect("sent");
    }
    // What was sent leaves only while the connection is polled.
    tokio::select! {
        _ = told.recv() => {}
        _ = std::future::poll_fn(|cx| connection.poll_closed(cx)) => {}
    }
    told.recv().await.expect("told");
    match ends {
        Ends::Closes => return,
        Ends::Leaves(reason) => connection.abrupt_shutdown(reason),
        Ends::Resets => {
            let (_, mut respond) = connection.accept().await.expect("a request").expect("a good one");
            respond.send_reset(Reason::REFUSED_STREAM);
        }
    }
    // Until the other side has gone.
    while let Some(Ok(_)) = connection.accept().await {}
}

/// What becomes of a request over HTTP/2 that follows so many answered ones.
async fn over_http2(answers: usize, ends: Ends) -> Result<Option<Lost>, &'static str> {
    let (ours, theirs) = duplex(1 << 16);
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(peer(theirs, answers, ends, told));
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(ours)).await.expect("HTTP/2");
    tokio::spawn(connection);
    let pool =
        Pool { multiplexed: RefCell::new(Some(sender)), proven: Cell::default(), kept: Rc::new(Kept::new()) };
    let (target, body) = (target(), Bytes::from_static(BODY));
    for _ in 0..answers {
        let answer = pool.over_multiplexed(&target, &body, Codings::IDENTITY).await;
        assert!(answer.expect("connected").is_ok());
    }
    tell.send(()).await.expect("a peer that looks");
    let telling = async {
        // The request is on its way first.
        for _ in 0..16 {
            tokio::task::yield_now().await;
        }
        tell.send(()).await.expect("a peer that waits");
    };
    let (answer, ()) = tokio::join!(pool.over_multiplexed(&target, &body, Codings::IDENTITY), telling);
    lost_of(&answer.expect("connected"))
}

/// Kills: sending again what a fresh connection lost or a stream's reset refused, what a peer objected to; blaming the call for a
/// peer that leaves; taking what a peer ignored for what it may have carried out, and the reverse.
#[tokio::test]
async fn a_peer_with_http2_that_leaves_or_closes_is_told_from_one_that_objects() {
    for (answers, ends, expected) in [
        (1, Ends::Leaves(Reason::NO_ERROR), Some(Lost::Ignored)),
        (1, Ends::Closes, Some(Lost::Unknown)),
        (1, Ends::Leaves(Reason::ENHANCE_YOUR_CALM), None),
        (1, Ends::Resets, None),
        (0, Ends::Leaves(Reason::NO_ERROR), None),
        (0, Ends::Closes, None),
    ] {
        assert_eq!(over_http2(answers, ends).await, Ok(expected), "{answers} {ends:?}");
    }
}

/// A stream that has ended once it is looked at again, and wakes nobody for it.
struct Ending {
    stream: DuplexStream,
    ended: Rc<Cell<bool>>,
}

impl AsyncRead for Ending {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ended.get() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Ending {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// When the peer's end is seen.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// Before the request is written.
    First,
    /// After it, and after so much of an answer.
    After(&'static [u8]),
}

async fn next_request(stream: &mut DuplexStream) {
    let came = stream.read(&mut [0; 1024]).await.expect("a request");
    assert!(came > 0, "a request, not the end");
}

/// What becomes of a request over HTTP/1.1, and how much of it a peer sees that answered so many.
async fn over_http1(answers: usize, seen: Seen) -> (Result<Option<Lost>, &'static str>, usize) {
    let (ours, mut theirs) = duplex(1 << 16);
    let (ended, heard) = (Rc::<Cell<bool>>::default(), Heard::default());
    let stream = Watched::new(Ending { stream: ours, ended: Rc::clone(&ended) }, heard.clone());
    let (requests, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::task::spawn_local(connection);
    let (mut sender, kept) = (Sender { requests, heard }, Rc::new(Kept::new()));
    let target = target();
    let request = || target.request(Bytes::from_static(BODY), Codings::IDENTITY, false);
    for _ in 0..answers {
        let answering = async {
            next_request(&mut theirs).await;
            theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.expect("taken");
        };
        let (answer, ()) = tokio::join!(over(sender, &kept, request()), answering);
        answer.unwrap_or_else(|failure| panic!("{failure}")).1.give_back();
        sender = kept.take().await.expect("it was kept");
    }
    ended.set(matches!(seen, Seen::First));
    let ending = async {
        if let Seen::After(part) = seen {
            next_request(&mut theirs).await;
            theirs.write_all(part).await.expect("taken");
        }
        if matches!(seen, Seen::After(_)) {
            theirs.shutdown().await.expect("closed");
        }
    };
    let (answer, ()) = tokio::join!(over(sender, &kept, request()), ending);
    let outcome = lost_of(&answer);
    drop(kept);
    (outcome, theirs.read(&mut [0; 1024]).await.expect("the end"))
}

/// Kills: a request that was never written taken for one that was; one whose answer had begun sent again; a fresh connection
/// taken for one that was kept.
#[tokio::test]
async fn a_kept_connection_that_closes_before_a_byte_of_an_answer_is_nobodys_failure() {
    let each = async {
        for (answers, seen, expected) in [
            (1, Seen::First, Ok(Some(Lost::Unwritten))),
            (2, Seen::After(b""), Ok(Some(Lost::Unknown))),
            (1, Seen::After(b"H"), Ok(None)),
            (0, Seen::First, Err("not connected")),
            (0, Seen::After(b""), Ok(None)),
        ] {
            assert_eq!(over_http1(answers, seen).await, (expected, 0), "{answers} {seen:?}");
        }
    };
    tokio::task::LocalSet::new().run_until(each).await;
}

/// Kills: a connection that idled without a request taken for a fresh one, and one that was made for this request for an old one.
#[tokio::test]
async fn who_idled_is_fresh_no_more() {
    let made = async {
        let (ours, _theirs) = duplex(1 << 16);
        let (requests, connection) = http1::handshake(TokioIo::new(ours)).await.expect("HTTP/1.1");
        tokio::task::spawn_local(connection);
        let kept = Kept::new();
        kept.put(Sender { requests, heard: Heard::default() });
        let sender = kept.take().await.expect("it was kept");
        assert!(!sender.heard.get());
        kept.put(sender);
        kept.tidy(Instant::now() + Duration::from_secs(1));
        assert!(kept.take().await.expect("it was kept").heard.get());
    };
    tokio::task::LocalSet::new().run_until(made).await;
}
