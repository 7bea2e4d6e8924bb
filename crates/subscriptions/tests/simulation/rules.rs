//! One rule at a time.

use std::time::Duration;

use subscriptions::{Blame, Candidate, End, EndpointId, Event, Reason, Refusal, Settings};

use crate::client::Kind;
use crate::world::{World, settings};

/// Two nodes; a client that has this from the first.
fn served(kind: Kind) -> World {
    let mut world = World::new(1, 2, settings());
    world.subscribe(1, kind);
    world.run(500);
    assert_eq!(world.subscriptions.len(), 1);
    world
}

fn mine(world: &mut World, blocks: usize, logs: usize) {
    for _ in 0..blocks {
        world.chain.mine(logs);
        world.spread(0);
        world.run(1000);
    }
}

/// The first node dies, so much happens before the other one is there, and the client is closed for this, if at all.
fn check_bound(kind: Kind, blocks: usize, logs: usize, expected: Option<Reason>) {
    let mut world = served(kind);
    world.kill(0, End::Failed);
    (0..blocks).for_each(|_| world.chain.mine(logs));
    world.spread(0);
    world.run(29_000);
    assert_eq!(world.closed.first().map(|(_, reason)| *reason), expected, "{kind:?} {blocks} {logs}");
    world.check();
}

// Kills: every bound that is off by one, and a gap that is given up although it fits.
#[test]
fn gaps_are_bounded() {
    check_bound(Kind::Heads, 256, 0, None);
    check_bound(Kind::Heads, 257, 0, Some(Reason::TooManyBlocks));
    check_bound(Kind::Logs, 256, 4, None);
    check_bound(Kind::Logs, 205, 5, Some(Reason::TooManyLogs));
    check_bound(Kind::Logs, 257, 0, Some(Reason::TooManyBlocks));
}

// Kills: standing still by the clock alone, by a lag alone.
#[test]
fn a_halted_chain_and_a_lag_make_nobody_hop() {
    let mut world = World::new(1, 2, settings());
    world.nodes[0].chain.truncate(195);
    world.nodes[0].lag = 6;
    world.subscribe(1, Kind::Heads);
    world.run(600_000);
    mine(&mut world, 40, 0);
    assert_eq!((world.nodes[0].sockets.len(), world.nodes[1].subscribed), (1, 0));
}

// Kills: staying with a node that stands still; going to nobody.
#[test]
fn a_node_that_stands_still_is_left() {
    let mut world = served(Kind::Heads);
    mine(&mut world, 3, 0);
    world.nodes[0].frozen = true;
    mine(&mut world, 8, 0);
    assert_eq!((world.nodes[0].sockets.len(), world.nodes[1].subscribed), (0, 1));
    world.check();
    world.nodes[1].frozen = true;
    world.kill(0, End::Normal);
    world.apply(Event::Endpoints(vec![Candidate { endpoint: EndpointId(2), eligible: true, open: true }]));
    mine(&mut world, 8, 0);
    assert_eq!(world.nodes[1].sockets.len(), 1, "there is nobody else");
}

// Kills: a reorganisation across the switch that is not told, or whose logs are not removed.
#[test]
fn a_reorganisation_across_a_switch_is_told() {
    for (deep, kind, told) in
        [(2, Kind::Heads, 3 + 3), (2, Kind::Logs, 6 + 4 + 3), (3, Kind::Logs, 6 + 6 + 4)]
    {
        let mut world = served(kind);
        mine(&mut world, 3, 2);
        world.kill(0, End::Failed);
        world.chain.abandon(deep);
        (0..=deep).for_each(|_| world.chain.mine(1));
        world.spread(0);
        world.run(3000);
        world.check();
        let subscription = &world.subscriptions.values().next().expect("one").1;
        assert_eq!(subscription.told, told, "{deep} {kind:?}");
    }
}

// Kills: telling again what a node that is behind tells, and not telling what it then catches up with.
#[test]
fn a_node_that_is_behind_tells_nothing_twice() {
    for kind in [Kind::Heads, Kind::Logs] {
        let mut world = served(kind);
        world.nodes[1].lag = 4;
        mine(&mut world, 6, 2);
        world.kill(0, End::Normal);
        world.run(2000);
        world.nodes[1].lag = 0;
        mine(&mut world, 3, 1);
        world.check();
        assert_eq!(world.nodes[1].subscribed, if kind == Kind::Heads { 1 } else { 2 });
    }
}

// Kills: asking another where the client is wrong, not asking where only this one cannot, another answer than theirs.
#[test]
fn refusals_go_where_they_belong() {
    let limit = Blame::Limit { again: Some(Duration::from_secs(60)) };
    for (refusals, served_by, refused) in [
        ([Some(Blame::Client), None], 0, Some("no from 0")),
        ([Some(Blame::Capability), None], 1, None),
        ([Some(Blame::Capability), Some(Blame::Capability)], 0, Some("no from 0")),
        ([Some(limit), None], 1, None),
        ([Some(Blame::Upstream), None], 1, None),
    ] {
        let mut world = World::new(1, 2, settings());
        world.nodes[0].refuses = refusals[0];
        world.nodes[1].refuses = refusals[1];
        world.subscribe(1, Kind::Pending);
        world.run(2000);
        let refused = refused.map(|text| Refusal::Answer(text.into()));
        assert_eq!(
            (world.refused.first(), world.nodes[1].subscribed > 0),
            (refused.as_ref(), served_by == 1),
            "{refusals:?}"
        );
    }
    let mut world = World::new(1, 1, settings());
    world.nodes[0].refuses = Some(limit);
    world.subscribe(1, Kind::Pending);
    world.run(2000);
    assert!(matches!(world.refused[..], [Refusal::Saturated { .. }]), "{:?}", world.refused);
    let mut world = World::new(1, 0, settings());
    world.subscribe(1, Kind::Heads);
    assert_eq!(world.refused, [Refusal::NoEndpoint]);
}

// Kills: a client's own subscription that is lost with its provider, or kept where nobody else knows it.
#[test]
fn own_subscriptions_go_elsewhere_too() {
    let mut world = served(Kind::Pending);
    world.kill(0, End::Failed);
    world.run(1000);
    assert_eq!((world.nodes[1].subscribed > 0, world.closed.len()), (true, 0));
    let mut world = served(Kind::Pending);
    world.nodes[1].refuses = Some(Blame::Capability);
    world.apply(Event::Endpoints(vec![Candidate { endpoint: EndpointId(2), eligible: true, open: true }]));
    world.run(1000);
    assert_eq!(world.closed.first().map(|(_, reason)| *reason), Some(Reason::NotElsewhere));
}

// Kills: more subscriptions on a socket than its provider takes, sockets that stay when nobody needs them.
#[test]
fn sockets_are_filled_and_closed() {
    let mut world = World::new(1, 1, Settings { per_socket: 4, per_client: 9, ..settings() });
    (0..10).for_each(|_| world.subscribe(1, Kind::Pending));
    world.run(1000);
    assert!(matches!(world.refused[..], [Refusal::TooMany { most: 9 }]), "{:?}", world.refused);
    let most = world.nodes[0].sockets.values().map(|socket| socket.subscriptions.len()).max();
    assert_eq!((world.nodes[0].sockets.len(), most), (3, Some(4)));
    world.leave(1);
    world.run(9_000);
    assert_eq!(world.nodes[0].sockets.values().map(|socket| socket.subscriptions.len()).sum::<usize>(), 3);
    world.run(2_000);
    assert_eq!((world.nodes[0].sockets.len(), world.hub.sockets()), (0, 0));
}

// Kills: resubscribing faster than the account's ceiling, giving up because it takes its time.
#[test]
fn resubscribing_keeps_to_the_ceiling() {
    let mut world = World::new(1, 2, Settings { share: false, ..settings() });
    (0..40).for_each(|client| world.subscribe(client, Kind::Logs));
    world.run(2000);
    world.tokens.per_second = Some(5);
    world.kill(0, End::Failed);
    world.run(3000);
    assert!(world.nodes[1].subscribed <= 15, "{}", world.nodes[1].subscribed);
    world.run(20_000);
    assert_eq!((world.nodes[1].subscribed, world.closed.len()), (41, 0));
    mine(&mut world, 2, 1);
    world.check();
}

// Kills: an endpoint that a reload removed and that keeps its subscriptions, or takes its clients along.
#[test]
fn a_removed_endpoint_hands_over() {
    let mut world = served(Kind::Logs);
    mine(&mut world, 2, 2);
    world.apply(Event::Endpoints(vec![Candidate { endpoint: EndpointId(2), eligible: true, open: true }]));
    mine(&mut world, 2, 2);
    world.check();
    assert_eq!((world.nodes[0].sockets.len(), world.nodes[1].sockets.len(), world.closed.len()), (0, 1, 0));
}

// Kills: refusing a subscription while somebody could make it who was seen bad a while ago, and asking such a one while
// somebody healthy can.
#[test]
fn who_was_seen_bad_is_asked_before_a_client_is_refused() {
    let mut world = World::new(1, 2, settings());
    world.nodes[1].eligible = false;
    world.tell_endpoints();
    world.subscribe(1, Kind::Heads);
    world.run(500);
    assert_eq!((world.nodes[0].subscribed, world.nodes[1].subscribed), (1, 0));
    let mut world = World::new(1, 2, settings());
    world.nodes[1].eligible = false;
    world.tell_endpoints();
    world.nodes[0].up = false;
    world.subscribe(1, Kind::Heads);
    world.run(500);
    assert_eq!((world.nodes[1].subscribed, world.refused.len()), (1, 0));
    mine(&mut world, 2, 0);
    world.check();
}
