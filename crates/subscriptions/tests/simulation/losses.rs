//! One loss at a time.

use subscriptions::{ClientId, End, Reason};

use crate::client::Kind;
use crate::world::{World, settings};

/// Two nodes, and two clients that have heads and logs from the first.
fn served() -> World {
    let mut world = World::new(1, 2, settings());
    for client in [1, 2] {
        world.subscribe(client, Kind::Heads);
        world.subscribe(client, Kind::Logs);
    }
    world.run(500);
    assert_eq!((world.subscriptions.len(), world.nodes[0].subscribed), (4, 2), "two share two");
    world
}

fn mine(world: &mut World, blocks: usize) {
    for block in 0..blocks {
        world.chain.mine(block % 3);
        world.spread(5);
        world.run(100);
    }
}

fn told(world: &World) -> Vec<usize> {
    world.subscriptions.values().map(|(_, subscription)| subscription.told).collect()
}

// Kills: an own upstream subscription for each client, a head or log that reaches only one of them.
#[test]
fn equal_subscriptions_share_one_upstream() {
    let mut world = served();
    mine(&mut world, 5);
    assert!(told(&world).iter().all(|told| *told == 5 || *told == 4), "{:?}", told(&world));
    world.check();
}

// Kills: a lost socket whose clients are told nothing more, a gap that stays, a head or log told twice.
#[test]
fn a_loss_is_filled_in() {
    for end in [End::Normal, End::Failed] {
        let mut world = served();
        mine(&mut world, 5);
        world.kill(0, end);
        mine(&mut world, 5);
        world.run(1000);
        assert_eq!(told(&world), [10, 10, 8, 8]);
        world.check();
        mine(&mut world, 2);
        world.check();
        assert_eq!((world.closed.len(), world.nodes[1].subscribed), (0, 2));
    }
}

// Kills: blocks that are not owed because none was told before the loss.
#[test]
fn a_loss_before_the_first_head_is_filled_in() {
    let mut world = served();
    world.kill(0, End::Failed);
    world.chain.mine(2);
    world.spread(0);
    world.run(1000);
    assert_eq!(told(&world).iter().sum::<usize>(), 2 + 4);
    world.check();
}

// Kills: one fetch per client, one per group.
#[test]
fn a_block_is_fetched_once() {
    let mut world = World::new(1, 2, subscriptions::Settings { share: false, ..settings() });
    (0..20).for_each(|client| world.subscribe(client, Kind::Heads));
    world.run(500);
    mine(&mut world, 1);
    assert_eq!(world.nodes[0].subscribed, 20, "none is shared");
    world.kill(0, End::Failed);
    for _ in 0..3 {
        world.chain.mine(0);
    }
    world.spread(0);
    world.run(1500);
    world.check();
    let mut fetched = world.fetched.clone();
    fetched.sort();
    fetched.dedup();
    assert_eq!(
        (fetched.len(), world.fetched.len()),
        (4, 4),
        "the newest told is checked, three are missing: {fetched:?}"
    );
}

// Kills: waiting for ever when nobody is left, closing before the time is over.
#[test]
fn nobody_left_closes_after_thirty_seconds() {
    let mut world = served();
    world.kill(0, End::Failed);
    world.kill(1, End::Failed);
    world.run(29_000);
    assert_eq!(world.closed, []);
    world.run(2_000);
    let reason = Reason::NothingWorked;
    assert_eq!(world.closed, [(ClientId(1), reason), (ClientId(2), reason)]);
    assert_eq!(
        (world.hub.sockets(), world.hub.upstream_subscriptions(), world.subscriptions.len()),
        (0, 0, 0)
    );
}
