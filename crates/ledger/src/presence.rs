//! Which replicas there are, as the store hears them, and what must be kept back for those it no longer hears.
//! Decides shares; never grants anything.

use crate::StoreMs;

/// A replica unheard for this long may be spending on its own.
const SILENT_MS: u64 = 2_000;
/// A replica unheard for this long is taken for gone.
const GONE_MS: u64 = 600_000;

/// A replica's name, chosen by itself at its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder(pub u64);

/// Replicas and when they were last heard. A handful: searched in order.
#[derive(Debug, Clone, Default)]
pub struct Presence {
    replicas: Vec<Replica>,
}

#[derive(Debug, Clone)]
struct Replica {
    holder: Holder,
    heard: StoreMs,
    /// The fewest proxies it may believe in: what it said it knew, or what it was answered since.
    believes: u32,
}

impl Presence {
    /// A replica spoke; `knows` is the number of proxies it believes in, if it was ever told one. Returns the number
    /// to tell it: itself and everybody who is not known to be gone.
    pub fn heard(&mut self, holder: Holder, knows: Option<u32>, now: StoreMs) -> u32 {
        self.replicas.retain(|r| now.since(r.heard) < GONE_MS && r.holder != holder);
        let live = self.replicas.len() as u32 + 1;
        // The answer may get lost: it goes on with what it knew, or with what it is told.
        let believes = knows.unwrap_or(live).min(live).max(1);
        self.replicas.push(Replica { holder, heard: now, believes });
        live
    }

    /// A replica said goodbye, after returning what it held: nothing is kept back for it.
    pub fn goodbye(&mut self, holder: Holder) {
        self.replicas.retain(|r| r.holder != holder);
    }

    /// Replicas not known to be gone.
    #[must_use]
    pub fn live(&self, now: StoreMs) -> u32 {
        self.replicas.iter().filter(|r| now.since(r.heard) < GONE_MS).count().max(1) as u32
    }

    /// What silent replicas may be spending of `amount` in a window that is running or starts at `at`.
    #[must_use]
    pub fn withheld(&self, amount: u32, at: StoreMs) -> u32 {
        let silent = |r: &&Replica| (SILENT_MS..GONE_MS).contains(&at.since(r.heard));
        let shares =
            self.replicas.iter().filter(silent).map(|r| u64::from(share(amount, r.believes))).sum::<u64>();
        shares.min(u64::from(amount)) as u32
    }
}

/// What a replica cut off from the store may spend of `amount`, believing in `proxies`: half of an equal share.
#[must_use]
pub fn share(amount: u32, proxies: u32) -> u32 {
    amount / proxies.max(1).saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_replicas_share_is_kept_back_for_ten_minutes() {
        let mut presence = Presence::default();
        presence.heard(Holder(1), None, StoreMs(0));
        assert_eq!(presence.heard(Holder(2), None, StoreMs(0)), 2);
        for (at, expected) in [(1999, 0), (2000, 500 + 250), (599_999, 750), (600_000, 0)] {
            assert_eq!(presence.withheld(1000, StoreMs(at)), expected, "{at}");
        }
        // The first believed to be alone; told of both, and asked again, it believes in two.
        presence.heard(Holder(1), Some(2), StoreMs(1000));
        assert_eq!(presence.withheld(1000, StoreMs(3000)), 500);
        presence.goodbye(Holder(1));
        assert_eq!((presence.withheld(1000, StoreMs(3000)), presence.live(StoreMs(3000))), (250, 1));
    }

    /// Kills taking the answered number for known: the answer may be lost.
    #[test]
    fn what_a_replica_last_said_to_know_counts_until_it_confirms() {
        let mut presence = Presence::default();
        presence.heard(Holder(1), None, StoreMs(0));
        presence.heard(Holder(2), None, StoreMs(0));
        presence.heard(Holder(1), Some(1), StoreMs(0));
        presence.heard(Holder(2), Some(2), StoreMs(5000));
        assert_eq!(presence.withheld(1000, StoreMs(5000)), 500);
    }
}
