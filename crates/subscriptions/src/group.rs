//! Clients who share an upstream subscription: who they are, where it runs, and what is missing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::action::{Member, Payload, Reason};
use crate::block::{Block, Head};
use crate::frame::Notification;
use crate::heads::Heads;
use crate::ids::{ClientId, EndpointId, SocketId};
use crate::log::Log;
use crate::logs::Logs;
use crate::topic::Topic;

#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) topic: Topic,
    pub(crate) method: Box<str>,
    pub(crate) params: Bytes,
    /// Clients that have their ids. Shared with the deliveries on their way.
    pub(crate) members: Arc<Vec<Member>>,
    /// Clients that wait for theirs.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) place: Place,
    /// It is there, and what its clients are owed from there is known.
    pub(crate) served: bool,
    pub(crate) feed: Feed,
    /// Until when it must be served again.
    pub(crate) deadline: Option<Instant>,
    /// Endpoints that were lost or refused since it was last served.
    pub(crate) tried: BTreeSet<EndpointId>,
    /// Endpoints that said that they cannot.
    pub(crate) cannot: BTreeSet<EndpointId>,
    /// The first of their answers.
    pub(crate) refusal: Option<Bytes>,
    /// When there may be room, if a limit is why it has no place.
    pub(crate) again: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) client: ClientId,
    pub(crate) tag: u64,
}

/// Where the upstream subscription is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Nowhere,
    /// On its way there.
    Coming(SocketId),
    /// There, under this id of the upstream's; none where it rides on the socket's own.
    There(SocketId, Option<Bytes>),
}

impl Place {
    pub(crate) fn socket(&self) -> Option<SocketId> {
        match self {
            Self::Nowhere => None,
            Self::Coming(socket) | Self::There(socket, _) => Some(*socket),
        }
    }
}

/// What decides about its notifications.
#[derive(Debug)]
pub(crate) enum Feed {
    Heads(Heads),
    Logs(Box<Logs>),
    Own,
}

impl Group {
    pub(crate) fn new(topic: Topic, method: Box<str>, params: Bytes) -> Self {
        let feed = match &topic {
            Topic::Heads => Feed::Heads(Heads::default()),
            Topic::Logs(_) => Feed::Logs(Box::default()),
            Topic::Own => Feed::Own,
        };
        Self {
            topic,
            method,
            params,
            members: Arc::default(),
            waiting: Vec::new(),
            place: Place::Nowhere,
            served: false,
            feed,
            deadline: None,
            tried: BTreeSet::new(),
            cannot: BTreeSet::new(),
            refusal: None,
            again: None,
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        matches!(self.place, Place::There(..))
    }

    /// Nobody wants it any more.
    pub(crate) fn is_deserted(&self) -> bool {
        self.members.is_empty() && self.waiting.is_empty()
    }

    /// Takes a client out, or only one subscription of it.
    pub(crate) fn leave(&mut self, client: ClientId, only: Option<Member>) {
        match only {
            Some(member) => Arc::make_mut(&mut self.members).retain(|other| *other != member),
            None => {
                self.waiting.retain(|waiting| waiting.client != client);
                Arc::make_mut(&mut self.members).retain(|member| member.client != client);
            }
        }
    }
}

impl Feed {
    pub(crate) fn is_filling(&self) -> bool {
        match self {
            Self::Heads(heads) => heads.is_filling(),
            Self::Logs(logs) => logs.is_filling(),
            Self::Own => false,
        }
    }

    /// Bytes of logs that are remembered.
    pub(crate) fn remembered(&self) -> usize {
        match self {
            Self::Logs(logs) => logs.remembered(),
            Self::Heads(_) | Self::Own => 0,
        }
    }

    pub(crate) fn halve_memory(&mut self) {
        match self {
            Self::Logs(logs) => logs.halve_memory(),
            Self::Heads(_) | Self::Own => {}
        }
    }

    pub(crate) fn begin(&mut self, height: Option<u64>) {
        match self {
            Self::Heads(heads) => heads.begin(height),
            Self::Logs(logs) => logs.begin(height),
            Self::Own => {}
        }
    }

    pub(crate) fn lost(&mut self) {
        match self {
            Self::Heads(heads) => heads.lost(),
            Self::Logs(logs) => logs.lost(),
            Self::Own => {}
        }
    }

    pub(crate) fn resume(&mut self, height: Option<u64>, out: &mut Vec<Payload>) -> Result<(), Reason> {
        match self {
            Self::Heads(heads) => heads.resume(height, out),
            Self::Logs(logs) => logs.resume(height, out),
            Self::Own => Ok(()),
        }
    }

    /// Its own subscription told something. What cannot be read passes as it is.
    pub(crate) fn tell(&mut self, told: &Notification, out: &mut Vec<Payload>) -> Result<(), Reason> {
        match self {
            Self::Heads(heads) => {
                if let Some(block) = Block::read(&told.result) {
                    return heads.tell(Head { block, payload: told.payload.clone() }, out);
                }
            }
            Self::Logs(logs) => {
                if let Some(log) = Log::told(&told.result, &told.payload) {
                    return logs.tell(log, out);
                }
            }
            Self::Own => {}
        }
        out.push(told.payload.clone());
        Ok(())
    }
}
