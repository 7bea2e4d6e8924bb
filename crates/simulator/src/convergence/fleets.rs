//! The runs of fleets that are made, and what each must keep.

use ledger::{Limit, Unit};

use super::fleet::{Cut, Fleet, Spending};

/// A fleet's run: the limit holds in every window, and at least this is reached.
#[derive(Debug, Clone)]
pub struct Shared {
    /// For people.
    pub name: String,
    /// What is run.
    pub fleet: Fleet,
    /// The least share of the limit that is used.
    pub used: f64,
    /// The fewest requests per lease call.
    pub per_call: f64,
    /// The most that a window may see.
    pub most: u32,
}

impl Shared {
    /// Whether `spending` keeps the limit and reaches the rest.
    #[must_use]
    pub fn holds(&self, spending: &Spending) -> bool {
        spending.most() <= self.most && spending.used() >= self.used && spending.per_call() >= self.per_call
    }
}

/// Every run, of `windows` windows each.
#[must_use]
pub fn fleets(windows: u64) -> Vec<Shared> {
    let mut all = vec![calm(windows)];
    for replicas in 1..=8 {
        all.push(rough(replicas, windows));
    }
    all.extend([slow(windows), tiny(windows), cut_one(windows), cut_some(windows), lost_store(windows)]);
    for replicas in [1, 4, 8] {
        all.push(learned(replicas, windows));
    }
    all.push(learned_cut(windows));
    all
}

fn limit(amount: u32, window_ms: u64) -> Limit {
    Limit { amount, unit: Unit::Requests, window_ms, smooth: false }
}

fn fleet(amount: u32, window_ms: u64, replicas: u64, windows: u64) -> Fleet {
    Fleet {
        limit: limit(amount, window_ms),
        learned: false,
        replicas,
        demand: 5.0 * f64::from(amount),
        windows,
        delay_ms: (0.3, 2.0),
        loss: 0.0,
        cuts: Vec::new(),
    }
}

fn shared(name: &str, fleet: Fleet, used: f64) -> Shared {
    let most = fleet.limit.amount;
    Shared { name: name.to_string(), fleet, used, per_call: 0.0, most }
}

fn calm(windows: u64) -> Shared {
    Shared { per_call: 10.0, ..shared("4 proxies, 1000 per 1 s", fleet(1000, 1000, 4, windows), 0.99) }
}

fn rough(replicas: u64, windows: u64) -> Shared {
    let rough = Fleet { delay_ms: (1.0, 120.0), loss: 0.02, ..fleet(1000, 1000, replicas, windows) };
    shared(&format!("{replicas} proxies, 1000 per 1 s, delay to 120 ms, 2 % lost"), rough, 0.75)
}

fn slow(windows: u64) -> Shared {
    let slow = Fleet { delay_ms: (100.0, 480.0), loss: 0.1, ..fleet(300, 10_000, 6, windows) };
    shared("6 proxies, 300 per 10 s, delay to 480 ms, 10 % lost", slow, 0.8)
}

fn tiny(windows: u64) -> Shared {
    let tiny = Fleet { delay_ms: (1.0, 30.0), loss: 0.01, ..fleet(5, 1000, 8, windows) };
    shared("8 proxies, 5 per 1 s, delay to 30 ms", tiny, 0.85)
}

fn cut(replica: u64, from: u64, until: u64) -> Cut {
    Cut { replica, from, until }
}

fn cut_one(windows: u64) -> Shared {
    let cuts = vec![cut(1, 5_300, 21_700)];
    shared("4 proxies, one cut off for 16 s", Fleet { cuts, ..fleet(1000, 1000, 4, windows) }, 0.95)
}

fn cut_some(windows: u64) -> Shared {
    let cuts = (0..5).map(|i| cut(i, 4_000 + 1_370 * i, 15_000 + 2_110 * i)).collect();
    let fleet = Fleet { cuts, delay_ms: (1.0, 60.0), loss: 0.01, ..fleet(1000, 1000, 8, windows) };
    shared("8 proxies, five cut off in turn", fleet, 0.9)
}

/// Nobody reaches the store from the fifth second on: half of the limit is spent, by all together.
fn lost_store(windows: u64) -> Shared {
    let cuts = (0..4).map(|i| cut(i, 5_000, u64::MAX)).collect();
    shared("4 proxies, the store lost for good", Fleet { cuts, ..fleet(1000, 1000, 4, windows) }, 0.4)
}

/// A ceiling that was learned, held by all replicas over any trailing window.
fn learned(replicas: u64, windows: u64) -> Shared {
    let learned =
        Fleet { learned: true, delay_ms: (1.0, 200.0), loss: 0.02, ..fleet(600, 60_000, replicas, windows) };
    shared(&format!("{replicas} proxies, learned 600 per 60 s, delay to 200 ms"), learned, 0.8)
}

fn learned_cut(windows: u64) -> Shared {
    let cuts = (0..3).map(|i| cut(i, 70_000 + 31_000 * i, 190_000 + 47_000 * i)).collect();
    let learned = Fleet { learned: true, cuts, ..fleet(600, 60_000, 6, windows) };
    // An estimate, not a promise: what a replica spent alone is reported by windows, and may stand a tenth too short.
    let most = learned.limit.amount + learned.limit.amount / 100;
    Shared { most, ..shared("6 proxies, learned 600 per 60 s, three cut off in turn", learned, 0.8) }
}
