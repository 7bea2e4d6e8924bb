//! Real threads on one gate: more is never sent than the ceiling, nothing is lost.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use aimd::Params;
use ledger::{Cost, Evidence, Gate, Limit, Sender, Take, Unit};

const THREADS: u64 = 4;
const START: u64 = 1_700_000_040_000;

/// Every thread drives the common clock on and sends as much as it gets. Kills: granting before subtracting, a
/// block installed over one that is being taken from, give-backs that outlive their window.
#[test]
fn no_aligned_window_is_exceeded_by_threads() {
    let limits = [50u32, 120];
    let configured = |amount, window_ms| Limit { amount, unit: Unit::Requests, window_ms, smooth: false };
    let gate = Gate::new(vec![configured(limits[0], 1000), configured(limits[1], 3000)], None);
    let clock = AtomicU64::new(START);
    let drive = |n: u64| {
        let mut sent = Vec::new();
        for i in 0..30_000u64 {
            let now = clock.fetch_add(u64::from((i + n).is_multiple_of(8)), Ordering::SeqCst);
            let Take::Granted(ticket) = gate.try_take(Cost::requests(1), now) else { continue };
            if (i + n).is_multiple_of(5) {
                gate.give_back(ticket);
                continue;
            }
            let at_write = clock.load(Ordering::SeqCst);
            if gate.sent(ticket, at_write) {
                sent.push(at_write);
            }
        }
        sent
    };
    let sent: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|n| {
                scope.spawn({
                    let drive = &drive;
                    move || drive(n)
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    for (window_ms, amount) in [(1000, limits[0]), (3000, limits[1])] {
        let mut windows: HashMap<u64, u32> = HashMap::new();
        sent.iter().for_each(|at| *windows.entry(at / window_ms).or_default() += 1);
        assert!(windows.values().all(|n| *n <= amount), "{windows:?}");
    }
    assert!(sent.len() > 400, "{}", sent.len());
}

/// Within one window every token is spent, and only once.
#[test]
fn threads_together_get_exactly_the_limit() {
    let limit = Limit { amount: 10_000, unit: Unit::Requests, window_ms: 1000, smooth: false };
    let gate = Gate::new(vec![limit], None);
    let drive = || -> u32 {
        let one = |i: u32| match gate.try_take(Cost::requests(1 + i % 3), START) {
            Take::Granted(ticket) => {
                let n = ticket.cost().requests;
                if gate.sent(ticket, START) { n } else { 0 }
            }
            Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => 0,
        };
        (0..5000).map(one).sum()
    };
    let got: u32 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(drive)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).sum()
    });
    assert_eq!(got, 10_000);
}

/// Kills: reading use before holding room, freeing room before counting use.
#[test]
fn a_learned_ceiling_holds_between_threads() {
    let gate = Gate::new(Vec::new(), Some(Params { window_ms: Some(60_000), ..Params::default() }));
    gate.charge(Cost::requests(2001), Sender::Client, START);
    gate.refused(&Evidence::client(START), START).expect("2000 were observed");
    let now = START + 66_000;
    let ceiling = 1100;
    let drive = || -> u64 {
        let one = |_| match gate.try_take(Cost::requests(1), now) {
            Take::Granted(ticket) => u64::from(gate.sent(ticket, now)),
            Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => 0,
        };
        (0..2000).map(one).sum()
    };
    let got: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(drive)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).sum()
    });
    assert_eq!(got, ceiling);
    assert_eq!(gate.room(0, now), 0);
}
