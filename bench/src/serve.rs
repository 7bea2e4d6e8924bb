//! An HTTP/1.1 server with one current-thread runtime per thread. Deals connections in turn; never balances by load.

use std::future::Future;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::thread;

use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

/// Serves `listener` on `threads` threads until accepting fails. Every thread makes a handler of its own, so handlers
/// need not be `Send`.
///
/// # Errors
/// Whatever `accept` fails with.
pub fn serve<M, H, F, B>(listener: &TcpListener, threads: usize, make_handler: M) -> io::Result<()>
where
    M: Fn() -> H + Clone + Send + 'static,
    H: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = anyhow::Result<Response<B>>> + 'static,
    B: Body + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let workers: Vec<_> = (0..threads).map(|_| start_worker(make_handler.clone())).collect();
    for (turn, socket) in listener.incoming().enumerate() {
        let socket = socket?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        workers[turn % threads].send(socket).expect("a worker serves for ever");
    }
    Ok(())
}

fn start_worker<M, H, F, B>(make_handler: M) -> UnboundedSender<TcpStream>
where
    M: Fn() -> H + Send + 'static,
    H: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = anyhow::Result<Response<B>>> + 'static,
    B: Body + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let (sender, sockets) = unbounded_channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
        LocalSet::new().block_on(&runtime, serve_sockets(sockets, Rc::new(make_handler())));
    });
    sender
}

async fn serve_sockets<H, F, B>(mut sockets: UnboundedReceiver<TcpStream>, handler: Rc<H>)
where
    H: Fn(Request<Incoming>) -> F + 'static,
    F: Future<Output = anyhow::Result<Response<B>>> + 'static,
    B: Body + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    while let Some(socket) = sockets.recv().await {
        let socket = tokio::net::TcpStream::from_std(socket).expect("the socket is non-blocking");
        let handler = Rc::clone(&handler);
        let connection = http1::Builder::new()
            .serve_connection(TokioIo::new(socket), service_fn(move |request| handler(request)));
        // A peer that goes away ends its own connection and nothing else.
        spawn_local(async { drop(connection.await) });
    }
}
