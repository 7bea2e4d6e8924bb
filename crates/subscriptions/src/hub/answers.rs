//! What the answers to our calls on upstream sockets mean for the groups that wait for them.

use std::time::Instant;

use bytes::Bytes;

use super::Hub;
use crate::action::Refusal;
use crate::block::quantity;
use crate::event::{Answer, Blame, End};
use crate::group::Place;
use crate::ids::{CallId, GroupId, SocketId};
use crate::socket::{Asked, Follower};
use crate::topic::Topic;

impl Hub {
    /// A call that nobody answered: so will the others be, and pings take longer to tell.
    pub(super) fn call_due(&mut self, id: SocketId, call: CallId, now: Instant) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let endpoint = socket.endpoint;
        if socket.calls.remove(&call).is_some_and(|asked| asked != Asked::Unsubscribe) {
            self.endpoints.failed(endpoint, now, &mut self.rng);
            self.close(id, End::Failed, now);
        }
    }

    pub(super) fn answered(&mut self, id: SocketId, call: CallId, answer: Answer, now: Instant) {
        let Some(asked) = self.sockets.get_mut(&id).and_then(|socket| socket.calls.remove(&call)) else {
            return;
        };
        match (asked, answer) {
            (Asked::Follow, Answer::Result(subscription)) => self.follows(id, &subscription, now),
            (Asked::Follow, answer) => self.follows_not(id, &answer, now),
            (Asked::Subscribe(group, method), Answer::Result(subscription)) => {
                self.subscribed(id, group, &method, subscription, now);
            }
            (Asked::Subscribe(group, _), answer) => self.subscribed_not(id, group, &answer, now),
            (Asked::Height(groups), Answer::Result(height)) => {
                let height = serde_json::from_slice::<String>(&height).ok().and_then(|text| quantity(&text));
                self.height(id, groups, height, now);
            }
            (Asked::Height(groups), Answer::Error { .. } | Answer::None) => {
                self.height(id, groups, None, now);
            }
            (Asked::Unsubscribe, _) => {}
        }
        self.busy.insert(id);
    }

    fn follows(&mut self, id: SocketId, subscription: &Bytes, now: Instant) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.follower = Follower::On(subscription.clone());
        let early = socket.take_early(subscription);
        if let Some(rider) = socket.rider {
            self.is_there(rider, id, None);
        }
        early.into_iter().for_each(|told| self.notified(id, told, now));
    }

    fn follows_not(&mut self, id: SocketId, answer: &Answer, now: Instant) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let cannot = matches!(answer, Answer::Error { blame: Blame::Client | Blame::Capability, .. });
        socket.follower = if cannot { Follower::Refused } else { Follower::None };
        if let Some(rider) = socket.rider.take() {
            self.subscribed_not(id, rider, answer, now);
        } else {
            self.blame(id, answer, now);
        }
    }

    fn subscribed(&mut self, id: SocketId, group: GroupId, method: &str, subscription: Bytes, now: Instant) {
        if self.groups.get(&group).is_none_or(|group| group.place != Place::Coming(id)) {
            self.give_back(id, method, &subscription, now);
            return;
        }
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.routes.insert(subscription.clone(), group);
        let early = socket.take_early(&subscription);
        self.is_there(group, id, Some(subscription));
        early.into_iter().for_each(|told| self.notified(id, told, now));
    }

    fn subscribed_not(&mut self, id: SocketId, group: GroupId, answer: &Answer, now: Instant) {
        self.blame(id, answer, now);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let endpoint = socket.endpoint;
        socket.groups.remove(&group);
        let Some(refused) = self.groups.get_mut(&group) else { return };
        if let Answer::Error { answer, blame: Blame::Client | Blame::Capability } = answer {
            refused.refusal.get_or_insert_with(|| answer.clone());
            refused.cannot.insert(endpoint);
        }
        if let (Answer::Error { answer, blame: Blame::Client }, true) = (answer, refused.members.is_empty()) {
            self.refuse(group, &Refusal::Answer(answer.clone()), now);
        } else {
            self.displace(group, endpoint);
        }
        self.note_idle(id, now);
    }

    /// What an answer without a result says about the endpoint.
    fn blame(&mut self, id: SocketId, answer: &Answer, now: Instant) {
        let Some(endpoint) = self.sockets.get(&id).map(|socket| socket.endpoint) else { return };
        match answer {
            Answer::Error { blame: Blame::Limit { again }, .. } => {
                self.endpoints.limited(endpoint, *again, now, &mut self.rng);
            }
            Answer::Error { blame: Blame::Upstream, .. } | Answer::None => {
                self.endpoints.failed(endpoint, now, &mut self.rng);
            }
            Answer::Error { blame: Blame::Client | Blame::Capability, .. } | Answer::Result(_) => {}
        }
    }

    /// The group's upstream subscription is made.
    pub(super) fn is_there(&mut self, id: GroupId, on: SocketId, subscription: Option<Bytes>) {
        let (Some(group), Some(socket)) = (self.groups.get_mut(&id), self.sockets.get_mut(&on)) else {
            return;
        };
        group.place = Place::There(on, subscription);
        group.tried.clear();
        group.cannot.clear();
        group.refusal = None;
        group.again = None;
        self.endpoints.worked(socket.endpoint);
        if group.topic == Topic::Own {
            self.admit_waiting(id);
        } else {
            socket.curious.push(id);
            self.busy.insert(on);
        }
    }
}
