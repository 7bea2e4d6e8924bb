//! When a subscription cannot be kept its client is told: closed with 1012, to subscribe anew.

use simulator::Behaviour;

use super::{follower, with_sockets};
use crate::harness::World;

/// Kills: a client that waits for ever for what will not come. Thirty seconds is what a lost subscription has.
#[tokio::test]
async fn nothing_else_works_and_the_client_is_told() {
    let world = with_sockets(World::build_unwatched(), &["a"]).start().await;
    let (mut socket, _) = follower(&world).await;
    world["a"].set(Behaviour::RefuseConnections).await.expect("behaves");
    let (code, reason) = socket.closed().await.expect("a close");
    assert_eq!(code, 1012, "{reason}");
    assert!(reason.contains("30 s"), "{reason}");
}
