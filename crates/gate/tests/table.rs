//! What a gate does, case by case: each row is a name, how the gate was made, and what happens to it.

use gate::{ConcurrencyGate, Entry, Load, Permit, Waiting};
use std::num::NonZeroU32;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many come, one after another.
    Come(usize),
    /// The first so many of those inside leave.
    Leave(usize),
    /// The limit changes; 0: none.
    Limit(u32),
    /// The waiter at this place of those that have not been told anything yet goes away.
    Cancel(usize),
    /// Everybody who waits looks whether it is their turn.
    Look,
    /// So many are inside, so many wait, so many have been sent away.
    Is(u32, usize, usize),
}

use Step::{Cancel, Come, Is, Leave, Limit, Look};

struct Scene {
    gate: ConcurrencyGate,
    inside: Vec<Permit>,
    waiting: Vec<Pin<Box<Waiting>>>,
    sent_away: usize,
}

impl Scene {
    fn new(limit: u32, queue: u32) -> Scene {
        let gate = ConcurrencyGate::new(NonZeroU32::new(limit), queue);
        Scene { gate, inside: Vec::new(), waiting: Vec::new(), sent_away: 0 }
    }

    fn play(&mut self, step: Step, row: &str) {
        match step {
            Come(count) => (0..count).for_each(|_| self.come()),
            Leave(count) => drop(self.inside.drain(..count)),
            Limit(limit) => self.gate.resize(NonZeroU32::new(limit)),
            Cancel(at) => drop(self.waiting.remove(at)),
            Look => self.look(),
            Is(in_flight, waiting, sent_away) => {
                let Load { in_flight: inside, waiting: queue, .. } = self.gate.load();
                let seen = (inside, queue, self.sent_away);
                assert_eq!(seen, (in_flight, waiting, sent_away), "{row}: inside, waiting, sent away");
            }
        }
    }

    fn come(&mut self) {
        match self.gate.enter() {
            Entry::Admitted(permit) => self.inside.push(permit),
            Entry::Queued(waiting) => self.waiting.push(Box::pin(waiting)),
            Entry::Full => self.sent_away += 1,
        }
    }

    fn look(&mut self) {
        let mut cx = Context::from_waker(Waker::noop());
        let inside = &mut self.inside;
        self.waiting.retain_mut(|waiting| match waiting.as_mut().poll(&mut cx) {
            Poll::Ready(permit) => {
                inside.push(permit);
                false
            }
            Poll::Pending => true,
        });
    }
}

/// Each row names what it is about; what would break it stands beside it.
#[test]
fn every_order_of_coming_leaving_and_resizing() {
    let rows: &[(&str, u32, u32, &[Step])] = &[
        // Kills: a limit that is not looked at.
        ("up to the limit", 2, 9, &[Come(3), Is(2, 1, 0)]),
        // Kills: a limit that is made up where there is none.
        ("no limit", 0, 9, &[Come(50), Is(50, 0, 0)]),
        // Kills: a place that is not given back, and one that nobody gets.
        ("who leaves makes room", 1, 9, &[Come(2), Leave(1), Look, Is(1, 0, 0), Leave(1), Is(0, 0, 0)]),
        // Kills: a queue without a bound, and a bound that is off by one.
        ("the queue is bounded", 1, 2, &[Come(5), Is(1, 2, 2)]),
        ("no queue at all", 1, 0, &[Come(2), Is(1, 0, 1), Leave(1), Come(1), Is(1, 0, 1)]),
        // Kills: a lower limit that is kept as a debt, or that waits for somebody to come.
        ("lower while idle", 5, 9, &[Limit(2), Come(3), Is(2, 1, 0)]),
        // Kills: cancelling what was admitted, and admitting as soon as one has left.
        (
            "lower below what is held",
            4,
            9,
            &[
                Come(4),
                Limit(2),
                Come(1),
                Is(4, 1, 0),
                Leave(2),
                Look,
                Is(2, 1, 0),
                Leave(1),
                Look,
                Is(2, 0, 0),
            ],
        ),
        // Kills: a debt that outlives the limit it was for.
        (
            "lower, then raise before anybody left",
            4,
            9,
            &[
                Come(4),
                Limit(1),
                Limit(4),
                Come(1),
                Is(4, 1, 0),
                Leave(1),
                Look,
                Is(4, 0, 0),
                Leave(4),
                Come(5),
                Is(4, 1, 0),
            ],
        ),
        // Kills: raising by the difference to the last limit instead of to what is inside.
        (
            "lower, then raise past what is held",
            4,
            9,
            &[Come(4), Limit(1), Come(3), Limit(6), Look, Is(6, 1, 0), Leave(1), Look, Is(6, 0, 0)],
        ),
        // Kills: waking one where several fit, and one too many.
        ("a raise admits all that fit at once", 1, 9, &[Come(6), Limit(4), Is(4, 2, 0)]),
        // Kills: those who wait when the limit goes, and wait for ever.
        ("restored to none", 1, 9, &[Come(6), Limit(0), Is(6, 0, 0), Limit(2), Come(1), Is(6, 1, 0)]),
        // Kills: forgetting who came in while there was no limit.
        (
            "tightened from none",
            0,
            9,
            &[Come(5), Limit(3), Come(1), Leave(2), Look, Is(3, 1, 0), Leave(1), Is(3, 0, 0)],
        ),
        // Kills: the older of two limits that wins because it was waited for.
        (
            "the newest limit wins",
            3,
            9,
            &[Come(3), Limit(1), Limit(2), Limit(1), Come(1), Leave(2), Look, Is(1, 1, 0)],
        ),
        // Kills: a place in the queue that stays taken.
        ("a waiter gives up", 1, 2, &[Come(3), Cancel(0), Is(1, 1, 0), Come(1), Is(1, 2, 0)]),
        // Kills: a place that was granted to somebody who had gone.
        (
            "a waiter gives up after it was granted",
            1,
            9,
            &[Come(2), Leave(1), Is(1, 0, 0), Cancel(0), Is(0, 0, 0), Come(1), Is(1, 0, 0)],
        ),
        // Kills: giving it back to nobody while somebody waits, or to two.
        ("its place goes to the next", 1, 9, &[Come(3), Leave(1), Cancel(0), Is(1, 0, 0), Look, Is(1, 0, 0)]),
        // Kills: a place given back past a limit that was lowered meanwhile.
        (
            "granted, lowered, given up",
            2,
            9,
            &[Come(4), Leave(1), Is(2, 1, 0), Limit(1), Cancel(0), Is(1, 1, 0), Leave(1), Look, Is(1, 0, 0)],
        ),
        // Kills: somebody who comes when there is room for the one who waits, and passes.
        ("nobody passes the queue", 1, 9, &[Come(2), Leave(1), Come(1), Is(1, 1, 0)]),
    ];
    for (row, limit, queue, steps) in rows {
        let mut scene = Scene::new(*limit, *queue);
        for step in *steps {
            scene.play(*step, &format!("{row}, at {step:?}"));
        }
        drop((scene.inside, scene.waiting));
        let left = scene.gate.load();
        assert_eq!((left.in_flight, left.waiting), (0, 0), "{row}: everybody is gone");
    }
}

/// Kills: admitting the last who came first, and a waker that is not called.
#[test]
fn first_come_first_served_and_told() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    #[derive(Default)]
    struct Told(AtomicUsize);
    impl std::task::Wake for Told {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let gate = ConcurrencyGate::new(NonZeroU32::new(1), 9);
    let Entry::Admitted(held) = gate.enter() else { panic!("there is room") };
    let told: Vec<Arc<Told>> = (0..3).map(|_| Arc::default()).collect();
    let mut waiting: Vec<_> = (0..3)
        .map(|_| match gate.enter() {
            Entry::Queued(waiting) => Box::pin(waiting),
            Entry::Admitted(_) | Entry::Full => panic!("it has to wait"),
        })
        .collect();
    for (waiting, told) in waiting.iter_mut().zip(&told) {
        let waker = Waker::from(Arc::clone(told));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    let woken = || told.iter().map(|told| told.0.load(Relaxed)).collect::<Vec<_>>();
    drop(held);
    assert_eq!(woken(), [1, 0, 0]);
    gate.resize(NonZeroU32::new(2));
    assert_eq!(woken(), [1, 1, 0]);
}
