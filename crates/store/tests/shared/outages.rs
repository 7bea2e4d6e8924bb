//! Valkey away, frozen, emptied, closed to us: noticed, survived, and mended.

use crate::replica::{Replica, burst, now, target, until};
use crate::server::{Server, free_port};
use ledger::{Cost, Take};
use store::Named;

/// Kills: a start that waits for the store, and a ceiling that is open without it.
#[tokio::test]
async fn unreachable_at_the_start_is_survived_and_found_later() {
    let replica = Replica::on(free_port());
    let account = replica.account(&[1_000]);
    account.park.hit(&burst(now()), 0.5);
    assert!(account.park.is_parked(now()) && !replica.is_up());
    until("known to be alone", || !matches!(account.gate.try_take(Cost::requests(1), now()), Take::Doubt))
        .await;
    assert!(replica.valkey.as_ref().unwrap().claim(Named::Account("a")).await, "everybody may probe");
    assert!(replica.spend(&account, 1_000).await <= 125, "half of a quarter");
}

/// Kills: taking a silent server for a slow one for ever.
#[tokio::test]
async fn a_frozen_server_is_noticed_and_found_again() {
    let server = Server::start(&[]);
    let replica = Replica::connected(server.port).await;
    let account = replica.account(&[]);
    server.freeze();
    until("noticed", || !replica.is_up()).await;
    account.park.hit(&burst(now()), 0.5);
    server.thaw();
    until("found again", || replica.is_up()).await;
    let other = Replica::connected(server.port).await;
    let theirs = other.account(&[]);
    until("what happened meanwhile is told", || theirs.park.record().in_episode()).await;
}

/// Kills: parks, use and estimates that end with the server's memory.
#[tokio::test]
async fn a_server_that_comes_back_empty_is_told_again() {
    let mut server = Server::start(&[]);
    let replica = Replica::connected(server.port).await;
    let account = replica.account(&[]);
    let far = recovery::Hit { hint: Some(std::time::Duration::from_secs(3000)), ..burst(now()) };
    account.park.hit(&far, 0.5);
    account.gate.charge(Cost::requests(9), ledger::Sender::Client, now());
    server.restart();
    until("found again", || replica.is_up()).await;
    let other = Replica::connected(server.port).await;
    let theirs = other.account(&[]);
    until("told again", || theirs.park.is_parked(now()) && theirs.gate.use_24h(now()) == 9).await;
}

/// Kills: a wrong password that looks like a connection.
#[tokio::test]
async fn a_wrong_password_is_no_connection() {
    let server = Server::start(&["--requirepass", "right"]);
    let mut settings = target(server.port, "headgate");
    settings.password = Some("right".to_owned());
    let good = Replica::at(&settings);
    until("connected", || good.is_up()).await;
    settings.password = Some("wrong".to_owned());
    let bad = Replica::at(&settings);
    let account = bad.account(&[1_000]);
    until("alone", || !matches!(account.gate.try_take(Cost::requests(1), now()), Take::Doubt)).await;
    assert!(!bad.is_up());
}

/// Kills: a server without memory that is taken for a good one.
#[tokio::test]
async fn a_server_that_takes_no_writes_is_no_store() {
    let server = Server::start(&[]);
    let replica = Replica::connected(server.port).await;
    replica.account(&[1_000]);
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    until("noticed", || !replica.is_up()).await;
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    until("found again", || replica.is_up()).await;
}
