//! A client that subscribes and does not read.

use super::{follower, number, told, with_sockets};
use crate::harness::{World, soon};

/// Kills: a slow client that is kept for ever or that holds up others, a wrong code, one that is not counted.
#[tokio::test]
async fn who_does_not_read_is_closed_with_1013_and_others_miss_nothing() {
    let world = with_sockets(World::build(), &["a"]).env("WS_QUEUE_BYTES", "65536").start().await;
    let (mut slow, _) = follower(&world).await;
    let (mut quick, id) = follower(&world).await;
    let counted = r#"headgate_websocket_closes_total{chain="main",reason="slow"} 1"#;
    // The system's buffers take what it does not read, and then its queue.
    let cut_off = async {
        while !world.operator("/metrics").await.text().contains(counted) {
            for _ in 0..500 {
                let head = world.chain.advance();
                assert_eq!(number(&told(&mut quick, &id).await), head);
            }
        }
    };
    soon(cut_off).await;
    assert_eq!(slow.closed().await.map(|(code, _)| code), Some(1013));
    let head = world.chain.advance();
    assert_eq!(number(&told(&mut quick, &id).await), head);
}
