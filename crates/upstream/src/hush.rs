//! Keeps hyper from polling an HTTP/1.1 connection for nothing. Who takes a piece of a body wakes the connection that it came
//! over, also when the connection has brought its last one: in each request that were two polls of a whole connection,
//! the client's and the upstream's, that find nothing to do. Decides nothing else about when who is polled.

use hyper::body::{Body, Bytes, Frame, Incoming};
use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

thread_local! {
    static TAKING: Taking = Taking::default();
}

/// While a piece is taken on this thread: who was woken by that. Other threads' wakes are none of it.
#[derive(Default)]
struct Taking {
    going_on: Cell<bool>,
    woken: Cell<Option<Arc<Bell>>>,
}

/// Ends the taking, however it ends.
struct End<'a>(&'a Taking);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.going_on.set(false);
    }
}

/// What a connection is polled with, so that [`poll_frame`] tells its wakes from others.
pub struct Hushed {
    bell: Arc<Bell>,
    waker: Waker,
}

#[derive(Default)]
struct Bell {
    task: Mutex<Option<Waker>>,
}

impl Default for Hushed {
    fn default() -> Hushed {
        let bell = Arc::<Bell>::default();
        Hushed { waker: Arc::clone(&bell).into(), bell }
    }
}

impl Hushed {
    /// Polls the connection, in the task that `cx` wakes.
    pub fn poll<F: Future>(&self, connection: Pin<&mut F>, cx: &Context<'_>) -> Poll<F::Output> {
        self.bell.is_in(cx.waker());
        connection.poll(&mut Context::from_waker(&self.waker))
    }
}

impl Bell {
    fn is_in(&self, task: &Waker) {
        let mut known = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|known| !known.will_wake(task)) {
            *known = Some(task.clone());
        }
    }

    fn ring(&self) {
        if let Some(task) = &*self.task.lock().unwrap_or_else(PoisonError::into_inner) {
            task.wake_by_ref();
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted = TAKING.with(|taking| {
            let going_on = taking.going_on.get();
            if going_on {
                taking.woken.set(Some(Arc::clone(self)));
            }
            going_on
        });
        if !noted {
            self.ring();
        }
    }
}

/// The next frame of a body. One that came over HTTP/2 wakes its connection always, which has to tell the peer that it may
/// send on.
pub fn poll_frame(
    body: &mut Incoming,
    http1: bool,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
    if !http1 {
        return Pin::new(body).poll_frame(cx);
    }
    TAKING.with(|taking| {
        let end = End(taking);
        taking.going_on.set(true);
        let polled = Pin::new(&mut *body).poll_frame(cx);
        drop(end);
        if let (Some(bell), false) = (taking.woken.take(), body.is_end_stream()) {
            bell.ring();
        }
        polled
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::client::conn::http1;
    use hyper::server::conn::http1 as server;
    use hyper::service::service_fn;
    use hyper::{Request, Response};
    use hyper_util::rt::TokioIo;
    use std::convert::Infallible;
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// The polls that a connection needs for an answer of `bytes` bytes, and the bytes that came.
    async fn polls(bytes: usize) -> (usize, usize) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let answer = service_fn(move |_: Request<Incoming>| async move {
            Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(vec![b'x'; bytes]))))
        });
        tokio::spawn(server::Builder::new().serve_connection(TokioIo::new(theirs), answer));
        let (mut sender, mut connection) = http1::handshake(TokioIo::new(ours)).await.expect("a connection");
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        tokio::spawn(async move {
            let hushed = Hushed::default();
            poll_fn(|cx| {
                counted.fetch_add(1, Relaxed);
                hushed.poll(Pin::new(&mut connection), cx)
            })
            .await
        });
        let asked = sender.send_request(Request::new(Full::new(Bytes::from_static(b"?")))).await;
        let mut body = asked.expect("an answer").into_body();
        let before = count.load(Relaxed);
        let mut came = 0;
        while let Some(frame) = poll_fn(|cx| poll_frame(&mut body, true, cx)).await {
            came += frame.expect("a frame").into_data().map_or(0, |data| data.len());
            if body.is_end_stream() {
                break;
            }
        }
        // Whatever was woken has its turn.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        (count.load(Relaxed) - before, came)
    }

    /// Kills: waking the connection for the last piece, and not waking it for those before.
    #[tokio::test]
    async fn a_connection_is_polled_again_only_for_what_is_still_to_come() {
        assert_eq!(polls(100).await, (0, 100));
        let (again, came) = polls(1 << 20).await;
        assert!(again > 0 && came == 1 << 20, "{again} {came}");
    }

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Kills: losing a wake of another thread while a piece is taken here, and losing all after a panic.
    #[test]
    fn only_wakes_by_the_taking_itself_are_held_back() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let task = Waker::from(Arc::clone(&count));
        let hushed = Hushed::default();
        let mut never = std::future::pending::<()>();
        assert!(hushed.poll(Pin::new(&mut never), &Context::from_waker(&task)).is_pending());
        TAKING.with(|taking| {
            let end = End(taking);
            taking.going_on.set(true);
            hushed.waker.wake_by_ref();
            assert_eq!(count.0.load(Relaxed), 0);
            std::thread::scope(|scope| {
                scope.spawn(|| hushed.waker.wake_by_ref());
            });
            assert_eq!(count.0.load(Relaxed), 1);
            drop(end);
        });
        hushed.waker.wake_by_ref();
        assert_eq!(count.0.load(Relaxed), 2);
    }
}
