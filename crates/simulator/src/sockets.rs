//! The WebSockets of a provider: what tests make them do. Carried out in `talk`.

mod feed;
mod talk;

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{broadcast, watch};

use crate::answer::Answer;
use crate::node::RpcError;

pub(crate) use feed::Feeds;
pub(crate) use talk::{Upgrade, accept, asks_for_socket};

/// Commands on their way to sockets.
const COMMANDS: usize = 64;

/// What a provider's sockets are to do.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) state: watch::Sender<State>,
    pub(crate) commands: broadcast::Sender<Command>,
    pub(crate) open: AtomicUsize,
    pub(crate) subscriptions: AtomicUsize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Neither reads nor sends: no answer, no notification, no pong.
    pub(crate) silent: bool,
    /// The answer to whoever wants a socket.
    pub(crate) refusal: Option<Answer>,
    /// So many subscriptions on a socket, and what the next gets.
    pub(crate) most: Option<(usize, RpcError)>,
}

/// Something that every socket does at once.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Close(u16, String),
    Reset,
    Send(String),
}

impl Default for Sockets {
    fn default() -> Self {
        Self {
            state: watch::Sender::default(),
            commands: broadcast::Sender::new(COMMANDS),
            open: AtomicUsize::new(0),
            subscriptions: AtomicUsize::new(0),
        }
    }
}

impl Sockets {
    pub(crate) fn command(&self, command: Command) {
        // Without a socket nobody has to do it.
        let _ = self.commands.send(command);
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.subscriptions.load(Ordering::SeqCst)
    }
}
