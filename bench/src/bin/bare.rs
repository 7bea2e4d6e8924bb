//! A proxy that is nothing but the libraries: one runtime per core, the endpoints in turn, a pool per thread and endpoint.
//! It decides nothing, times nothing out and retries nothing; it is the measure for what headgate-proxy adds.
//! Arguments: the port to listen on, then the upstreams' addresses.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::thread::available_parallelism;

use anyhow::Context;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::spawn_local;

struct Pool {
    upstreams: Vec<SocketAddr>,
    idle: Vec<RefCell<VecDeque<SendRequest<Incoming>>>>,
    turn: Cell<usize>,
}

impl Pool {
    fn new(upstreams: Vec<SocketAddr>) -> Self {
        let idle = upstreams.iter().map(|_| RefCell::default()).collect();
        Self { upstreams, idle, turn: Cell::new(0) }
    }

    fn next(&self) -> usize {
        self.turn.replace((self.turn.get() + 1) % self.upstreams.len())
    }

    /// A connection whose last answer has been read. Those still busy go to the back of the queue.
    fn take(&self, upstream: usize) -> Option<SendRequest<Incoming>> {
        let mut idle = self.idle[upstream].borrow_mut();
        for _ in 0..idle.len() {
            let connection = idle.pop_front()?;
            if connection.is_ready() {
                return Some(connection);
            }
            if !connection.is_closed() {
                idle.push_back(connection);
            }
        }
        None
    }
}

async fn connect(upstream: SocketAddr) -> anyhow::Result<SendRequest<Incoming>> {
    let socket = TcpStream::connect(upstream).await.context("connecting to the upstream")?;
    socket.set_nodelay(true)?;
    let (connection, driver) = handshake(TokioIo::new(socket)).await?;
    spawn_local(async { drop(driver.await) });
    Ok(connection)
}

async fn forward(pool: Rc<Pool>, request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
    let upstream = pool.next();
    let mut connection = match pool.take(upstream) {
        Some(connection) => connection,
        None => connect(pool.upstreams[upstream]).await?,
    };
    let response = connection.send_request(request).await?;
    pool.idle[upstream].borrow_mut().push_back(connection);
    Ok(response)
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().context("usage: bare <port> <upstream address>...")?.parse()?;
    let upstreams = arguments.map(|address| address.parse()).collect::<Result<Vec<SocketAddr>, _>>()?;
    anyhow::ensure!(!upstreams.is_empty(), "no upstream was given");
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    bench::serve(&listener, available_parallelism()?.get(), move || {
        let pool = Rc::new(Pool::new(upstreams.clone()));
        move |request| forward(Rc::clone(&pool), request)
    })?;
    Ok(())
}
