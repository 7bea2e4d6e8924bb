//! Selection by tables: fleets written as an operator would write them.

use super::*;
use crate::fleet::{Fleet, build};
use crate::gates::Gates;
use crate::tables::Tables;
use config::{Env, Settings, parse_fleet};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use recovery::{Hit, Kind};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use store::{Memory, Sharing};

const NOW: u64 = 1_800_000_000_000;

fn fleet(endpoints: &str, settings: &Settings) -> Arc<Chain> {
    fleet_in(&Memory::default(), endpoints, settings)
}

fn fleet_in(memory: &Memory, endpoints: &str, settings: &Settings) -> Arc<Chain> {
    let text = format!(r#"{{"main":{{{endpoints}}}}}"#);
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let (config, findings) = parse_fleet(&text, &Env::default(), &none);
    assert!(findings.iter().all(|finding| !finding.is_error()), "{findings:?}");
    static TABLES: LazyLock<Arc<Tables>> =
        LazyLock::new(|| Arc::new(Tables::new(detect::Rules::builtin(), config::MethodCosts::builtin())));
    let tables = Arc::clone(&TABLES);
    let fleet = build(&config, tables, settings, memory, &Fleet::default(), &Gates::new(settings), NOW)
        .expect("a good fleet");
    Arc::clone(fleet.chain("main").expect("the chain"))
}

fn endpoint(id: &str, role: &str, more: &str) -> String {
    format!(r#""{id}":{{"role":"{role}","http_url":"http://{id}.example"{more}}}"#)
}

fn three(more: [&str; 3]) -> Arc<Chain> {
    let [a, b, c] = more;
    let all = [endpoint("a", "primary", a), endpoint("b", "primary", b), endpoint("c", "primary", c)];
    let chain = fleet(&all.join(","), &Settings::default());
    for endpoint in &chain.endpoints {
        endpoint.state.probed(NOW, NOW, true);
        // They have been here for long.
        endpoint.state.come_back();
    }
    chain
}

fn wish(tried: &Indices) -> Wish<'_> {
    Wish {
        method: "eth_call",
        known_method: true,
        archive: false,
        block: None,
        range: None,
        only: None,
        given_away: false,
        may_try: true,
        public: true,
        cost: Cost::requests(1),
        may_wait: true,
        turn: Turn::NEWCOMER,
        now: NOW,
        tried,
        policy: Policy { selection: Selection::LeastUsed, throttling: true, max_lag: 0 },
    }
}

/// The endpoints in the order in which a request would try them all.
fn order(chain: &Chain, wish_of: impl Fn(&Indices) -> Wish<'_>) -> String {
    let (mut tried, mut rng) = (Indices::default(), SmallRng::seed_from_u64(7));
    let mut order = String::new();
    while let Choice::Take { index, .. } = select(chain, &wish_of(&tried), &mut rng, |_, _| {}) {
        order.push_str(&chain.at(index).id);
        tried.insert(index);
    }
    order
}

fn used(chain: &Chain, counts: [u32; 3]) {
    for (endpoint, count) in chain.endpoints.iter().zip(counts) {
        endpoint.account.gate.lift_24h(count, NOW);
    }
}

fn park(endpoint: &Endpoint, hint: Option<Duration>) {
    let hit = Hit { now: NOW, hint, kind: Kind::Burst, window_ms: 1_000, gap_ms: 0 };
    endpoint.account.park.hit(&hit, 0.5);
}

#[test]
fn the_least_used_comes_first() {
    let chain = three(["", "", ""]);
    used(&chain, [300, 100, 200]);
    assert_eq!(order(&chain, wish), "bca", "kills: comparing the wrong way round");
}

#[test]
fn weight_is_a_share_of_the_tier() {
    let chain = three([r#","weight":3"#, "", ""]);
    used(&chain, [290, 100, 200]);
    assert_eq!(order(&chain, wish), "abc", "290 at weight 3 is less than 100 at weight 1");
}

#[test]
fn use_is_compared_by_ceiling_only_where_everybody_has_one() {
    let of = |n: u32| format!(r#","capacity":{{"max_requests":{n},"window_seconds":60}}"#);
    let (large, small) = (of(1000), of(10));
    let chain = three([&large, &small, &small]);
    used(&chain, [300, 100, 5]);
    assert_eq!(order(&chain, wish), "acb", "300 of a thousand is less than 5 of ten");
    let chain = three([&large, &small, ""]);
    used(&chain, [300, 100, 5]);
    assert!(order(&chain, wish).starts_with('c'), "kills: comparing a share with a count");
}

#[test]
fn equals_are_told_apart_by_use_in_flight() {
    let chain = three(["", "", ""]);
    used(&chain, [100, 104, 102]);
    let _busy = [chain.endpoints[0].state.enter(NOW), chain.endpoints[2].state.enter(NOW)];
    assert!(order(&chain, wish).starts_with('b'), "within 5 % the idle one is next");
}

#[test]
fn roles_are_used_in_their_order() {
    let all =
        [endpoint("p", "public", ""), endpoint("f", "fallback", ""), endpoint("m", "primary", "")].join(",");
    assert_eq!(order(&fleet(&all, &Settings::default()), wish), "mfp");
    let settings = Settings { public_first: true, ..Settings::default() };
    assert_eq!(order(&fleet(&all, &settings), wish), "pmf");
    assert_eq!(order(&fleet(&all, &settings), |tried| Wish { public: false, ..wish(tried) }), "mf");
}

#[test]
fn who_cannot_serve_is_not_asked() {
    let archive = r#","type":"archive""#;
    let chain = three([archive, "", r#","private":true"#]);
    assert_eq!(order(&chain, |tried| Wish { archive: true, ..wish(tried) }), "a");
    assert_eq!(order(&chain, |tried| Wish { only: Some(1), ..wish(tried) }), "b");
    let given_away = order(&chain, |tried| Wish { given_away: true, ..wish(tried) });
    assert!(!given_away.contains('c'), "kills: giving a transaction to a private endpoint after others");
    chain.endpoints[0].state.saw_block(10);
    chain.endpoints[1].state.saw_block(20);
    let at_block = order(&chain, |tried| Wish { block: Some(15), ..wish(tried) });
    assert!(!at_block.contains('a') && at_block.len() == 2, "unknown heads are given a chance: {at_block}");
    let narrow = three([r#","max_block_range":100"#, r#","max_block_range":1000"#, ""]);
    let ranged = |range| order(&narrow, |tried| Wish { range: Some(range), ..wish(tried) });
    assert_eq!((ranged(1001).as_str(), ranged(101).len(), ranged(100).len()), ("c", 2, 3));
    chain.head.set(20);
    let policy = Policy { selection: Selection::LeastUsed, throttling: true, max_lag: 5 };
    assert!(!order(&chain, |tried| Wish { policy, ..wish(tried) }).contains('a'));
}

#[test]
fn health_ranks_and_excludes() {
    let all = [endpoint("a", "primary", ""), endpoint("b", "primary", ""), endpoint("c", "primary", "")];
    let chain = fleet(&all.join(","), &Settings::default());
    chain.endpoints[1].state.probed(NOW, NOW, true);
    chain.endpoints[2].state.probed(NOW, NOW, false);
    used(&chain, [0, 500, 0]);
    assert_eq!(order(&chain, wish), "ba", "good, then never seen; a fresh bad one not at all");
    assert_eq!(last_resort(&chain, &wish(&Indices::default())), Some(2), "when nobody else had an answer");
    chain.endpoints[0].state.probed(NOW + 1, NOW + 1, false);
    chain.endpoints[1].state.probed(NOW + 2, NOW + 2, false);
    chain.endpoints[1].state.probed(NOW + 3, NOW + 3, false);
    assert_eq!(order(&chain, wish), "");
    assert_eq!(last_resort(&chain, &wish(&Indices::default())), Some(2), "failed longest ago");
}

#[test]
fn a_newcomer_starts_level_and_does_not_draw_everything() {
    let chain = three(["", "", ""]);
    used(&chain, [10_000, 10_000, 0]);
    chain.endpoints[2].state.leave();
    let mut rng = SmallRng::seed_from_u64(1);
    let mut taken = [0u32; 3];
    for _ in 0..300 {
        let tried = Indices::default();
        let Choice::Take { index, .. } = select(&chain, &wish(&tried), &mut rng, |_, _| {}) else {
            panic!("somebody is free")
        };
        taken[usize::from(index)] += 1;
        chain.at(index).account.gate.charge(Cost::requests(1), ledger::Sender::Client, NOW);
    }
    assert!(taken[2] > 50 && taken[2] < 150, "a third is fair: {taken:?}");
}

#[test]
fn parked_and_dry_endpoints_are_saturated_and_say_when_they_open() {
    let limited = r#","capacity":{"max_requests":1,"window_seconds":10}"#;
    let chain = three([limited, "", ""]);
    park(&chain.endpoints[1], Some(Duration::from_secs(30)));
    park(&chain.endpoints[2], Some(Duration::from_secs(60)));
    assert_eq!(order(&chain, wish), "a", "one token");
    let tried = Indices::default();
    let Choice::Saturated(saturated) =
        select(&chain, &wish(&tried), &mut SmallRng::seed_from_u64(1), |_, _| {})
    else {
        panic!("all are full")
    };
    assert_eq!(saturated.at, (NOW / 10_000 + 1) * 10_000, "the window turns before the parks end");
    assert!(saturated.tokens && saturated.overflow.is_none(), "explicit waits and static ceilings are kept");
}

/// Kills: a newcomer that takes what others wait for, or is refused because of them; a batch that is taken apart although it
/// fits; a queue that holds back those who stand in it.
#[test]
fn room_that_others_wait_for_is_left_to_them() {
    let limited = r#","capacity":{"max_requests":3,"window_seconds":10}"#;
    let chain = three([limited, "", ""]);
    chain.endpoints.iter().skip(1).for_each(|other| park(other, Some(Duration::from_secs(60))));
    let (queue, turns) = (&chain.endpoints[0].account.queue, store::Turns::default());
    let turn = turns.begin();
    queue.stand(turn, Cost::requests(2), &Arc::default());
    let choose = |turn: Turn, n: u32| {
        let (tried, cost) = (Indices::default(), Cost::requests(n));
        select(&chain, &Wish { turn, cost, ..wish(&tried) }, &mut SmallRng::seed_from_u64(1), |_, _| {})
    };
    let Choice::Saturated(saturated) = choose(Turn::NEWCOMER, 2) else {
        panic!("two of three are spoken for")
    };
    assert!(saturated.at == NOW && !saturated.tokens, "it may fit any moment: {saturated:?}");
    assert!(saturated.opens >= NOW + 60_000, "nothing opens by itself before the parks end");
    assert!(matches!(choose(Turn::NEWCOMER, 1), Choice::Take { index: 0, .. }), "one is left over");
    assert!(matches!(choose(turn, 2), Choice::Take { index: 0, .. }));
    let Choice::Saturated(saturated) = choose(Turn::NEWCOMER, 1) else { panic!("none is left") };
    assert!(saturated.opens == (NOW / 10_000 + 1) * 10_000 && saturated.tokens, "{saturated:?}");
}

#[test]
fn a_park_of_our_own_guess_may_be_overloaded_where_it_was_hit_longest_ago() {
    let chain = three(["", "", ""]);
    for (endpoint, hit) in chain.endpoints.iter().zip([30, 10, 20]) {
        park(endpoint, None);
        endpoint.state.hit(NOW + hit);
    }
    let tried = Indices::default();
    let Choice::Saturated(saturated) =
        select(&chain, &wish(&tried), &mut SmallRng::seed_from_u64(1), |_, _| {})
    else {
        panic!("all are parked")
    };
    assert_eq!(saturated.overflow, Some(1));
}

#[test]
fn without_throttling_no_ceiling_holds_back() {
    let limited = r#","capacity":{"max_requests":1,"window_seconds":10}"#;
    let chain = three([limited, "", ""]);
    let policy = Policy { selection: Selection::LeastUsed, throttling: false, max_lag: 0 };
    for _ in 0..5 {
        assert!(order(&chain, |tried| Wish { policy, only: Some(0), ..wish(tried) }).starts_with('a'));
    }
}

#[test]
fn latency_prefers_the_fast_and_idle() {
    let chain = three(["", "", ""]);
    for (endpoint, millis) in chain.endpoints.iter().zip([30, 10, 20]) {
        endpoint.state.served(NOW, NOW, Duration::from_millis(millis));
    }
    let policy = Policy { selection: Selection::Latency, throttling: true, max_lag: 0 };
    assert_eq!(order(&chain, |tried| Wish { policy, ..wish(tried) }), "bca");
    let _busy: Vec<_> = (0..5).map(|_| chain.endpoints[1].state.enter(NOW)).collect();
    assert!(order(&chain, |tried| Wish { policy, ..wish(tried) }).starts_with('c'));
}

proptest! {
    /// Whatever was used, parked or tried: nobody is chosen twice, and nobody free is left out.
    #[test]
    fn every_free_endpoint_is_found_once(
        counts in proptest::collection::vec(0u32..10_000, 1..40),
        parked in proptest::collection::vec(any::<bool>(), 40),
    ) {
        let all: Vec<String> = (0..counts.len()).map(|n| endpoint(&format!("e{n}"), "primary", "")).collect();
        let chain = fleet(&all.join(","), &Settings::default());
        let mut free = 0;
        for ((endpoint, count), parked) in chain.endpoints.iter().zip(&counts).zip(&parked) {
            endpoint.account.gate.lift_24h(*count, NOW);
            if *parked { park(endpoint, None) } else { free += 1 }
        }
        chain.put_in_order(NOW);
        let (mut tried, mut rng) = (Indices::default(), SmallRng::seed_from_u64(3));
        let mut found = 0;
        while let Choice::Take { index, .. } = select(&chain, &wish(&tried), &mut rng, |_, _| {}) {
            prop_assert!(!tried.contains(index));
            tried.insert(index);
            found += 1;
        }
        prop_assert_eq!(found, free);
    }
}

/// Kills: a tier left, or a request refused, because the first tokens of an account take a moment.
#[test]
fn tokens_under_way_are_waited_for_before_the_next_tier_is_asked() {
    let memory = Memory::shared(Sharing { holder: ledger::Holder(1), assumed: 4 });
    let capacity = r#","capacity":{"max_requests":10,"window_seconds":1}"#;
    let leased = endpoint("l", "primary", capacity);
    let choose = |others: &[String], may_wait: bool| {
        let all = [std::slice::from_ref(&leased), others].concat().join(",");
        let chain = fleet_in(&memory, &all, &Settings::default());
        let (tried, mut rng) = (Indices::default(), SmallRng::seed_from_u64(7));
        match select(&chain, &Wish { may_wait, ..wish(&tried) }, &mut rng, |_, _| {}) {
            Choice::Take { index, .. } => chain.at(index).id.to_string(),
            Choice::Doubt => "wait".to_owned(),
            Choice::Saturated(_) => "saturated".to_owned(),
            Choice::Nobody => "nobody".to_owned(),
        }
    };
    let (free, next) = (endpoint("f", "primary", ""), endpoint("n", "fallback", ""));
    assert_eq!(choose(&[], true), "wait");
    assert_eq!(choose(std::slice::from_ref(&next), true), "wait");
    assert_eq!(choose(std::slice::from_ref(&next), false), "n");
    assert_eq!(choose(&[], false), "saturated");
    // Who has tokens comes first in the tier, and nobody waits.
    assert_eq!(choose(&[free, next], true), "f");
}
