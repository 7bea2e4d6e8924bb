//! A replica's lease against the store's ledger: bounds without clock agreement, doubt, silence and return.

use ledger::{
    Ask, Grant, Holder, Lease, Ledger, Limit, LocalMs, Plan, Presence, StoreMs, Taken, Unit, Which,
    block_size,
};

const START: u64 = 1_700_000_040_000;

fn plan(amount: u32, window_ms: u64) -> Plan {
    Plan::of(&Limit { amount, unit: Unit::Requests, window_ms, smooth: false })
}

fn ask(id: u64, holder: u64, which: Which, demand: u32, waiting: u32) -> Ask {
    Ask { id, holder: Holder(holder), which, demand, waiting, alone: None, knows: Some(1) }
}

#[test]
fn a_block_is_what_will_be_spent_within_a_fair_half() {
    // demand, remaining, proxies, limit, waiting
    for (args, expected) in [
        ((50, 1000, 4, 1000, 0), 50),
        ((500, 1000, 4, 1000, 0), 125),
        ((0, 1000, 4, 1000, 0), 5),
        ((0, 1000, 4, 10, 0), 1),
        ((50, 1000, 4, 1000, 10), 60),
        ((50, 3, 4, 1000, 10), 3),
        ((50, 0, 4, 1000, 10), 0),
        ((u32::MAX, u32::MAX, 1, u32::MAX, u32::MAX), u32::MAX),
        ((1, 10, u32::MAX, 10, 0), 1),
    ] {
        let (demand, remaining, proxies, amount, waiting) = args;
        assert_eq!(block_size(demand, remaining, proxies, amount, waiting), expected, "{args:?}");
    }
}

/// Kills: a window number taken from the clock alone; spending before subtracting.
#[test]
fn the_window_never_goes_back_and_holds_no_more_than_its_amount() {
    let (mut ledger, presence) = (Ledger::new(plan(10, 1000)), Presence::default());
    let mut got = |id, which, at| ledger.grant(&ask(id, 1, which, 0, 6), &presence, StoreMs(at));
    let window = START / 1000;
    let first = got(1, Which::Running, START);
    assert_eq!((first.tokens, first.window, first.ends_in_ms), (7, window, 1000));
    assert_eq!(got(2, Which::Running, START + 999).tokens, 3);
    let ahead = got(3, Which::Coming, START + 999);
    assert_eq!((ahead.tokens, ahead.window, ahead.starts_in_ms, ahead.ends_in_ms), (7, window + 1, 1, 1001));
    assert_eq!(got(4, Which::Running, START + 1000).tokens, 3);
    // The store's clock falls back: the window stays, and so does what was taken.
    let back = got(5, Which::Running, START - 500);
    assert_eq!((back.tokens, back.window), (0, window + 1));
    assert_eq!(got(6, Which::Running, START + 5000).tokens, 7);
}

#[test]
fn unused_tokens_come_back_once_and_in_their_window() {
    let (mut ledger, presence) = (Ledger::new(plan(10, 1000)), Presence::default());
    ledger.grant(&ask(1, 1, Which::Running, 0, 9), &presence, StoreMs(START));
    for (holder, id, tokens, at, expected) in
        [(2, 1, 5, START, 0), (1, 9, 5, START, 0), (1, 1, 99, START + 1, 10), (1, 1, 5, START + 1, 0)]
    {
        assert_eq!(ledger.give_back(Holder(holder), id, tokens, StoreMs(at)), expected);
    }
    assert_eq!(ledger.grant(&ask(2, 1, Which::Running, 0, 9), &presence, StoreMs(START + 2)).tokens, 10);
    assert_eq!(ledger.give_back(Holder(1), 2, 5, StoreMs(START + 1000)), 0);
}

fn grant(tokens: u32, starts_in_ms: u64, ends_in_ms: u64) -> Grant {
    Grant { id: 1, tokens, window: 7, starts_in_ms, ends_in_ms, remaining: 0, proxies: 2 }
}

fn lease() -> Lease {
    Lease::new(plan(100, 1000), Holder(1), 4)
}

/// Kills: anchoring a block's end at receipt, and a coming block's start at sending.
#[test]
fn bounds_are_anchored_at_the_safe_end() {
    let lease = lease();
    assert_eq!(lease.take(1, LocalMs(5000)), Taken::Doubt);
    let asked = lease.ask(1, LocalMs(5000)).expect("cold and wanted");
    assert_eq!((asked.which, asked.waiting, asked.knows), (Which::Running, 1, None));
    assert_eq!(lease.ask(1, LocalMs(5000)), None);
    lease.granted(&grant(5, 0, 300), LocalMs(5000), LocalMs(5100));
    let taken = |lease: &Lease, at| matches!(lease.take(1, LocalMs(at)), Taken::Yes(_));
    assert!(taken(&lease, 5279) && !taken(&lease, 5280));

    let lease = self::lease();
    lease.take(1, LocalMs(5000));
    lease.ask(1, LocalMs(5000));
    lease.granted(&grant(0, 0, 90), LocalMs(5000), LocalMs(5001));
    let ahead = lease.ask(0, LocalMs(5002)).expect("the window is about to end");
    assert_eq!(ahead.which, Which::Coming);
    lease.granted(&Grant { id: ahead.id, window: 8, ..grant(5, 80, 1080) }, LocalMs(5010), LocalMs(5040));
    assert!(!taken(&lease, 5119) && taken(&lease, 5120));
}

#[test]
fn dry_is_known_until_the_window_turns_without_polling() {
    let lease = lease();
    lease.take(1, LocalMs(5000));
    lease.ask(1, LocalMs(5000));
    lease.granted(&grant(0, 0, 600), LocalMs(5000), LocalMs(5010));
    assert_eq!(lease.take(1, LocalMs(5011)), Taken::Dry { again: LocalMs(5610) });
    assert_eq!(lease.ask(1, LocalMs(5100)), None);
    assert_eq!(lease.take(1, LocalMs(5610)), Taken::Doubt);
    assert!(lease.ask(1, LocalMs(5610)).is_some());
}

/// Kills: a store that is never too slow, one that is so for ever, also when nobody asks any more.
#[test]
fn a_store_is_late_while_answers_take_more_than_half_a_window() {
    let lease = lease();
    let answered = |at: u64, took: u64| {
        lease.take(1000, LocalMs(at));
        let ask = lease.ask(1, LocalMs(at)).expect("there is demand");
        lease.granted(&Grant { id: ask.id, ..grant(0, 0, 1) }, LocalMs(at), LocalMs(at + took));
    };
    answered(5000, 500);
    assert!(!lease.is_late(LocalMs(5500)), "half of one second");
    answered(6000, 600);
    assert!(lease.is_late(LocalMs(6600)));
    assert!(!lease.is_late(LocalMs(17_000)), "nobody asks any more");
    (0..4).for_each(|n| answered(18_000 + n * 1000, 1));
    assert!(!lease.is_late(LocalMs(21_100)), "it is quick again");
}

#[test]
fn who_had_no_demand_leases_nothing() {
    let lease = lease();
    assert_eq!(lease.ask(0, LocalMs(5000)), None);
    lease.take(1, LocalMs(5000));
    let first = lease.ask(1, LocalMs(5000)).expect("wanted");
    lease.granted(&Grant { id: first.id, ..grant(5, 0, 300) }, LocalMs(5000), LocalMs(5001));
    assert!(lease.ask(0, LocalMs(14_000)).is_some());
    lease.unanswered();
    assert_eq!(lease.ask(0, LocalMs(15_002)), None);
}

/// Kills: spending alone in the window of the loss, the whole limit on each replica, forgetting to report.
#[test]
fn cut_off_it_spends_half_a_share_and_reports_it() {
    let lease = lease();
    lease.take(1, LocalMs(5000));
    let first = lease.ask(1, LocalMs(5000)).expect("wanted");
    lease.granted(&Grant { id: first.id, ..grant(2, 0, 500) }, LocalMs(5000), LocalMs(5010));
    lease.cut_off(LocalMs(5100));
    let spend = |at: u64| (0..200).filter(|_| matches!(lease.take(1, LocalMs(at)), Taken::Yes(_))).count();
    // What it holds is good; then nothing until a window begins 3 s after the loss: at 5510 + 3000.
    assert_eq!((spend(5200), spend(5600), spend(8000)), (2, 0, 0));
    // Two proxies: a quarter of 100.
    assert_eq!((spend(8505), spend(8510), spend(9000), spend(9600)), (0, 25, 0, 25));
    assert_eq!(lease.ask(1, LocalMs(9700)), None);
    lease.back(LocalMs(9700));
    let report = lease.ask(1, LocalMs(9700)).expect("back and wanted");
    assert_eq!(report.alone, Some((7 + 5, 25)));
}
