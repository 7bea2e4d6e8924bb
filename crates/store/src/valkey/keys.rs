//! The names of everything in Valkey. What belongs to one account carries the account as its hash tag, so that a
//! script may touch all of it in a cluster; the prefix keeps deployments apart.

use std::fmt::Write as _;

/// The version of what is stored. A release that stores otherwise uses another one, and meets nothing of ours.
const SCHEMA: &str = "v1";

/// Makes keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    ours: String,
    flags: String,
}

/// The keys of one account or address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Of(String);

/// The keys of one subject of client limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LimitKeys(String);

impl Keys {
    pub(crate) fn new(prefix: &str) -> Keys {
        Keys { ours: format!("{prefix}:{SCHEMA}:"), flags: format!("{prefix}:flags") }
    }

    pub(crate) fn account(&self, name: &str) -> Of {
        Of(format!("{}{{a.{}}}:", self.ours, escaped(name)))
    }

    pub(crate) fn address(&self, place: &str) -> Of {
        Of(format!("{}{{h.{}}}:", self.ours, escaped(place)))
    }

    /// The channel on which is said that something changed.
    pub(crate) fn changes(&self) -> String {
        format!("{}changes", self.ours)
    }

    /// A hash: values by flag. People write it, so its name has no version.
    pub(crate) fn flags(&self) -> String {
        self.flags.clone()
    }

    /// A hash: what checkers found, by endpoint and protocol.
    pub(crate) fn health(&self) -> String {
        format!("{}health", self.ours)
    }

    /// The channel on which findings and ejections are told.
    pub(crate) fn news(&self) -> String {
        format!("{}news", self.ours)
    }

    /// Who checks health now.
    pub(crate) fn checker(&self) -> String {
        format!("{}checker", self.ours)
    }

    /// What belongs to one subject of client limits, by the hash of its name.
    pub(crate) fn limits(&self, hashed: &str) -> LimitKeys {
        LimitKeys(format!("{}{{{hashed}}}:", self.ours))
    }

    /// A sorted set: the proxies that count the limits of clients, by when they were last heard.
    pub(crate) fn proxies(&self) -> String {
        format!("{}proxies", self.ours)
    }

    /// Written when a connection is made, to see whether writing is possible.
    pub(crate) fn trial(&self) -> String {
        format!("{}trial", self.ours)
    }
}

impl LimitKeys {
    /// A hash: of each window its number and use.
    pub(crate) fn windows(&self) -> String {
        format!("{}windows", self.0)
    }

    /// A sorted set: concurrency slots by when they end.
    pub(crate) fn slots(&self) -> String {
        format!("{}slots", self.0)
    }
}

impl Of {
    /// The record of parking, as `recovery` encodes it.
    pub(crate) fn park(&self) -> String {
        self.of("park")
    }

    /// The learned ceilings, as `aimd` encodes them.
    pub(crate) fn learned(&self) -> String {
        self.of("learned")
    }

    /// A hash: of each replica when it was last heard, and in how many it believes.
    pub(crate) fn replicas(&self) -> String {
        self.of("replicas")
    }

    /// A hash: what each replica dispatched, by the hour.
    pub(crate) fn hours(&self) -> String {
        self.of("hours")
    }

    /// A hash: how much each replica is asked for under a learned ceiling, and when it said so.
    pub(crate) fn wants(&self) -> String {
        self.of("wants")
    }

    /// A hash: what each replica uses of a level, by window, and when it said so.
    pub(crate) fn uses(&self) -> String {
        self.of("uses")
    }

    /// A hash: the ledger of one static limit.
    pub(crate) fn ledger(&self, limit: &ledger::Limit) -> String {
        let unit = match limit.unit {
            ledger::Unit::Requests => "requests",
            ledger::Unit::ComputeUnits => "units",
        };
        let smooth = if limit.smooth { ".smooth" } else { "" };
        self.of(&format!("ledger.{unit}.{}{smooth}", limit.window_ms))
    }

    /// Who probes it now.
    pub(crate) fn prober(&self) -> String {
        self.of("prober")
    }

    fn of(&self, what: &str) -> String {
        format!("{}{what}", self.0)
    }
}

/// Braces would end the hash tag, and blanks are a nuisance at a console.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b':' | b'/' => {
                text.push(char::from(byte));
            }
            other => {
                let _ = write!(text, "%{other:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::{Limit, Unit};

    #[test]
    fn keys_of_one_account_share_its_slot_and_nobody_elses() {
        let keys = Keys::new("headgate");
        assert_eq!(keys.account("main:a").park(), "headgate:v1:{a.main:a}:park");
        assert_eq!(keys.address("h:1").park(), "headgate:v1:{h.h:1}:park");
        assert_eq!(keys.flags(), "headgate:flags");
        // Kills a name that ends its own tag, and two names that become one.
        assert_eq!(keys.account("x}y {").park(), "headgate:v1:{a.x%7Dy%20%7B}:park");
        assert_ne!(keys.account("a%20").park(), keys.account("a ").park());
    }

    #[test]
    fn each_limit_has_a_ledger() {
        let of = Keys::new("p").account("a");
        let limit = Limit { amount: 5, unit: Unit::Requests, window_ms: 1000, smooth: false };
        let others = [
            Limit { unit: Unit::ComputeUnits, ..limit },
            Limit { window_ms: 2000, ..limit },
            Limit { smooth: true, ..limit },
        ];
        assert!(others.iter().all(|other| of.ledger(other) != of.ledger(&limit)));
        // Kills a new amount that starts a new ledger: during a reload replicas would spend both.
        assert_eq!(of.ledger(&Limit { amount: 9, ..limit }), of.ledger(&limit));
    }
}
