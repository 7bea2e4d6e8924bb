//! What is probed when. First a pass over everything, one endpoint of each chain before the second of any, as fast
//! as the bound on probes in flight allows; then each target on the interval, spread over it and moved by chance;
//! targets in doubt or out of service more often. With interval 0 only the latter. Never two probes of one target
//! at a time, and a probe that is not heard of again is lost after its deadline. It sends nothing. Pure.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::hash::Hash;

use rand::Rng;

/// A probe that confirms or refutes a change comes this soon (milliseconds), if the interval is not shorter.
const CONFIRM_MS: u64 = 5_000;
/// A target that has just been ejected is probed after this long: at once would meet the same outage.
const SUSPECT_MS: u64 = 1_000;
/// The shortest interval, so that a zero in the wrong place does not spin.
const SHORTEST_MS: u64 = 100;

/// How often, how many at once, and how long to wait for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Between probes of a target in service, milliseconds; 0: they are not probed after the first pass.
    pub interval_ms: u64,
    /// Between probes of a target out of service, milliseconds.
    pub ephemeral_interval_ms: u64,
    /// Probes in flight at most; 0 counts as 1.
    pub concurrency: usize,
    /// A probe without a result after this long is lost, milliseconds.
    pub deadline_ms: u64,
}

/// How a target stands after a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// In service.
    Good,
    /// In doubt: the last results disagree, or it is ejected and must prove itself.
    Unsettled,
    /// Out of service.
    Bad,
    /// Not probed: its account is parked, and recovery probes it.
    Skipped,
}

/// The probes of a set of targets; `K` names one endpoint over one protocol.
#[derive(Debug)]
pub struct Schedule<K> {
    settings: Settings,
    targets: HashMap<K, Target>,
    /// By time, then by ticket; entries with an old ticket are dead.
    queue: BinaryHeap<Reverse<(u64, u64, K)>>,
    tickets: u64,
    in_flight: HashMap<K, u64>,
    /// Targets that the first pass has not seen yet.
    unseen: usize,
}

#[derive(Debug, Clone, Copy)]
struct Target {
    /// The ticket of the live queue entry, if it is waiting.
    waiting: Option<(u64, u64)>,
    seen: bool,
}

impl<K: Copy + Ord + Hash> Schedule<K> {
    /// Everything is due at once. `chains` lists the targets of each chain, the most important first.
    #[must_use]
    pub fn new(settings: Settings, chains: &[Vec<K>], now: u64) -> Self {
        let mut schedule = Self {
            settings: settings.made_safe(),
            targets: HashMap::new(),
            queue: BinaryHeap::new(),
            tickets: 0,
            in_flight: HashMap::new(),
            unseen: 0,
        };
        schedule.retarget(chains, now);
        schedule
    }

    /// Other targets from now on: those that stay keep their turn, new ones are due at once.
    pub fn retarget(&mut self, chains: &[Vec<K>], now: u64) {
        let wanted: Vec<K> = interleaved(chains).collect();
        let keep: HashSet<K> = wanted.iter().copied().collect();
        self.targets.retain(|key, _| keep.contains(key));
        for key in wanted {
            if let Entry::Vacant(newcomer) = self.targets.entry(key) {
                newcomer.insert(Target { waiting: None, seen: false });
                // One that left and is back may still be in flight; the end of that probe gives it its turn.
                if !self.in_flight.contains_key(&key) {
                    self.enqueue(key, now);
                }
            }
        }
        self.unseen = self.targets.values().filter(|target| !target.seen).count();
    }

    /// The targets to probe now, as many as may be in flight. Each must be answered with [`Schedule::done`].
    pub fn next(&mut self, now: u64, rng: &mut impl Rng) -> Vec<K> {
        self.give_up_lost(now, rng);
        let mut starting = Vec::new();
        while self.in_flight.len() < self.settings.concurrency {
            let Some(key) = self.pop_due(now) else { break };
            self.in_flight.insert(key, now);
            starting.push(key);
        }
        starting
    }

    /// When [`Schedule::next`] has something to do again; `None`: not before the next call of another method.
    pub fn wake_at(&mut self) -> Option<u64> {
        let lost = self.in_flight.values().map(|begun| begun.saturating_add(self.settings.deadline_ms)).min();
        if self.in_flight.len() >= self.settings.concurrency {
            return lost;
        }
        let due = self.peek_live().map(|(due, _)| due);
        [lost, due].into_iter().flatten().min()
    }

    /// A probe has ended, or was skipped. Ignored when it is not in flight (it was lost, or the target is gone).
    pub fn done(&mut self, key: K, standing: Standing, now: u64, rng: &mut impl Rng) {
        if self.in_flight.remove(&key).is_none() {
            return;
        }
        let Some(target) = self.targets.get_mut(&key) else { return };
        let first = !std::mem::replace(&mut target.seen, true);
        self.unseen -= usize::from(first);
        if let Some(wait) = self.settings.wait(standing, first, rng) {
            self.enqueue(key, now.saturating_add(wait));
        }
    }

    /// The target has just been ejected: its next probe comes soon.
    pub fn suspect(&mut self, key: K, now: u64) {
        let soon = now.saturating_add(SUSPECT_MS);
        let Some(target) = self.targets.get(&key) else { return };
        let sooner = target.waiting.is_none_or(|(due, _)| due > soon);
        if sooner && !self.in_flight.contains_key(&key) {
            self.enqueue(key, soon);
        }
    }

    /// Whether every target has been probed, or skipped, once.
    #[must_use]
    pub fn first_pass_is_over(&self) -> bool {
        self.unseen == 0
    }

    fn enqueue(&mut self, key: K, due: u64) {
        if let Some(target) = self.targets.get_mut(&key) {
            self.tickets += 1;
            target.waiting = Some((due, self.tickets));
            self.queue.push(Reverse((due, self.tickets, key)));
        }
    }

    /// The soonest entry that is still meant, dropping those that are not.
    fn peek_live(&mut self) -> Option<(u64, K)> {
        while let Some(Reverse((due, ticket, key))) = self.queue.peek().copied() {
            let waiting = self.targets.get(&key).and_then(|target| target.waiting);
            if waiting == Some((due, ticket)) {
                return Some((due, key));
            }
            self.queue.pop();
        }
        None
    }

    fn pop_due(&mut self, now: u64) -> Option<K> {
        let (_, key) = self.peek_live().filter(|(due, _)| *due <= now)?;
        self.queue.pop();
        self.targets.get_mut(&key)?.waiting = None;
        Some(key)
    }

    fn give_up_lost(&mut self, now: u64, rng: &mut impl Rng) {
        let deadline = self.settings.deadline_ms;
        let is_lost = |begun: u64| now.saturating_sub(begun) >= deadline;
        let lost: Vec<K> =
            self.in_flight.iter().filter(|(_, begun)| is_lost(**begun)).map(|(key, _)| *key).collect();
        for key in lost {
            self.done(key, Standing::Bad, now, rng);
        }
    }
}

impl Settings {
    fn made_safe(self) -> Self {
        Self {
            interval_ms: if self.interval_ms == 0 { 0 } else { self.interval_ms.max(SHORTEST_MS) },
            ephemeral_interval_ms: self.ephemeral_interval_ms.max(SHORTEST_MS),
            concurrency: self.concurrency.max(1),
            deadline_ms: self.deadline_ms.max(SHORTEST_MS),
        }
    }

    /// Until the target's next probe; `None`: it is left alone.
    fn wait(self, standing: Standing, first: bool, rng: &mut impl Rng) -> Option<u64> {
        let regular = Some(self.interval_ms).filter(|interval| *interval > 0);
        let often = regular.unwrap_or(u64::MAX).min(self.ephemeral_interval_ms);
        match standing {
            // After the first pass, which meets everybody at once, the second is spread over the interval.
            Standing::Good if first => regular.map(|interval| rng.random_range(0..=interval)),
            Standing::Good => regular.map(|interval| moved(interval, rng)),
            Standing::Skipped => Some(moved(regular.unwrap_or(self.ephemeral_interval_ms), rng)),
            Standing::Bad => Some(moved(often, rng)),
            Standing::Unsettled => Some(moved(often.min(CONFIRM_MS), rng)),
        }
    }
}

/// An interval give or take a tenth.
fn moved(interval_ms: u64, rng: &mut impl Rng) -> u64 {
    let tenth = interval_ms / 10;
    interval_ms - tenth + rng.random_range(0..=tenth.saturating_mul(2))
}

/// The first of each chain, then the second of each, and so on.
fn interleaved<K: Copy>(chains: &[Vec<K>]) -> impl Iterator<Item = K> {
    let longest = chains.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(move |place| chains.iter().filter_map(move |chain| chain.get(place).copied()))
}

#[cfg(test)]
#[path = "schedule/tests.rs"]
mod tests;
