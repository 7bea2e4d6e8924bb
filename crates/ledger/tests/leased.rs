//! A gate that leases its tokens, against the store's ledger: what a request is told, and what is paid for later.

use ledger::{Cost, Gate, Holder, Leased, Ledger, Limit, Plan, Presence, Sender, StoreMs, Take, Unit};

const START: u64 = 1_700_000_040_000;

fn limit(amount: u32) -> Limit {
    Limit { amount, unit: Unit::Requests, window_ms: 1000, smooth: false }
}

struct Store(Ledger, Presence);

impl Store {
    fn of(amount: u32) -> Store {
        Store(Ledger::new(Plan::of(&limit(amount))), Presence::default())
    }

    /// Carries the ask that is due to the ledger and the grant back; false if none is due.
    fn refill(&mut self, lease: &Leased, now: u64) -> bool {
        let Some(ask) = lease.ask(now) else { return false };
        self.1.heard(ask.holder, ask.knows, StoreMs(now));
        lease.granted(&self.0.grant(&ask, &self.1, StoreMs(now)), now, now);
        true
    }
}

fn gate(amount: u32) -> Gate {
    Gate::leased(vec![limit(amount)], Holder(1), 4)
}

fn take(gate: &Gate, now: u64) -> &'static str {
    match gate.try_take(Cost::requests(1), now) {
        Take::Granted(ticket) => ["late", "sent"][usize::from(gate.sent(ticket, now))],
        Take::Dry { .. } => "dry",
        Take::Doubt => "doubt",
        Take::TooBig { .. } => "big",
    }
}

#[test]
fn a_cold_account_is_in_doubt_until_the_first_block_and_dry_after_the_last() {
    let (gate, mut store) = (gate(10), Store::of(10));
    assert_eq!(take(&gate, START), "doubt");
    assert_eq!(
        gate.when_again(Cost::requests(1), START),
        Some(START),
        "kills: announcing a wait that nobody knows of"
    );
    let mut sent = 0;
    for _ in 0..100 {
        store.refill(&gate.leases()[0], START);
        sent += usize::from(take(&gate, START) == "sent");
    }
    assert_eq!((sent, take(&gate, START)), (10, "dry"));
    assert_eq!(gate.when_again(Cost::requests(1), START + 1), Some(START + 1000));
    assert_eq!(gate.when_again(Cost::requests(11), START), None);
}

/// Kills: probes that nobody pays for, and paying for what was refused.
#[test]
fn what_was_sent_without_a_token_is_paid_out_of_the_next_block() {
    let (gate, mut store) = (gate(10), Store::of(10));
    gate.charge(Cost::requests(3), Sender::Probe, START);
    let mut sent = 0;
    for _ in 0..100 {
        sent += usize::from(take(&gate, START) == "sent");
        store.refill(&gate.leases()[0], START);
    }
    assert_eq!(sent, 7);
    gate.charge(Cost::requests(3), Sender::Probe, START);
    assert_eq!(take(&gate, START), "dry");
}

/// Kills: a token that outlives its window, and a ticket of a dead clock.
#[test]
fn tokens_end_with_their_window_and_with_the_clock_they_are_measured_by() {
    let (gate, mut store) = (gate(1000), Store::of(1000));
    take(&gate, START);
    store.refill(&gate.leases()[0], START);
    let Take::Granted(ticket) = gate.try_take(Cost::requests(1), START) else { panic!("tokens") };
    assert!(!gate.sent(ticket, START + 980), "its block ended");
    assert_eq!(take(&gate, START + 1), "sent");
    gate.leases()[0].void();
    assert_eq!(take(&gate, START + 1), "doubt");
}

/// Kills: an open gate without a store, and one that is shut for ever.
#[test]
fn a_process_that_starts_without_the_store_spends_half_of_an_assumed_share() {
    let gate = gate(1000);
    gate.leases()[0].cut_off(START);
    assert_eq!(take(&gate, START + 10), "dry");
    let later = START + 4_000;
    let sent = (0..500).filter(|_| take(&gate, later) == "sent").count();
    assert_eq!(sent, 125);
    gate.leases()[0].back(later + 1);
    assert!(gate.leases()[0].owes_report(later + 1));
    assert_eq!(gate.leases()[0].ask(later + 2).expect("a report is due").alone, Some((later / 1000, 125)));
}

/// Kills: returning tokens of another window, or what was given by ourselves.
#[test]
fn what_is_surrendered_is_what_is_held_of_the_running_window() {
    let (gate, mut store) = (gate(1000), Store::of(1000));
    assert_eq!(gate.leases()[0].surrender(START), None);
    take(&gate, START);
    store.refill(&gate.leases()[0], START);
    let (window, tokens) = gate.leases()[0].surrender(START).expect("a block");
    assert_eq!((window, tokens), (START / 1000, 6), "one waited for, and a two-hundredth");
    assert_eq!(take(&gate, START), "doubt");
}

/// Kills: an account that is in doubt for ever because of what somebody else put in its place.
#[test]
fn a_store_that_refuses_is_as_good_as_none() {
    let gate = gate(1000);
    let lease = &gate.leases()[0];
    assert_eq!(take(&gate, START), "doubt");
    lease.ask(START).expect("wanted");
    lease.refused(START + 1);
    lease.back(START + 5);
    assert_eq!(take(&gate, START + 10), "dry");
    assert_eq!((0..500).filter(|_| take(&gate, START + 4_000) == "sent").count(), 125);
    lease.back(START + 20_000);
    assert!(
        lease.ask(START + 20_000).is_some() || take(&gate, START + 20_000) == "doubt",
        "asked again later"
    );
}
