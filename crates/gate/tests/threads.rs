//! Many threads at one gate: they come, wait, give up and leave while the limit moves.

use gate::{ConcurrencyGate, Entry, Permit, Waiting};
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, scope, yield_now};
use std::time::{Duration, Instant};

const THREADS: u32 = 8;
const ROUNDS: u32 = 20_000;
/// Longer than any thread here waits for its turn.
const PATIENCE: Duration = Duration::from_secs(60);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits to the end, or gives up after so many looks.
#[expect(clippy::disallowed_methods, reason = "a test's patience is real time")]
fn wait(waiting: Waiting, looks: Option<u32>) -> Option<Permit> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut waiting = pin!(waiting);
    for look in 0.. {
        if let Poll::Ready(permit) = waiting.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(permit);
        }
        match looks {
            Some(looks) if look >= looks => return None,
            Some(_) => yield_now(),
            None => {
                let parked = Instant::now();
                std::thread::park_timeout(PATIENCE);
                assert!(parked.elapsed() < PATIENCE, "nobody was woken");
            }
        }
    }
    None
}

/// A generator that needs no dependency: what matters is that threads differ.
fn next(seed: &mut u32) -> u32 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    *seed
}

/// Kills: a wake-up that is lost, a place that leaks when a grant and a cancellation meet, more inside than the limit.
#[test]
fn places_are_neither_lost_nor_doubled() {
    let gate = ConcurrencyGate::new(NonZeroU32::new(3), THREADS);
    let inside = AtomicU32::new(0);
    scope(|scope| {
        for thread in 1..=THREADS {
            let (gate, inside) = (&gate, &inside);
            scope.spawn(move || {
                let mut seed = thread * 7919;
                for _ in 0..ROUNDS {
                    let looks = (next(&mut seed).is_multiple_of(3)).then(|| next(&mut seed) % 4);
                    let permit = match gate.enter() {
                        Entry::Admitted(permit) => Some(permit),
                        Entry::Queued(waiting) => wait(waiting, looks),
                        Entry::Full => None,
                    };
                    let Some(permit) = permit else { continue };
                    assert!(inside.fetch_add(1, SeqCst) < 3, "too many inside");
                    if next(&mut seed).is_multiple_of(8) {
                        yield_now();
                    }
                    inside.fetch_sub(1, SeqCst);
                    drop(permit);
                }
            });
        }
    });
    let left = gate.load();
    assert_eq!((left.in_flight, left.waiting), (0, 0));
}

/// Kills: a limit that is lost between a resize and a release, and a waiter that a resize forgets.
#[test]
fn the_limit_may_move_under_load() {
    let gate = ConcurrencyGate::new(NonZeroU32::new(4), THREADS);
    let (inside, ended) = (AtomicU32::new(0), AtomicBool::new(false));
    scope(|scope| {
        let mover = scope.spawn(|| {
            let mut limit = 1;
            while !ended.load(SeqCst) {
                limit = limit % 5 + 1;
                gate.resize(NonZeroU32::new(limit));
                yield_now();
            }
        });
        let workers: Vec<_> = (1..=THREADS)
            .map(|thread| {
                let (gate, inside) = (&gate, &inside);
                scope.spawn(move || {
                    let mut seed = thread * 104_729;
                    for _ in 0..ROUNDS {
                        let permit = match gate.enter() {
                            Entry::Admitted(permit) => permit,
                            Entry::Queued(waiting) => wait(waiting, None).expect("it waits to the end"),
                            Entry::Full => panic!("the queue holds every thread"),
                        };
                        assert!(inside.fetch_add(1, SeqCst) < 5, "more than the highest limit");
                        if next(&mut seed).is_multiple_of(16) {
                            yield_now();
                        }
                        inside.fetch_sub(1, SeqCst);
                        drop(permit);
                    }
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
        ended.store(true, SeqCst);
        mover.join().expect("no panic");
    });
    let load = gate.load();
    assert_eq!((load.in_flight, load.waiting), (0, 0));
    gate.resize(NonZeroU32::new(2));
    let held: Vec<_> = (0..2).map(|_| gate.enter()).collect();
    assert!(held.iter().all(|entry| matches!(entry, Entry::Admitted(_))));
    assert!(matches!(gate.enter(), Entry::Queued(_)), "the last limit holds");
}
