//! Upstream sockets: what is asked on them, and what becomes of their groups when they end.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{ANSWER, Hub, IDLE, RECOVERY, Timer};
use crate::action::Action;
use crate::endpoints::Open;
use crate::event::{Allowance, Candidate, End, Grant};
use crate::group::Place;
use crate::ids::{EndpointId, GroupId, SocketId};
use crate::socket::{Asked, Follower};
use crate::topic::Topic;

impl Hub {
    pub(super) fn opened(&mut self, socket: SocketId) {
        if let Some(opened) = self.sockets.get_mut(&socket) {
            opened.open = true;
            self.busy.insert(socket);
        }
    }

    pub(super) fn refused(&mut self, socket: SocketId, again: Option<Duration>, now: Instant) {
        if let Some(refused) = self.sockets.get(&socket) {
            match again {
                Some(_) => self.endpoints.limited(refused.endpoint, again, now, &mut self.rng),
                None => self.endpoints.failed(refused.endpoint, now, &mut self.rng),
            }
            self.lose(socket, now);
        }
    }

    pub(super) fn closed(&mut self, socket: SocketId, end: End, now: Instant) {
        if let Some(closed) = self.sockets.get(&socket) {
            if end == End::Failed {
                self.endpoints.failed(closed.endpoint, now, &mut self.rng);
            }
            self.lose(socket, now);
        }
    }

    pub(super) fn endpoints_are(&mut self, candidates: &[Candidate], now: Instant) {
        self.endpoints.update(candidates);
        self.place_due = true;
        let removed: Vec<SocketId> = self
            .sockets
            .iter()
            .filter(|(_, socket)| !self.endpoints.has(socket.endpoint))
            .map(|(id, _)| *id)
            .collect();
        for socket in removed {
            self.close(socket, End::Normal, now);
        }
    }

    /// Another endpoint has this block: who stands still beside it is left, if there is anybody to go to.
    pub(super) fn seen(&mut self, endpoint: EndpointId, number: u64, now: Instant) {
        let mut still = Vec::new();
        for (id, socket) in &mut self.sockets {
            if socket.endpoint == endpoint || !matches!(socket.follower, Follower::On(_)) {
                continue;
            }
            match socket.pace.other(endpoint, number, now) {
                Some(at) if at <= now => still.push(*id),
                Some(at) => self.timers.set(at, Timer::Socket(*id)),
                None => {}
            }
        }
        still.into_iter().for_each(|socket| self.leave_standing(socket, now));
    }

    fn leave_standing(&mut self, socket: SocketId, now: Instant) {
        let Some(endpoint) = self.sockets.get(&socket).map(|socket| socket.endpoint) else { return };
        if self.endpoints.anybody_but(endpoint) {
            self.endpoints.failed(endpoint, now, &mut self.rng);
            self.close(socket, End::Failed, now);
        }
    }

    pub(super) fn socket_due(&mut self, id: SocketId, now: Instant) {
        let Some(socket) = self.sockets.get(&id) else { return };
        if socket.idle.is_some_and(|since| since + IDLE <= now) {
            self.close(id, End::Normal, now);
        } else if socket.pace.stands_still(now) {
            self.leave_standing(id, now);
        } else {
            self.busy.insert(id);
        }
    }

    pub(super) fn close(&mut self, socket: SocketId, end: End, now: Instant) {
        if let Some(closed) = self.sockets.get(&socket) {
            self.actions.push_back(Action::Close { socket, endpoint: closed.endpoint, end });
            self.lose(socket, now);
        }
    }

    /// The socket is no more: its groups need another.
    fn lose(&mut self, id: SocketId, now: Instant) {
        let Some(socket) = self.sockets.remove(&id) else { return };
        self.busy.remove(&id);
        for group in &socket.groups {
            let Some(lost) = self.groups.get_mut(group) else { continue };
            if !lost.members.is_empty() {
                lost.feed.lost();
                if lost.deadline.is_none() {
                    lost.deadline = Some(now + RECOVERY);
                    self.timers.set(now + RECOVERY, Timer::Group(*group));
                }
            }
            self.fetches.forget_logs(*group);
            self.displace(*group, socket.endpoint);
        }
        self.fetches.forget_blocks(id);
    }

    /// The group has no place, and this endpoint is not its next.
    pub(super) fn displace(&mut self, group: GroupId, endpoint: EndpointId) {
        if let Some(displaced) = self.groups.get_mut(&group) {
            displaced.place = Place::Nowhere;
            displaced.served = false;
            displaced.tried.insert(endpoint);
            self.unplaced.insert(group);
            self.place_due = true;
        }
    }

    /// Asks what is to be asked, as far as there is room.
    pub(super) fn ask_all(&mut self, now: Instant, allowance: &mut dyn Allowance) {
        while let Some(id) = self.busy.pop_first() {
            let Some(socket) = self.sockets.get(&id).filter(|socket| socket.open) else { continue };
            let endpoint = socket.endpoint;
            if let Open::At(at, _) = self.endpoints.open(endpoint, now) {
                self.timers.set(at, Timer::Socket(id));
                continue;
            }
            while self.ride_or_wants_to_ask(id) {
                if let Grant::At(at) = allowance.take(endpoint, now) {
                    self.timers.set(at, Timer::Socket(id));
                    break;
                }
                self.ask_next(id, now);
            }
        }
    }

    /// Heads that ride on the socket's own subscription need no call; whether anything else does.
    fn ride_or_wants_to_ask(&mut self, id: SocketId) -> bool {
        loop {
            let Some(socket) = self.sockets.get_mut(&id) else { return false };
            let rides =
                |group: &GroupId| self.groups.get(group).is_some_and(|group| group.topic == Topic::Heads);
            let rider = socket.queue.front().filter(|group| socket.rider.is_none() && rides(group)).copied();
            let Some(rider) = rider.filter(|_| socket.follower != Follower::Refused) else {
                let curious = !socket.curious.is_empty() && !socket.asks_height();
                return self.wants_follower(id)
                    || curious
                    || self.sockets.get(&id).is_some_and(|s| !s.queue.is_empty());
            };
            socket.queue.pop_front();
            socket.rider = Some(rider);
            if matches!(socket.follower, Follower::On(_)) {
                self.is_there(rider, id, None);
            }
        }
    }

    fn wants_follower(&self, id: SocketId) -> bool {
        let Some(socket) = self.sockets.get(&id) else { return false };
        let follows =
            |group: &GroupId| self.groups.get(group).is_some_and(|it| it.topic.follows_heads(&it.method));
        socket.follower == Follower::None && socket.groups.iter().any(follows)
    }

    fn ask_next(&mut self, id: SocketId, now: Instant) {
        let follow = self.wants_follower(id);
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (asked, method, params): (_, Box<str>, _) = if follow {
            socket.follower = Follower::Asked;
            (Asked::Follow, "eth_subscribe".into(), Bytes::from_static(br#"["newHeads"]"#))
        } else if let Some(group) = socket.queue.pop_front() {
            let Some(asks) = self.groups.get(&group) else { return };
            (Asked::Subscribe(group, asks.method.clone()), asks.method.clone(), asks.params.clone())
        } else {
            let curious = std::mem::take(&mut socket.curious);
            (Asked::Height(curious), "eth_blockNumber".into(), Bytes::from_static(b"[]"))
        };
        self.call(id, asked, method, params, now);
    }

    pub(super) fn call(&mut self, id: SocketId, asked: Asked, method: Box<str>, params: Bytes, now: Instant) {
        let call = self.next_call();
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.calls.insert(call, asked);
            self.timers.set(now + ANSWER, Timer::Call(id, call));
            self.actions.push_back(Action::Call { socket: id, call, method, params });
        }
    }

    /// Nobody wants the group any more.
    pub(super) fn end_group(&mut self, id: GroupId, now: Instant) {
        let Some(group) = self.groups.remove(&id) else { return };
        self.remembered -= group.feed.remembered();
        self.shared.retain(|_, shared| *shared != id);
        self.unplaced.remove(&id);
        self.fetches.forget_logs(id);
        let Some(on) = group.place.socket() else { return };
        if let Some(socket) = self.sockets.get_mut(&on) {
            socket.groups.remove(&id);
            socket.queue.retain(|queued| *queued != id);
            socket.rider = socket.rider.filter(|rider| *rider != id);
        }
        if let Place::There(_, Some(subscription)) = &group.place {
            if let Some(socket) = self.sockets.get_mut(&on) {
                socket.routes.remove(subscription);
            }
            self.give_back(on, &group.method, subscription, now);
        }
        self.note_idle(on, now);
    }

    pub(super) fn note_idle(&mut self, id: SocketId, now: Instant) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && socket.groups.is_empty()
            && socket.idle.is_none()
        {
            socket.idle = Some(now);
            self.timers.set(now + IDLE, Timer::Socket(id));
        }
    }

    /// Ends a subscription at the upstream. It is no use of a kind that a ceiling should hold back.
    pub(super) fn give_back(&mut self, socket: SocketId, method: &str, subscription: &Bytes, now: Instant) {
        let method = method.replace("Subscribe", "Unsubscribe").replace("_subscribe", "_unsubscribe");
        let params = [b"[", &subscription[..], b"]"].concat();
        self.call(socket, Asked::Unsubscribe, method.into(), params.into(), now);
    }
}
