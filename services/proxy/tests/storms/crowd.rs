//! A thousand clients behind one upstream subscription.

use std::time::Instant;

use simulator::Behaviour;

use super::{all_hear, followers, serving, until, world};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Kills: a client that is closed with its provider; a head that any of a thousand misses, or hears twice or late;
/// an upstream subscription per client.
#[tokio::test]
async fn a_thousand_sockets_outlive_their_provider() {
    let world = world(&NAMES, &[]).await;
    let mut sockets = followers(&world, 1000).await;
    let first = world.chain.advance();
    all_hear(&mut sockets, &world.chain, first..=first).await;
    let [name] = serving(&world, &NAMES)[..] else { panic!("one provider serves all") };
    assert_eq!((world[name].subscriptions(), world[name].sockets()), (1, 1));
    world[name].set(Behaviour::RefuseConnections).await.expect("dies");
    let died = Instant::now();
    let (_, _, last) = (world.chain.advance(), world.chain.advance(), world.chain.advance());
    all_hear(&mut sockets, &world.chain, first + 1..=last).await;
    println!("1000 clients had three missed heads {:?} after their provider died", died.elapsed());
    let next = world.chain.advance();
    all_hear(&mut sockets, &world.chain, next..=next).await;
    assert_eq!(serving(&world, &NAMES).len(), 1);
    drop(sockets);
    until(|| serving(&world, &NAMES).is_empty()).await;
}

/// Kills: standing still by the clock: when nobody's head moves, nobody is left.
#[tokio::test]
async fn a_halted_chain_makes_nobody_hop() {
    let world = world(&NAMES, &[("HEALTH_CHECK_INTERVAL", "200ms")]).await;
    let mut sockets = followers(&world, 10).await;
    let first = world.chain.advance();
    all_hear(&mut sockets, &world.chain, first..=first).await;
    let names = serving(&world, &NAMES);
    let asked = |name: &&str| world[name].count("eth_subscribe");
    let before: usize = NAMES.iter().map(asked).sum();
    let probes = world["a"].count("eth_blockNumber");
    // Many looks at a head that does not move.
    until(|| world["a"].count("eth_blockNumber") >= probes + 20).await;
    assert_eq!((serving(&world, &NAMES), NAMES.iter().map(asked).sum::<usize>()), (names, before));
    let next = world.chain.advance();
    all_hear(&mut sockets, &world.chain, next..=next).await;
}
