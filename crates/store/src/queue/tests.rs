//! Who is let through a queue, over a real gate, at instants that the tests choose.

use futures_util::FutureExt;
use ledger::{Gate, Limit, Unit};
use proptest::prelude::*;

use super::*;

const START: u64 = 1_700_000_040_000;
const WINDOW: u64 = 1000;

fn gate(amount: u32) -> Gate {
    Gate::new(vec![Limit { amount, unit: Unit::Requests, window_ms: WINDOW, smooth: false }], None)
}

/// Whether somebody gets through and sends.
fn passes(queue: &Queue, gate: &Gate, turn: Turn, n: u32, now: u64) -> bool {
    let taken = queue.pass(turn, |ahead| gate.try_take_behind(ahead, Cost::requests(n), now));
    match taken {
        Take::Granted(ticket) => gate.sent(ticket, now),
        Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => false,
    }
}

/// So many who wait, each for one.
fn waiting(queue: &Queue, turns: &Turns, n: usize) -> Vec<(Turn, Arc<Notify>)> {
    let stand = |_| {
        let (turn, call) = (turns.begin(), Arc::<Notify>::default());
        queue.stand(turn, Cost::requests(1), &call);
        (turn, call)
    };
    (0..n).map(stand).collect()
}

fn called(call: &Notify) -> bool {
    call.notified().now_or_never().is_some()
}

/// Kills: a newcomer that overtakes, one that is held back although there is enough for all, a queue that nobody leaves.
#[test]
fn a_newcomer_gets_only_what_those_who_wait_do_not_need() {
    let (queue, turns, gate) = (Queue::default(), Turns::default(), gate(3));
    assert!(passes(&queue, &gate, Turn::NEWCOMER, 3, START), "nobody waits");
    let line = waiting(&queue, &turns, 3);
    let next = START + WINDOW;
    assert!(!passes(&queue, &gate, Turn::NEWCOMER, 1, next), "three tokens for three");
    // Whoever of the three looks first: there is one for each.
    for at in [2, 0, 1] {
        assert!(passes(&queue, &gate, line[at].0, 1, next), "{at}");
    }
    let after = next + WINDOW;
    waiting(&queue, &turns, 2);
    assert!(passes(&queue, &gate, Turn::NEWCOMER, 1, after), "one is left over");
    assert!(!passes(&queue, &gate, Turn::NEWCOMER, 1, after));
}

/// Kills: a queue by the order of looking, a batch counted as one.
#[test]
fn who_waits_longest_comes_first_whoever_looks_first() {
    let (queue, turns, gate) = (Queue::default(), Turns::default(), gate(3));
    let line = waiting(&queue, &turns, 1);
    let batch = turns.begin();
    queue.stand(batch, Cost::requests(2), &Arc::default());
    let last = waiting(&queue, &turns, 1);
    assert!(!passes(&queue, &gate, last[0].0, 1, START), "three are spoken for");
    assert!(passes(&queue, &gate, batch, 2, START));
    assert!(!passes(&queue, &gate, last[0].0, 1, START), "one is spoken for");
    assert!(passes(&queue, &gate, line[0].0, 1, START));
    assert!(passes(&queue, &gate, last[0].0, 1, START + WINDOW), "nobody is before it any more");
}

/// Kills: a place given up that nobody hears of, one that calls somebody before it or somebody who goes already.
#[test]
fn who_leaves_calls_the_next_one_behind_that_rests() {
    let (queue, turns) = (Queue::default(), Turns::default());
    let line = waiting(&queue, &turns, 4);
    queue.leave(line[1].0);
    let calls = |line: &[(Turn, Arc<Notify>)]| line.iter().map(|(_, call)| called(call)).collect::<Vec<_>>();
    assert_eq!(calls(&line), [false, false, true, false]);
    queue.leave(line[1].0);
    assert_eq!(calls(&line), [false; 4], "it was gone already");
    queue.leave(line[0].0);
    assert_eq!(calls(&line), [false, false, false, true], "the third was called and has not looked yet");
    // It looks in vain, and rests again.
    assert!(!passes(&queue, &gate(1), line[2].0, 2, START));
    queue.leave(line[3].0);
    assert_eq!(calls(&line), [false; 4], "nobody before the one who left");
}

proptest! {
    /// Whatever the order in which all look, window after window: they get through in the order in which they came.
    #[test]
    fn those_who_wait_are_served_by_windows_in_the_order_in_which_they_came(
        amount in 1u32..5,
        n in 1usize..20,
        orders in proptest::collection::vec(any::<prop::sample::Index>(), 400),
    ) {
        let (queue, turns, gate) = (Queue::default(), Turns::default(), gate(amount));
        let line = waiting(&queue, &turns, n);
        let (mut left, mut served, mut orders) = ((0..n).collect::<Vec<_>>(), Vec::new(), orders.into_iter());
        for window in 0.. {
            let now = START + window * WINDOW;
            let (mut looking, mut through) = (left.clone(), Vec::new());
            prop_assert!(left.len() <= amount as usize || !passes(&queue, &gate, Turn::NEWCOMER, 1, now));
            while !looking.is_empty() {
                let at = orders.next().map_or(0, |index| index.index(looking.len()));
                let who = looking.swap_remove(at);
                if passes(&queue, &gate, line[who].0, 1, now) {
                    through.push(who);
                }
            }
            through.sort_unstable();
            left.retain(|who| !through.contains(who));
            served.extend(through);
            if left.is_empty() {
                break;
            }
        }
        prop_assert_eq!(served, (0..n).collect::<Vec<_>>());
    }
}
