//! Parks, estimates, use and the right to probe, as others see them.

use crate::replica::{Replica, burst, now, until};
use crate::server::Server;
use ledger::{Cost, Evidence, Sender, Take};
use recovery::Probe;
use std::time::{Duration, Instant};
use store::Named;

/// Kills: a hit that stays in its process, and a return that does.
#[tokio::test]
async fn one_replicas_hit_parks_for_the_other_until_one_probe_is_clean() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.account(&[]), b.account(&[]));
    first.park.hit(&burst(now()), 0.5);
    a.valkey.as_ref().unwrap().stir();
    until("parked for the other", || second.park.is_parked(now())).await;
    assert_eq!(first.park.record(), second.park.record());
    until("told that something changed", || b.changes.load(std::sync::atomic::Ordering::Relaxed) > 0).await;
    // The other probes; the wait is over then.
    let due = second.park.probe_due(now()).expect("parked");
    second.park.probed(Probe::Clean, due, 0.5);
    b.valkey.as_ref().unwrap().stir();
    until("back for the first", || !first.park.is_parked(now())).await;
}

/// Kills: addresses that are parked for one process only.
#[tokio::test]
async fn addresses_are_shared_too() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (mine, theirs) = (a.memory.address("host:443"), b.memory.address("host:443"));
    let other = b.memory.address("host:444");
    mine.hit(&burst(now()), 0.5);
    a.valkey.as_ref().unwrap().stir();
    until("parked for the other", || theirs.is_parked(now())).await;
    assert!(!other.is_parked(now()));
}

/// Kills: writing over what another process wrote since it was read.
#[tokio::test]
async fn of_hits_that_are_told_all_at_once_the_longest_wait_counts() {
    let server = Server::start(&[]);
    let mut replicas = Vec::new();
    for _ in 0..4 {
        replicas.push(Replica::connected(server.port).await);
    }
    // Whether they overlap is chance: often enough they do.
    for round in 0..40 {
        let (at, place) = (now(), format!("host-{round}:443"));
        for (seconds, replica) in [1_300, 1_200, 1_100, 1_000].into_iter().zip(&replicas) {
            let hint = Some(std::time::Duration::from_secs(seconds));
            replica.memory.address(&place).hit(&recovery::Hit { hint, ..burst(at) }, 0.5);
            replica.valkey.as_ref().unwrap().stir();
        }
        let asked = |replica: &Replica| replica.memory.address(&place).record().asked_until;
        until("the longest everywhere", || replicas.iter().all(|r| asked(r) == at + 1_300_000)).await;
    }
}

/// Kills: an episode that ends with the process that saw it.
#[tokio::test]
async fn a_park_outlives_its_process() {
    let server = Server::start(&[]);
    let mut a = Replica::connected(server.port).await;
    a.account(&[]).park.hit(&burst(now()), 0.5);
    let third = Replica::connected(server.port).await;
    let account = third.account(&[]);
    until("heard of", || account.park.is_parked(now())).await;
    a.die();
    drop(third);
    let next = Replica::connected(server.port).await;
    let account = next.account(&[]);
    until("still parked after all left", || account.park.record().in_episode()).await;
}

/// Kills: an estimate that is not shared or not kept, and two decreases for one episode.
#[tokio::test]
async fn what_one_learned_all_know_once() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.account(&[]), b.account(&[]));
    let at = now();
    for account in [&first, &second] {
        account.gate.charge(Cost::requests(20), Sender::Client, at);
    }
    first.gate.refused(&Evidence::client(at), at + 50).expect("a first estimate");
    second.gate.refused(&Evidence::client(at), at + 60).expect("a first estimate");
    let ceilings = |account: &store::Account| {
        account.gate.export().map(|record| {
            record
                .into_aimd(&aimd::Params::default())
                .spans
                .iter()
                .map(|s| s.estimate.map(|e| e.ceiling))
                .collect::<Vec<_>>()
        })
    };
    let once = ceilings(&second);
    until("one estimate for both", || ceilings(&first) == once && ceilings(&second) == once).await;
    let third = Replica::connected(server.port).await;
    let account = third.account(&[]);
    until("a newcomer knows it", || ceilings(&account) == once).await;
    drop((a, b, third));
    let next = Replica::connected(server.port).await;
    let account = next.account(&[]);
    until("learned state outlives all processes", || ceilings(&account) == once).await;
    assert!(!matches!(account.gate.try_take(Cost::requests(30), now()), Take::Granted(_)));
}

/// A look that comes later than this was held up by the machine: what it lasted beyond that does not count.
const HELD_UP: Duration = Duration::from_millis(20);

/// A machine that was held up for so long stood still.
const STILL: Duration = Duration::from_millis(250);

/// When was sent, and when the machine had stood still.
#[derive(Default)]
struct Sent {
    at: Vec<u64>,
    stood_still: Vec<u64>,
}

impl Sent {
    fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether a second that begins then shows what a replica believes its part to be: who stood still has heard of nothing
    /// that others want for a while.
    fn is_calm(&self, at: u64) -> bool {
        !self.stood_still.iter().any(|still| (still.saturating_sub(1_000)..still + 2_000).contains(&at))
    }
}

/// Sends whenever there is room, for so long.
async fn greedy(account: &store::Account, length: Duration) -> Sent {
    let (mut awake, mut looked, mut sent) = (Duration::ZERO, Instant::now(), Sent::default());
    while awake < length {
        let took = looked.elapsed();
        awake += took.min(HELD_UP);
        if took > STILL {
            sent.stood_still.push(now());
        }
        looked = Instant::now();
        match account.gate.try_take(Cost::requests(1), now()) {
            Take::Granted(ticket) => {
                let at = now();
                assert!(account.gate.sent(ticket, at));
                sent.at.push(at);
            }
            Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
    }
    sent
}

/// Kills: a learned ceiling for each replica, so that N of them use it N times; and a part that one has for nothing.
#[tokio::test]
async fn replicas_divide_a_learned_ceiling_by_what_they_are_asked_for() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.account(&[]), b.account(&[]));
    let at = now();
    first.gate.charge(Cost::requests(80), Sender::Client, at);
    first.gate.refused(&Evidence::client(at), at + 50).expect("a first estimate");
    let limit = |account: &store::Account| account.gate.snapshot(now()).first().map(|view| view.limit);
    until("both know of it", || limit(&second).is_some() && limit(&first) == limit(&second)).await;
    let ceiling = usize::try_from(limit(&first).expect("learned")).expect("small");
    // Long enough for each to hear of the other.
    let before =
        tokio::join!(greedy(&first, Duration::from_secs(3)), greedy(&second, Duration::from_secs(3)));
    let (one, other) =
        tokio::join!(greedy(&first, Duration::from_secs(3)), greedy(&second, Duration::from_secs(3)));
    let all = [&one.at[..], &other.at].concat();
    let calm =
        all.iter().filter(|at| [&before.0, &before.1, &one, &other].iter().all(|sent| sent.is_calm(**at)));
    let busiest = calm.map(|at| all.iter().filter(|other| (*at..at + 1000).contains(other)).count()).max();
    // Parts move with what is asked for: each may have been one larger a moment before.
    assert!(busiest <= Some(ceiling + 2), "{busiest:?} in a second of {ceiling}");
    assert!(all.len() >= 2 * ceiling, "{} and {} of {ceiling} per second", one.len(), other.len());
    assert!(one.len() * 3 > other.len() && other.len() * 3 > one.len(), "{} and {}", one.len(), other.len());
}

/// Refused with 80 in use: a first level.
fn learns_a_level(account: &store::Account) {
    let at = now();
    // Not in the running slot, of which only a share is in use.
    account.gate.charge(Cost::requests(80), Sender::Client, at - 300);
    account.gate.refused(&Evidence::client(at), at + 50).expect("a first level");
}

/// Kills: a level for each replica, a level that a store does not hand on, and use that others do not hear of.
#[tokio::test]
async fn replicas_share_a_level_and_what_they_use() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.steady(), b.steady());
    learns_a_level(&first);
    let level = |account: &store::Account| account.gate.level().map_or(0.0, |level| level.level);
    until("both know of it", || level(&second) > 75.0 && (level(&first) - level(&second)).abs() < 0.01).await;
    let length = Duration::from_secs(3);
    tokio::join!(greedy(&first, length), greedy(&second, length));
    let began = now();
    let (one, other) = tokio::join!(greedy(&first, length), greedy(&second, length));
    let (all, millis) = (one.len() + other.len(), now() - began);
    // Nothing is served in the eyes of the law, so the level stands: 78 to 80 of each second.
    let most = 82 * usize::try_from(millis).expect("a few seconds") / 1000;
    assert!((190..=most).contains(&all), "{} and {} in {millis} ms", one.len(), other.len());
    assert!(one.len() * 2 > other.len() && other.len() * 2 > one.len(), "{} and {}", one.len(), other.len());
    // Within a second in which nobody stood still. Alone, each has half of it.
    let used = || [&first, &second].map(|account| account.gate.snapshot(now())[0].used);
    let deadline = Instant::now() + Duration::from_secs(60);
    while used().iter().any(|used| *used < 60) {
        assert!(Instant::now() < deadline, "each counts the use of both: {:?}", used());
        tokio::join!(greedy(&first, HELD_UP * 5), greedy(&second, HELD_UP * 5));
    }
    let stored = server.ask(&["GET", "headgate:v1:{a.a}:learned"]);
    assert!(stored.len() <= 220, "{} bytes: {stored}", stored.len());
}

/// Kills: what gathered in a park, sent at once by whoever did not probe.
#[tokio::test]
async fn who_hears_that_a_park_ended_begins_slowly() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.steady(), b.steady());
    learns_a_level(&first);
    first.park.hit(&burst(now()), 0.5);
    a.valkey.as_ref().unwrap().stir();
    until("parked for the other", || second.park.is_parked(now())).await;
    until("rested", || first.gate.room(1, now()) > 70).await;
    let due = second.park.probe_due(now()).expect("parked");
    second.park.probed(Probe::Clean, due, 0.5);
    b.valkey.as_ref().unwrap().stir();
    until("back for the first", || !first.park.record().in_episode()).await;
    let at = now();
    let granted = |_: &u32| match first.gate.try_take(Cost::requests(1), at) {
        Take::Granted(ticket) => first.gate.sent(ticket, at),
        Take::Dry { .. } | Take::Doubt | Take::TooBig { .. } => false,
    };
    let at_once = (0..20).filter(granted).count();
    // An eighth of the level has gathered.
    assert!(at_once <= 2, "{at_once} at once");
}

/// Kills: use that is told twice, or lost when a process ends or the server forgets.
#[tokio::test]
async fn use_of_24_hours_adds_up_exactly() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (first, second) = (a.account(&[]), b.account(&[]));
    std::thread::scope(|scope| {
        for account in [&first, &first, &second, &second] {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    account.gate.charge(Cost::requests(1), Sender::Client, now());
                }
            });
        }
    });
    let all = |account: &store::Account| account.gate.use_24h(now()) == 40_000;
    until("both know of all", || all(&first) && all(&second)).await;
    server.ask(&["FLUSHALL"]);
    a.leave().await;
    let next = Replica::connected(server.port).await;
    let account = next.account(&[]);
    until("a newcomer knows of all that was told after the loss", || account.gate.use_24h(now()) >= 20_000)
        .await;
}

/// Kills: as many probers as there are replicas, and a right that outlives its use.
#[tokio::test]
async fn one_probes_and_gives_up_the_right() {
    let server = Server::start(&[]);
    let (a, b) = (Replica::connected(server.port).await, Replica::connected(server.port).await);
    let (one, other) = (a.valkey.as_ref().unwrap(), b.valkey.as_ref().unwrap());
    let named = Named::Account("a");
    assert!(one.claim(named).await);
    assert!(!other.claim(named).await);
    assert!(one.claim(named).await, "its own again");
    assert!(other.claim(Named::Account("b")).await);
    other.release(named).await;
    assert!(!other.claim(named).await, "kills: ending what belongs to another");
    one.release(named).await;
    assert!(other.claim(named).await);
    assert!(server.ask(&["PTTL", "headgate:v1:{a.a}:prober"]).trim() > ":0", "it ends by itself");
}

/// Kills: overwriting what is not ours or newer than we are.
#[tokio::test]
async fn foreign_values_are_left_alone_and_only_they_are_not_shared() {
    let server = Server::start(&[]);
    server.ask(&["SET", "headgate:v1:{a.a}:park", "9;from;the;future"]);
    server.ask(&["RPUSH", "headgate:v1:{a.a}:ledger.requests.3600000", "foreign"]);
    server.ask(&["SET", "headgate:v1:{a.a}:learned", "not ours"]);
    let replica = Replica::connected(server.port).await;
    let account = replica.account(&[]);
    account.park.hit(&burst(now()), 0.5);
    account.gate.charge(Cost::requests(20), Sender::Client, now());
    account.gate.refused(&Evidence::client(now()), now());
    let other = Replica::connected(server.port).await;
    let theirs = other.account(&[]);
    until("use is shared all the same", || theirs.gate.use_24h(now()) == 20).await;
    let held = |key: &str| server.ask(&["GET", &format!("headgate:v1:{{a.a}}:{key}")]);
    assert!(held("park").contains("9;from;the;future"));
    assert!(held("learned").contains("not ours"));
    assert!(account.park.is_parked(now()), "here the hit counts");
    let third = Replica::connected(server.port).await;
    assert!(third.spend(&third.account(&[1_000]), 1_000).await <= 125, "a ceiling without a ledger");
    assert!(server.ask(&["TYPE", "headgate:v1:{a.a}:ledger.requests.3600000"]).contains("list"));
    assert!(replica.is_up());
}
