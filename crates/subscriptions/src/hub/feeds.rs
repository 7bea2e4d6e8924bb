//! From what upstreams tell to what clients are told, and what is fetched where something is missing.

use std::time::Instant;

use bytes::Bytes;

use super::{Hub, RECOVERY, Timer};
use crate::action::{Action, Payload, Reason};
use crate::block::{Block, Head};
use crate::fetches::{Asked, Got, Spot};
use crate::frame::Notification;
use crate::group::{Feed, Group};
use crate::heads::Step;
use crate::ids::{EndpointId, FetchId, GroupId, SocketId};
use crate::log::Log;
use crate::logs::Want;
use crate::socket::Follower;
use crate::topic::Topic;

impl Hub {
    pub(super) fn notified(&mut self, id: SocketId, told: Notification, now: Instant) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if matches!(&socket.follower, Follower::On(own) if *own == told.subscription) {
            let rider = socket.rider;
            if let Some(block) = Block::read(&told.result) {
                self.follow(id, &block, now);
            }
            if let Some(rider) = rider {
                self.told(rider, &told, now);
            }
        } else if let Some(group) = socket.routes.get(&told.subscription).copied() {
            self.told(group, &told, now);
        } else {
            socket.keep_early(told);
        }
    }

    /// The socket's own subscription told a head.
    fn follow(&mut self, id: SocketId, block: &Block, now: Instant) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.pace.moved(block.number, now);
        let follows = socket.newest.replace(block.hash) == Some(block.parent);
        let (endpoint, groups) = (socket.endpoint, socket.groups.clone());
        if !follows {
            self.ask_anew(id, now);
        }
        for group in groups {
            let is_logs = |group: &Group| group.is_there() && matches!(group.feed, Feed::Logs(_));
            if self.groups.get(&group).is_some_and(is_logs) {
                self.step(group, Some(endpoint), now, |feed, out| match feed {
                    Feed::Logs(logs) => logs.head(block, out),
                    Feed::Heads(_) | Feed::Own => Ok(()),
                });
            }
        }
        self.seen(endpoint, block.number, now);
    }

    pub(super) fn told(&mut self, group: GroupId, told: &Notification, now: Instant) {
        let endpoint = self.endpoint_of(group);
        self.step(group, endpoint, now, |feed, out| feed.tell(told, out));
    }

    /// The node of a group's socket is at this height.
    pub(super) fn height(&mut self, on: SocketId, groups: Vec<GroupId>, height: Option<u64>, now: Instant) {
        for group in groups {
            let here = self
                .groups
                .get(&group)
                .is_some_and(|group| group.is_there() && group.place.socket() == Some(on));
            if here {
                let endpoint = self.endpoint_of(group);
                self.step(group, endpoint, now, |feed, out| {
                    feed.resume(height, out)?;
                    feed.begin(height);
                    Ok(())
                });
                self.admit_waiting(group);
            }
        }
    }

    pub(super) fn fetched(&mut self, fetch: FetchId, result: Option<Bytes>, now: Instant) {
        match self.fetches.answered(fetch) {
            Some(Asked::Block(spot)) => {
                let head = result.and_then(|result| Head::of_block(&result).ok().flatten());
                let head = head.filter(|head| head.block.number == spot.number);
                for group in self.fetches.put_block(spot, head, now) {
                    self.pursue(group, now);
                }
            }
            Some(Asked::Logs(group)) => {
                let logs = result.and_then(|result| Log::list(&result).ok());
                self.fetches.put_logs(group, logs.is_some(), now);
                if let Some(logs) = logs {
                    self.step(group, None, now, |feed, out| match feed {
                        Feed::Logs(feed) => feed.read(logs, out),
                        Feed::Heads(_) | Feed::Own => Ok(()),
                    });
                } else {
                    self.pursue(group, now);
                }
            }
            None => {}
        }
    }

    /// A node's chain may have changed: blocks that were fetched for its socket, or are about to be, are asked for again.
    pub(super) fn ask_anew(&mut self, socket: SocketId, now: Instant) {
        for group in self.fetches.forget_blocks(socket) {
            self.pursue(group, now);
        }
    }

    /// Gets a group what it misses, as far as that is at hand.
    pub(super) fn pursue(&mut self, group: GroupId, now: Instant) {
        self.step(group, None, now, |_, _| Ok(()));
    }

    /// One step of a group's feed: tells its clients what comes of it, and gets it what it then misses.
    fn step(
        &mut self,
        id: GroupId,
        endpoint: Option<EndpointId>,
        now: Instant,
        first: impl FnOnce(&mut Feed, &mut Vec<Payload>) -> Result<(), Reason>,
    ) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        let before = group.feed.remembered();
        let mut out = Vec::new();
        let mut outcome = first(&mut group.feed, &mut out);
        self.deliver(id, out, endpoint);
        while outcome.is_ok() {
            let mut out = Vec::new();
            outcome = match self.supply(id, now, &mut out) {
                Ok(true) => Ok(()),
                Ok(false) => break,
                Err(reason) => Err(reason),
            };
            self.deliver(id, out, None);
        }
        self.count_remembered(id, before);
        match outcome {
            Ok(()) => self.settle(id, now),
            Err(reason) => self.give_up(id, reason, now),
        }
    }

    /// Gives the feed what it wants if it is at hand, asks for it if not. False if nothing came of it now.
    fn supply(&mut self, id: GroupId, now: Instant, out: &mut Vec<Payload>) -> Result<bool, Reason> {
        let prefer = self.endpoint_of(id);
        let Some(group) = self.groups.get(&id) else { return Ok(false) };
        let place = group.place.socket();
        let blocks = match &group.feed {
            Feed::Heads(heads) => heads.wants(),
            Feed::Logs(logs) => match logs.wants() {
                Some(Want::Block(number)) => Some(number..=number),
                Some(Want::Logs { from, to }) => {
                    self.read_logs(id, from, to, prefer, now);
                    None
                }
                None => None,
            },
            Feed::Own => None,
        };
        let (Some(mut blocks), Some(socket)) = (blocks, place) else { return Ok(false) };
        let Some(number) = blocks.next() else { return Ok(false) };
        let got = self.get_block(Spot { socket, number }, id, now);
        for ahead in blocks {
            self.get_block(Spot { socket, number: ahead }, id, now);
        }
        self.feed_block(id, got, now, out)
    }

    fn get_block(&mut self, spot: Spot, id: GroupId, now: Instant) -> Got {
        let prefer = self.endpoint_of(id);
        let (got, fetch) = self.fetches.block(spot, id, prefer, now);
        self.actions.extend(fetch.map(Action::Fetch));
        got
    }

    fn feed_block(
        &mut self,
        id: GroupId,
        got: Got,
        now: Instant,
        out: &mut Vec<Payload>,
    ) -> Result<bool, Reason> {
        let Some(group) = self.groups.get_mut(&id) else { return Ok(false) };
        match (got, &mut group.feed) {
            (Got::Head(head), Feed::Heads(heads)) => {
                let step = heads.fetched(&head, out)?;
                if let (Step::Moved, Some(socket)) = (step, group.place.socket()) {
                    self.ask_anew(socket, now);
                }
                Ok(true)
            }
            (Got::Head(head), Feed::Logs(logs)) => logs.fetched(&head.block, out).map(|()| true),
            (Got::NotHere(again), feed) => {
                let goes_on = match feed {
                    Feed::Heads(heads) => heads.missing(out)?,
                    Feed::Logs(logs) => logs.missing(out),
                    Feed::Own => false,
                };
                if !goes_on {
                    self.timers.set(again, Timer::Group(id));
                }
                Ok(goes_on)
            }
            (Got::Head(_), Feed::Own) | (Got::Later, _) => Ok(false),
        }
    }

    fn read_logs(&mut self, id: GroupId, from: u64, to: u64, prefer: Option<EndpointId>, now: Instant) {
        let Some(Topic::Logs(filter)) = self.groups.get(&id).map(|group| &group.topic) else { return };
        match self.fetches.logs(id, (filter, from, to), prefer, now) {
            Ok(fetch) => self.actions.extend(fetch.map(Action::Fetch)),
            Err(again) => self.timers.set(again, Timer::Group(id)),
        }
    }

    /// A group that is served and misses nothing has no deadline; one that misses something has.
    fn settle(&mut self, id: GroupId, now: Instant) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        if !group.is_there() || group.members.is_empty() {
            return;
        }
        if !group.feed.is_filling() {
            group.deadline = None;
        } else if group.deadline.is_none() {
            group.deadline = Some(now + RECOVERY);
            self.timers.set(now + RECOVERY, Timer::Group(id));
        }
    }

    fn deliver(&mut self, id: GroupId, out: Vec<Payload>, endpoint: Option<EndpointId>) {
        let Some(group) = self.groups.get(&id).filter(|group| !group.members.is_empty()) else { return };
        let deliveries = out.into_iter().map(|payload| Action::Deliver {
            members: group.members.clone(),
            payload,
            endpoint,
        });
        self.actions.extend(deliveries);
    }

    fn endpoint_of(&self, id: GroupId) -> Option<EndpointId> {
        let socket = self.groups.get(&id)?.place.socket()?;
        self.sockets.get(&socket).map(|socket| socket.endpoint)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;
    use crate::block::tests::hash_text;
    use crate::frame::Incoming;
    use crate::hub::Settings;
    use crate::socket::Socket;

    fn head(number: u64, hash: u64, parent: u64) -> Notification {
        let (hash, parent) = (hash_text(hash), hash_text(parent));
        let head = format!(r#"{{"number":"{number:#x}","hash":"{hash}","parentHash":"{parent}"}}"#);
        let frame = format!(r#"{{"params":{{"subscription":"0x1","result":{head}}}}}"#);
        let Incoming::Notification(told) = Incoming::read(frame.into()) else { panic!("a notification") };
        told
    }

    /// Whether a block that is being fetched is still good after the node told these heads.
    fn check(heads: &[(u64, u64, u64)], good: bool) {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let settings = Settings { share: true, per_socket: 100, per_client: 1, patience: Duration::ZERO };
        let mut hub = Hub::new(settings, Box::new(SmallRng::seed_from_u64(1)));
        let mut socket = Socket::new(EndpointId(1));
        socket.follower = Follower::On(Bytes::from_static(b"\"0x1\""));
        hub.sockets.insert(SocketId(1), socket);
        hub.notified(SocketId(1), head(5, 50, 40), now);
        let spot = Spot { socket: SocketId(1), number: 5 };
        let fetch = hub.fetches.block(spot, GroupId(1), None, now).1.expect("asked for");
        heads.iter().for_each(|(number, hash, parent)| {
            hub.notified(SocketId(1), head(*number, *hash, *parent), now);
        });
        assert_eq!(hub.fetches.answered(fetch.id).is_some(), good, "{heads:?}");
    }

    // Kills: a block of before a reorganisation taken for one of after it, also where heights only rise.
    #[test]
    fn a_reorganisation_voids_what_was_fetched() {
        check(&[(6, 60, 50), (7, 70, 60)], true);
        check(&[(5, 51, 40)], false);
        check(&[(6, 61, 51)], false);
    }
}
