//! Which methods an endpoint has refused lately, and what it said: a bounded memory of method refusals (rate
//! limits and missing capabilities) per chain. It knows no method names; the key is the caller's, made of
//! endpoint, protocol and method. Pure.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parks of one chain at most; the least recently used goes first.
const CAPACITY: usize = 1_024;

/// The method parks of one chain: keys refused until a time, each with the refusal to answer from memory when
/// everybody refuses.
#[derive(Debug)]
pub struct MethodParks<K, R> {
    parks: HashMap<K, Park<R>>,
    /// Counts uses, to know the oldest.
    uses: AtomicU64,
}

#[derive(Debug)]
struct Park<R> {
    until: u64,
    refusal: R,
    used: AtomicU64,
}

impl<K: Eq + Hash + Clone, R> MethodParks<K, R> {
    /// Nothing parked.
    #[must_use]
    pub fn new() -> Self {
        Self { parks: HashMap::new(), uses: AtomicU64::new(0) }
    }

    /// How long (milliseconds) a method that an endpoint lacks is not asked of it.
    pub const CAPABILITY_MS: u64 = 300_000;

    /// Parks `key` until `until`; a later end than the one known counts, and the newest refusal.
    pub fn park(&mut self, key: K, refusal: R, until: u64, now: u64) {
        let until = self.parks.get(&key).map_or(until, |park| park.until.max(until));
        if self.parks.len() >= CAPACITY && !self.parks.contains_key(&key) {
            self.make_room(now);
        }
        let used = AtomicU64::new(self.next_use());
        self.parks.insert(key, Park { until, refusal, used });
    }

    /// What `key` was refused with, while it is parked.
    pub fn refusal(&self, key: &K, now: u64) -> Option<&R> {
        let park = self.parks.get(key).filter(|park| park.until > now)?;
        park.used.store(self.next_use(), Ordering::Relaxed);
        Some(&park.refusal)
    }

    /// An answer to `key` ends its park.
    pub fn served(&mut self, key: &K) {
        self.parks.remove(key);
    }

    /// The number of keys held, ended parks included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parks.len()
    }

    /// Whether nothing is held, so that a lookup can be skipped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parks.is_empty()
    }

    fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }

    fn make_room(&mut self, now: u64) {
        self.parks.retain(|_, park| park.until > now);
        if self.parks.len() < CAPACITY {
            return;
        }
        let oldest = self.parks.iter().min_by_key(|(_, park)| park.used.load(Ordering::Relaxed));
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.parks.remove(&key);
        }
    }
}

impl<K: Eq + Hash + Clone, R> Default for MethodParks<K, R> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parks = MethodParks<(u32, &'static str), &'static str>;

    #[test]
    fn a_refused_method_is_parked_at_that_endpoint_alone() {
        let mut parks = Parks::new();
        parks.park((1, "debug_traceCall"), "not available", 1_000, 0);
        assert_eq!(parks.refusal(&(1, "debug_traceCall"), 999), Some(&"not available"));
        assert_eq!(parks.refusal(&(1, "debug_traceCall"), 1_000), None);
        assert_eq!(parks.refusal(&(2, "debug_traceCall"), 999), None);
        assert_eq!(parks.refusal(&(1, "eth_call"), 999), None);
    }

    #[test]
    fn a_second_refusal_never_shortens_the_park() {
        let mut parks = Parks::new();
        parks.park((1, "eth_getLogs"), "first", 1_000, 0);
        parks.park((1, "eth_getLogs"), "second", 500, 0);
        assert_eq!(parks.refusal(&(1, "eth_getLogs"), 999), Some(&"second"));
    }

    #[test]
    fn an_answer_ends_the_park() {
        let mut parks = Parks::new();
        parks.park((1, "eth_getLogs"), "busy", 1_000, 0);
        parks.served(&(1, "eth_getLogs"));
        assert!(parks.is_empty());
    }

    // Kills: growing without bound, and throwing out the one in use.
    #[test]
    fn when_it_is_full_the_least_recently_used_goes() {
        let mut parks = MethodParks::new();
        for key in 0..1_024 {
            parks.park(key, (), 1_000, 0);
        }
        assert!(parks.refusal(&0, 1).is_some());
        parks.park(5_000, (), 1_000, 1);
        assert_eq!(parks.len(), 1_024);
        let held = [0, 1, 2, 5_000].map(|key| parks.refusal(&key, 1).is_some());
        assert_eq!(held, [true, false, true, true]);
    }

    #[test]
    fn ended_parks_make_room_first() {
        let mut parks = MethodParks::new();
        for key in 0..1_024 {
            parks.park(key, (), if key < 1_000 { 10 } else { 1_000 }, 0);
        }
        parks.park(5_000, (), 1_000, 20);
        assert_eq!(parks.len(), 25);
    }
}
