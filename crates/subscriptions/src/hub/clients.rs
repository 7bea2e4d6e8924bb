//! Clients: who has which subscription under which id, and how each is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rand::Rng;

use super::{Hub, Timer};
use crate::action::{Action, Member, Reason, Refusal};
use crate::group::{Group, Waiting};
use crate::ids::{ClientId, GroupId, SubscriptionId};
use crate::topic::Topic;

/// What a client has and waits for.
#[derive(Debug, Default)]
pub(super) struct Client {
    subscriptions: BTreeMap<SubscriptionId, GroupId>,
    awaited: Vec<GroupId>,
}

impl Hub {
    pub(super) fn subscribe(
        &mut self,
        client: ClientId,
        tag: u64,
        method: Box<str>,
        params: Bytes,
        now: Instant,
    ) {
        let most = self.settings.per_client;
        let known = self.clients.entry(client).or_default();
        if known.subscriptions.len() + known.awaited.len() >= most {
            self.answer(client, tag, Err(Refusal::TooMany { most }));
            return;
        }
        let id = self.group_for(method, params, now);
        let Some(group) = self.groups.get_mut(&id) else { return };
        if group.served || !group.members.is_empty() {
            self.admit(id, Waiting { client, tag });
            return;
        }
        group.waiting.push(Waiting { client, tag });
        self.clients.entry(client).or_default().awaited.push(id);
    }

    pub(super) fn unsubscribe(&mut self, client: ClientId, tag: u64, id: SubscriptionId, now: Instant) {
        let group = self.clients.get_mut(&client).and_then(|client| client.subscriptions.remove(&id));
        if let Some(group) = group {
            self.leave(group, client, Some(Member { client, id }), now);
        }
        self.actions.push_back(Action::Unsubscribed { client, tag, known: group.is_some() });
    }

    pub(super) fn gone(&mut self, client: ClientId, now: Instant) {
        let Some(was) = self.clients.remove(&client) else { return };
        let groups: BTreeSet<GroupId> = was.subscriptions.into_values().chain(was.awaited).collect();
        for group in groups {
            self.leave(group, client, None, now);
        }
    }

    /// The group of a call: an equal one, if there is and may be shared.
    fn group_for(&mut self, method: Box<str>, params: Bytes, now: Instant) -> GroupId {
        let topic = Topic::of(&method, &params);
        let shares = self.settings.share && topic != Topic::Own;
        if let Some(group) = self.shared.get(&topic).filter(|_| shares) {
            return *group;
        }
        let id = GroupId(self.next_id());
        if shares {
            self.shared.insert(topic.clone(), id);
        }
        let mut group = Group::new(topic, method, params);
        group.deadline = Some(now + self.settings.patience);
        self.timers.set(now + self.settings.patience, Timer::Group(id));
        self.groups.insert(id, group);
        self.unplaced.insert(id);
        self.place_due = true;
        id
    }

    /// Gives a client its id in a group that is served.
    fn admit(&mut self, group: GroupId, waiting: Waiting) {
        let id = SubscriptionId(self.rng.random());
        let Some(joined) = self.groups.get_mut(&group) else { return };
        let member = Member { client: waiting.client, id };
        Arc::make_mut(&mut joined.members).push(member);
        self.clients.entry(waiting.client).or_default().subscriptions.insert(id, group);
        self.answer(waiting.client, waiting.tag, Ok(id));
    }

    /// The group is served: those who wait get their ids.
    pub(super) fn admit_waiting(&mut self, group: GroupId) {
        if let Some(served) = self.groups.get_mut(&group) {
            served.served = true;
            if served.members.is_empty() || served.topic == Topic::Own {
                served.deadline = None;
            }
        }
        for waiting in self.take_waiting(group) {
            self.admit(group, waiting);
        }
    }

    /// The group cannot be served: those who wait are told so, and it ends.
    pub(super) fn refuse(&mut self, group: GroupId, refusal: &Refusal, now: Instant) {
        for waiting in self.take_waiting(group) {
            self.answer(waiting.client, waiting.tag, Err(refusal.clone()));
        }
        self.end_group(group, now);
    }

    /// The group can no longer be served without a loss: its clients must start anew.
    pub(super) fn give_up(&mut self, group: GroupId, reason: Reason, now: Instant) {
        let Some(lost) = self.groups.get(&group) else { return };
        let members = Arc::clone(&lost.members);
        self.refuse(group, &Refusal::Failed, now);
        let clients: BTreeSet<ClientId> = members.iter().map(|member| member.client).collect();
        for client in clients {
            self.gone(client, now);
            self.actions.push_back(Action::CloseClient { client, reason });
        }
    }

    fn take_waiting(&mut self, group: GroupId) -> Vec<Waiting> {
        let waiting =
            self.groups.get_mut(&group).map(|group| std::mem::take(&mut group.waiting)).unwrap_or_default();
        for one in &waiting {
            if let Some(client) = self.clients.get_mut(&one.client)
                && let Some(at) = client.awaited.iter().position(|awaited| *awaited == group)
            {
                client.awaited.swap_remove(at);
            }
        }
        waiting
    }

    fn leave(&mut self, group: GroupId, client: ClientId, only: Option<Member>, now: Instant) {
        let Some(left) = self.groups.get_mut(&group) else { return };
        left.leave(client, only);
        if left.is_deserted() {
            self.end_group(group, now);
        }
    }

    fn answer(&mut self, client: ClientId, tag: u64, result: Result<SubscriptionId, Refusal>) {
        self.actions.push_back(Action::Subscribed { client, tag, result });
    }
}
