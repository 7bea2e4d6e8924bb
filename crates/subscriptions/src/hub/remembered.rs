//! How much all groups together may remember of the logs they told. When it is too much, the group that remembers most
//! forgets the older half. That changes nothing it is told; only a later reorganisation that reaches so far back can no
//! longer be told, and ends its clients' sockets.

use super::Hub;
use crate::ids::GroupId;

/// Bytes of logs that all groups remember at most.
const MOST_REMEMBERED: usize = 64 << 20;

impl Hub {
    /// A group that remembered so many bytes before may remember others now.
    pub(super) fn count_remembered(&mut self, id: GroupId, before: usize) {
        let after = self.groups.get(&id).map_or(0, |group| group.feed.remembered());
        self.remembered = self.remembered + after - before;
        while self.remembered > MOST_REMEMBERED {
            self.forget_some();
        }
    }

    fn forget_some(&mut self) {
        if let Some(most) = self.groups.values_mut().max_by_key(|group| group.feed.remembered()) {
            let before = most.feed.remembered();
            most.feed.halve_memory();
            self.remembered = self.remembered + most.feed.remembered() - before;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bytes::Bytes;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;
    use crate::frame::{Incoming, Notification};
    use crate::group::Group;
    use crate::hub::Settings;
    use crate::log::tests::json;
    use crate::topic::Topic;

    fn hub() -> Hub {
        let settings = Settings { share: false, per_socket: 100, per_client: 1, patience: Duration::ZERO };
        Hub::new(settings, Box::new(SmallRng::seed_from_u64(1)))
    }

    /// A group of its own that is told so many logs of so many bytes.
    fn tell(hub: &mut Hub, id: u64, logs: u64, bytes: usize, now: Instant) {
        let topic = Topic::Logs("{}".into());
        hub.groups.insert(GroupId(id), Group::new(topic, "eth_subscribe".into(), Bytes::new()));
        for index in 0..logs {
            let log = notification(index, bytes);
            hub.told(GroupId(id), &log, now);
        }
    }

    fn notification(index: u64, bytes: usize) -> Notification {
        let log = json(1, 1, index, false).replace("0x\"}", &format!("0x{}\"}}", "0".repeat(bytes)));
        let frame = format!(r#"{{"params":{{"subscription":"0x1","result":{log}}}}}"#);
        let Incoming::Notification(told) = Incoming::read(frame.into()) else { panic!("a notification") };
        told
    }

    // Kills: memories that are bounded one by one only, small ones that are cut for large ones, bytes of ended groups
    // that count for ever.
    #[test]
    fn all_memories_together_are_bounded() {
        #[expect(clippy::disallowed_methods, reason = "any instant will do")]
        let now = Instant::now();
        let mut hub = hub();
        tell(&mut hub, 1, 2, 100, now);
        let small = hub.remembered;
        assert!(small > 200);
        (2..72).for_each(|id| tell(&mut hub, id, 8, 120_000, now));
        let all = |hub: &Hub| hub.groups.values().map(|group| group.feed.remembered()).sum::<usize>();
        assert_eq!(hub.remembered, all(&hub));
        assert!((MOST_REMEMBERED / 2..=MOST_REMEMBERED).contains(&hub.remembered), "{}", hub.remembered);
        assert_eq!(hub.groups[&GroupId(1)].feed.remembered(), small);
        (1..72).for_each(|id| hub.end_group(GroupId(id), now));
        assert_eq!(hub.remembered, 0);
    }
}
