//! Where a group's upstream subscription is made: on a socket with room, on a new one, or not yet.

use std::time::{Duration, Instant};

use rand::Rng;

use super::{Hub, Timer};
use crate::action::{Action, Reason, Refusal};
use crate::endpoints::Open;
use crate::event::{Allowance, Grant};
use crate::group::Place;
use crate::ids::{EndpointId, GroupId, SocketId};
use crate::socket::Socket;

/// After all endpoints were tried in vain, the next round.
const ROUND: Duration = Duration::from_millis(250);

/// What was found for a group.
enum Found {
    Socket(SocketId),
    Later { at: Instant, limited: bool },
    Nobody,
}

impl Hub {
    /// Finds places for the groups that have none.
    pub(super) fn place_all(&mut self, now: Instant, allowance: &mut dyn Allowance) {
        if !std::mem::take(&mut self.place_due) {
            return;
        }
        let mut earliest: Option<Instant> = None;
        for group in self.unplaced.clone() {
            let at = match self.find(group, now, allowance) {
                Found::Socket(socket) => {
                    self.assign(group, socket);
                    continue;
                }
                Found::Later { at, limited } => self.wait_for(group, at, limited, now),
                Found::Nobody => match self.resort(group, now, allowance) {
                    Some(socket) => {
                        self.assign(group, socket);
                        continue;
                    }
                    None => self.nobody(group, now),
                },
            };
            earliest = match (earliest, at) {
                (Some(earliest), Some(at)) => Some(earliest.min(at)),
                (earliest, at) => earliest.or(at),
            };
        }
        if let Some(at) = earliest {
            self.timers.set(at, Timer::Place);
        }
    }

    fn find(&mut self, group: GroupId, now: Instant, allowance: &mut dyn Allowance) -> Found {
        let mut later: Option<(Instant, bool)> = None;
        for endpoint in self.endpoints.order(now) {
            if self
                .groups
                .get(&group)
                .is_none_or(|group| group.tried.contains(&endpoint) || group.cannot.contains(&endpoint))
            {
                continue;
            }
            let at = match self.endpoints.open(endpoint, now) {
                Open::Never => continue,
                Open::At(at, limited) => (at, limited),
                Open::Now => match self.socket_on(endpoint, now, allowance) {
                    Ok(socket) => return Found::Socket(socket),
                    Err(at) => (at, true),
                },
            };
            later = Some(later.map_or(at, |later| later.min(at)));
        }
        later.map_or(Found::Nobody, |(at, limited)| Found::Later { at, limited })
    }

    /// Nobody eligible made a new group's subscription, and nobody said why not: one that health shuts out may be back.
    fn resort(&mut self, id: GroupId, now: Instant, allowance: &mut dyn Allowance) -> Option<SocketId> {
        let group =
            self.groups.get(&id).filter(|group| group.members.is_empty() && group.refusal.is_none())?;
        let fresh = |endpoint: &EndpointId| {
            self.endpoints.is_last_resort(*endpoint, now)
                && !group.tried.contains(endpoint)
                && !group.cannot.contains(endpoint)
        };
        let endpoint = self.endpoints.order(now).into_iter().find(fresh)?;
        self.socket_on(endpoint, now, allowance).ok()
    }

    /// A socket of the endpoint that has room, or a new one.
    fn socket_on(
        &mut self,
        endpoint: EndpointId,
        now: Instant,
        allowance: &mut dyn Allowance,
    ) -> Result<SocketId, Instant> {
        let most = self.settings.per_socket.max(2);
        let with_room =
            self.sockets.iter().find(|(_, socket)| socket.endpoint == endpoint && socket.load() < most);
        if let Some((socket, _)) = with_room {
            return Ok(*socket);
        }
        match allowance.take(endpoint, now) {
            Grant::At(at) => Err(at),
            Grant::Now => {
                let socket = SocketId(self.next_id());
                self.sockets.insert(socket, Socket::new(endpoint));
                self.actions.push_back(Action::Open { socket, endpoint });
                Ok(socket)
            }
        }
    }

    fn assign(&mut self, group: GroupId, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.groups.insert(group);
        socket.queue.push_back(group);
        socket.idle = None;
        if let Some(placed) = self.groups.get_mut(&group) {
            placed.place = Place::Coming(id);
        }
        self.unplaced.remove(&group);
        self.busy.insert(id);
    }

    /// No room yet: clients wait as long as they would wait for an answer.
    fn wait_for(&mut self, group: GroupId, at: Instant, limited: bool, now: Instant) -> Option<Instant> {
        let waits = self.groups.get_mut(&group)?;
        waits.again = limited.then_some(at);
        let too_late = waits.deadline.is_some_and(|deadline| at > deadline);
        if waits.members.is_empty() && limited && too_late {
            self.refuse(group, &Refusal::Saturated { again: at }, now);
            return None;
        }
        Some(at)
    }

    /// All endpoints there are were tried.
    fn nobody(&mut self, group: GroupId, now: Instant) -> Option<Instant> {
        let order = self.endpoints.order(now);
        let lost = self.groups.get_mut(&group)?;
        let anybody = order.iter().any(|endpoint| self.endpoints.open(*endpoint, now) != Open::Never);
        if lost.members.is_empty() {
            let limited =
                order.iter().filter_map(|endpoint| self.endpoints.limited_until(*endpoint, now)).min();
            let refusal = match (lost.refusal.take(), limited, anybody) {
                (Some(answer), ..) => Refusal::Answer(answer),
                (None, Some(again), _) => Refusal::Saturated { again },
                (None, None, true) => Refusal::Failed,
                (None, None, false) => Refusal::NoEndpoint,
            };
            self.refuse(group, &refusal, now);
            return None;
        }
        let may = |endpoint: &EndpointId| self.endpoints.open(*endpoint, now) != Open::Never;
        if anybody && order.iter().filter(|endpoint| may(endpoint)).all(|able| lost.cannot.contains(able)) {
            self.give_up(group, Reason::NotElsewhere, now);
            return None;
        }
        lost.tried.clear();
        anybody.then(|| now + ROUND.mul_f64(self.rng.random_range(0.5..1.5)))
    }

    /// The deadline of a group, or something to fetch again.
    pub(super) fn group_due(&mut self, id: GroupId, now: Instant) {
        let Some(group) = self.groups.get(&id) else { return };
        if group.deadline.is_none_or(|deadline| deadline > now) {
            self.pursue(id, now);
        } else if group.members.is_empty() {
            let refusal = group.again.map_or(Refusal::Deadline, |again| Refusal::Saturated { again });
            self.refuse(id, &refusal, now);
        } else {
            self.give_up(id, Reason::NothingWorked, now);
        }
    }
}
