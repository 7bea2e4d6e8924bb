//! One named gate: its ceiling, its flag, how long anybody may wait at it, and how many were turned away.

use super::{Caps, Change};
use ::gate::{ConcurrencyGate, Entry, Load, Permit};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What every flag of ours begins with.
pub const NAMESPACE: &str = "headgate.concurrency.";

#[derive(Debug)]
pub struct Gate {
    /// As metrics and logs call it.
    pub name: Box<str>,
    /// The flag that tightens it.
    pub flag: Box<str>,
    /// From the settings; a flag never goes above it.
    ceiling: Option<NonZeroU32>,
    gate: ConcurrencyGate,
    /// Nothing can ever limit it: passing it costs nothing, and who is inside is not counted.
    open: bool,
    patience: Duration,
    shed: [AtomicU64; Shed::ALL.len()],
}

/// A place inside, free again when dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held for its drop")] Option<Permit>);

impl Place {
    /// Inside of a gate that counts nobody.
    pub(super) fn free() -> Place {
        Place(None)
    }
}

/// Why somebody was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shed {
    /// As many waited as may.
    QueueFull,
    /// It waited as long as it may.
    TimedOut,
}

impl Shed {
    pub const ALL: [Shed; 2] = [Shed::QueueFull, Shed::TimedOut];

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Shed::QueueFull => "queue_full",
            Shed::TimedOut => "timeout",
        }
    }
}

impl Gate {
    pub fn new(name: &str, ceiling: Option<NonZeroU32>, queue: u32, patience: Duration) -> Gate {
        Gate {
            name: name.into(),
            flag: flag_of(name).into(),
            ceiling,
            gate: ConcurrencyGate::new(ceiling, queue),
            open: false,
            patience,
            shed: Default::default(),
        }
    }

    /// A gate that has no limit and never gets one.
    pub fn open(name: &str, patience: Duration) -> Gate {
        Gate { open: true, ..Gate::new(name, None, 0, patience) }
    }

    /// A place, if there is one at once.
    pub fn try_enter(&self) -> Option<Place> {
        if self.open {
            return Some(Place::free());
        }
        self.gate.try_enter().map(|permit| Place(Some(permit)))
    }

    /// A place, at once or after a wait that ends at `until` and lasts no longer than anybody may wait here.
    pub async fn enter(&self, until: Instant) -> Result<Place, Shed> {
        if self.open {
            return Ok(Place::free());
        }
        let waiting = match self.gate.enter() {
            Entry::Admitted(permit) => return Ok(Place(Some(permit))),
            Entry::Queued(waiting) => waiting,
            Entry::Full => return Err(self.turn_away(Shed::QueueFull)),
        };
        let until = until.min(Instant::now() + self.patience);
        match tokio::time::timeout_at(until.into(), waiting).await {
            Ok(permit) => Ok(Place(Some(permit))),
            Err(_) => Err(self.turn_away(Shed::TimedOut)),
        }
    }

    /// Sets the limit that these caps come to; what changed by that.
    pub(crate) fn tighten(&self, caps: &Caps) -> Option<Change> {
        let asked = caps.get(&*self.flag).copied();
        let to = [asked, self.ceiling].into_iter().flatten().min();
        let from = self.load().limit;
        if self.open || from == to {
            return None;
        }
        self.gate.resize(to);
        Some(Change { gate: self.name.clone(), from, to })
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    pub fn load(&self) -> Load {
        self.gate.load()
    }

    /// How many were turned away, by reason.
    pub fn shed(&self) -> impl Iterator<Item = (Shed, u64)> {
        Shed::ALL.into_iter().zip(&self.shed).map(|(shed, count)| (shed, count.load(Relaxed)))
    }

    fn turn_away(&self, shed: Shed) -> Shed {
        self.shed[shed as usize].fetch_add(1, Relaxed);
        shed
    }
}

/// The flag of a gate. Chains may have names that flags may not.
fn flag_of(gate: &str) -> String {
    let (head, chain) = match gate.strip_prefix("upstream.") {
        Some(chain) => ("upstream.", chain),
        None => (gate, ""),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("{NAMESPACE}{head}{}", chain.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(limit: u32) -> Option<NonZeroU32> {
        NonZeroU32::new(limit)
    }

    /// Kills: a flag that some provider cannot name, and one that two gates of ours share.
    #[test]
    fn each_gate_has_its_flag() {
        for (gate, flag) in [
            ("upstream", "headgate.concurrency.upstream"),
            ("upstream.main", "headgate.concurrency.upstream.main"),
            ("upstream.base-1", "headgate.concurrency.upstream.base-1"),
            ("upstream.a.b/ü x", "headgate.concurrency.upstream.a_b___x"),
            ("websocket", "headgate.concurrency.websocket"),
            ("websocket.handshake", "headgate.concurrency.websocket.handshake"),
        ] {
            assert_eq!(flag_of(gate), flag);
        }
    }

    /// Kills: a flag that raises a ceiling, one that is forgotten when it goes, and a change that is told twice.
    #[test]
    fn a_flag_only_tightens() {
        let gate = Gate::new("upstream", limit(10), 0, Duration::ZERO);
        let mut before = limit(10);
        for (asked, to) in [(4, 4), (4, 4), (10, 10), (11, 10), (1, 1), (0, 10), (u32::MAX, 10)] {
            let caps: Caps = limit(asked).map(|asked| (gate.flag.to_string(), asked)).into_iter().collect();
            let change = Change { gate: "upstream".into(), from: before, to: limit(to) };
            assert_eq!(gate.tighten(&caps), (before != limit(to)).then_some(change), "{asked}");
            before = limit(to);
            assert_eq!(gate.load().limit, before, "{asked}");
        }
    }

    /// Kills: a ceiling of nothing that a flag cannot tighten, or that stays when the flag goes.
    #[test]
    fn a_gate_without_a_ceiling_can_be_tightened_and_released() {
        let gate = Gate::new("upstream.a.b", None, 0, Duration::ZERO);
        let caps = Caps::from([("headgate.concurrency.upstream.a_b".to_owned(), NonZeroU32::MIN)]);
        gate.tighten(&caps);
        let held = gate.try_enter();
        assert!(held.is_some() && gate.try_enter().is_none());
        gate.tighten(&Caps::new());
        assert!(gate.try_enter().is_some());
    }
}
