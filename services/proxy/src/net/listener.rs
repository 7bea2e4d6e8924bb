//! Accepts connections and deals each to the worker with the fewest. Kernel port sharing would leave workers idle.

use crate::hub::Delivery;
use crate::worker::Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{Sender, UnboundedSender};

/// Pause after the system refused to accept: file descriptors come back when connections end.
const BREATHER: Duration = Duration::from_millis(50);

/// A worker, as the dealer and the operator's routes see it.
#[derive(Clone)]
pub(crate) struct Dealer {
    pub(crate) orders: UnboundedSender<Order>,
    /// What the hub has for the worker's clients.
    pub(crate) deliveries: Sender<Delivery>,
    pub(crate) connections: Arc<AtomicUsize>,
}

/// Accepts until dropped. The queue to a worker is bounded by the process's file descriptors.
pub(crate) async fn deal(listener: TcpListener, workers: Vec<Dealer>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => hand_over(stream, &workers),
            Err(error) if is_the_peers(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "accepting a connection");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
}

fn hand_over(stream: tokio::net::TcpStream, workers: &[Dealer]) {
    let Ok(stream) = stream.into_std() else { return };
    let Some(idlest) = workers.iter().min_by_key(|worker| worker.connections.load(Relaxed)) else { return };
    idlest.connections.fetch_add(1, Relaxed);
    if idlest.orders.send(Order::Serve(stream)).is_err() {
        idlest.connections.fetch_sub(1, Relaxed);
    }
}

fn is_the_peers(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
