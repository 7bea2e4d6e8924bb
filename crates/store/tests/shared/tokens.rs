//! Static ceilings: exact together, whoever asks, whatever is lost. Windows are hours, so that none ends meanwhile; a
//! run across the hour may see two of them.

use crate::replica::{HOUR, Replica, now, until};
use crate::server::Server;
use ledger::{Cost, Sender};

/// Spends with `step` and checks that exactly `limit` were spent: per hour, if the hour changed.
async fn exactly(limit: u32, step: impl AsyncFnOnce() -> u32) {
    let before = now() / HOUR;
    let spent = step().await;
    let hours = u32::try_from(now() / HOUR - before).expect("few") + 1;
    assert!(spent == limit || (hours > 1 && spent <= limit * hours), "{spent} of {limit} in {hours} windows");
}

/// Kills: a ceiling off by one on either backend.
#[tokio::test]
async fn one_process_gets_all_of_it_and_no_more() {
    let server = Server::start(&[]);
    for replica in [Replica::alone(), Replica::connected(server.port).await] {
        exactly(100, async || replica.spend(&replica.account(&[100]), 1000).await).await;
    }
}

/// Kills: a whole window for each replica, a grant that is not subtracted, half a share that nobody gets.
#[tokio::test]
async fn two_replicas_together_get_all_of_it_and_no_more() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.account(&[500]), b.account(&[500]));
    exactly(500, async || {
        let (one, other) = tokio::join!(a.spend(&first, 1000), b.spend(&second, 1000));
        assert!(one > 0 && other > 0, "{one} and {other}");
        // What one holds is not the other's: it is spent to the end as well.
        one + other + a.spend(&first, 1000).await + b.spend(&second, 1000).await
    })
    .await;
}

/// Kills: shares that are fixed, so that what idle replicas do not want is lost.
#[tokio::test]
async fn one_replica_with_all_the_demand_gets_all() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let idle = b.account(&[300]);
    exactly(300, async || a.spend(&a.account(&[300]), 1000).await).await;
    assert!(idle.gate.snapshot(now())[0].used <= 300);
}

/// Kills: the second limit not asked, or its tokens lost when the first is dry.
#[tokio::test]
async fn several_limits_hold_at_once() {
    let server = Server::start(&[]);
    let replica = Replica::connected(server.port).await;
    exactly(40, async || replica.spend(&replica.account(&[1000, 40]), 2000).await).await;
}

/// Kills: probes and last resorts that nobody pays for.
#[tokio::test]
async fn what_is_sent_without_a_token_counts() {
    let server = Server::start(&[]);
    let replica = Replica::connected(server.port).await;
    let account = replica.account(&[20]);
    exactly(20, async || {
        for _ in 0..5 {
            account.gate.charge(Cost::requests(1), Sender::Probe, now());
        }
        5 + replica.spend(&account, 1000).await
    })
    .await;
}

/// Kills: tokens of a process that left that are lost to all others, and returned twice.
#[tokio::test]
async fn who_leaves_returns_what_it_holds() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    exactly(1000, async || {
        let mine = a.spend(&a.account(&[1000]), 7).await;
        until("more is leased than spent", || a.account(&[1000]).gate.room(0, now()) > 0).await;
        a.leave().await;
        mine + b.spend(&b.account(&[1000]), 2000).await
    })
    .await;
}

/// Kills: a share that is spent twice when its holder dies: tokens it held stay unused.
#[tokio::test]
async fn a_holder_that_dies_never_leads_to_more() {
    let server = Server::start(&[]);
    let (mut a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let before = now() / HOUR;
    let mine = a.spend(&a.account(&[400]), 100).await;
    a.die();
    let rest = b.spend(&b.account(&[400]), 1000).await;
    assert!(mine + rest <= 400 || now() / HOUR > before, "{mine} and {rest}");
    assert!(rest > 0);
}

/// Kills: a script that is only known to the server it was loaded into.
#[tokio::test]
async fn scripts_are_loaded_again_when_the_server_forgot_them() {
    let server = Server::start(&[]);
    let replica = Replica::connected(server.port).await;
    let account = replica.account(&[100]);
    exactly(100, async || {
        let some = replica.spend(&account, 10).await;
        server.ask(&["SCRIPT", "FLUSH"]);
        some + replica.spend(&account, 1000).await
    })
    .await;
    assert!(replica.is_up());
}

/// Kills: keys without the prefix.
#[tokio::test]
async fn two_prefixes_never_meet() {
    let server = Server::start(&[]);
    let other = Replica::at(&crate::replica::target(server.port, "other"));
    until("connected", || other.is_up()).await;
    let one = Replica::connected(server.port).await;
    exactly(50, async || one.spend(&one.account(&[50]), 100).await).await;
    exactly(50, async || other.spend(&other.account(&[50]), 100).await).await;
    let keys = server.ask(&["KEYS", "*"]);
    let ours = |key: &&str| key.contains("v1:");
    assert!(keys.lines().filter(ours).all(|key| key.starts_with("headgate:") || key.starts_with("other:")));
}
