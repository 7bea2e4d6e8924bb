//! An upstream socket: what runs on it, what was asked on it, and the heads it told. Every socket that carries
//! Ethereum subscriptions follows `newHeads` itself: that tells how far it is, and the shared heads ride on it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;

use crate::block::Hash;
use crate::frame::Notification;
use crate::ids::{CallId, EndpointId, GroupId};
use crate::stall::Pace;

/// Notifications that come before the answer that names their subscription.
const EARLY: usize = 64;

#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) endpoint: EndpointId,
    pub(crate) open: bool,
    pub(crate) pace: Pace,
    /// The head that its own subscription told last.
    pub(crate) newest: Option<Hash>,
    pub(crate) follower: Follower,
    /// The heads group that is told what the follower is.
    pub(crate) rider: Option<GroupId>,
    /// All that are on it or will be.
    pub(crate) groups: BTreeSet<GroupId>,
    /// Those that are not subscribed yet.
    pub(crate) queue: VecDeque<GroupId>,
    pub(crate) calls: BTreeMap<CallId, Asked>,
    /// Upstream's ids of subscriptions.
    pub(crate) routes: HashMap<Bytes, GroupId>,
    early: VecDeque<Notification>,
    /// Those that want to know the node's height.
    pub(crate) curious: Vec<GroupId>,
    /// Since when it carries nothing.
    pub(crate) idle: Option<Instant>,
}

/// The socket's own subscription to `newHeads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Follower {
    None,
    Asked,
    On(Bytes),
    /// The provider has none: the socket does without.
    Refused,
}

/// What a call on the socket is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Follow,
    /// For a group, with this method.
    Subscribe(GroupId, Box<str>),
    Height(Vec<GroupId>),
    /// Nobody waits for it.
    Unsubscribe,
}

impl Socket {
    pub(crate) fn new(endpoint: EndpointId) -> Self {
        Self {
            endpoint,
            open: false,
            pace: Pace::default(),
            newest: None,
            follower: Follower::None,
            rider: None,
            groups: BTreeSet::new(),
            queue: VecDeque::new(),
            calls: BTreeMap::new(),
            routes: HashMap::new(),
            early: VecDeque::new(),
            curious: Vec::new(),
            idle: None,
        }
    }

    /// Subscriptions it carries or will, its own among them.
    pub(crate) fn load(&self) -> usize {
        let own = usize::from(self.rider.is_none() && self.follower != Follower::Refused);
        self.groups.len() + own
    }

    pub(crate) fn asks_height(&self) -> bool {
        self.calls.values().any(|asked| matches!(asked, Asked::Height(_)))
    }

    /// Keeps a notification whose subscription is not known yet, if one is being asked for.
    pub(crate) fn keep_early(&mut self, notification: Notification) {
        let awaited = self.calls.values().any(|asked| matches!(asked, Asked::Follow | Asked::Subscribe(..)));
        if awaited && self.early.len() < EARLY {
            self.early.push_back(notification);
        }
    }

    /// Those of this subscription that came before its answer.
    pub(crate) fn take_early(&mut self, subscription: &Bytes) -> Vec<Notification> {
        let (mine, others): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.early).into_iter().partition(|told| told.subscription == *subscription);
        self.early = others;
        Vec::from(mine)
    }
}
