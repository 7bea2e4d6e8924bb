//! Limits of clients while a follower takes a lost primary's place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use store::{Lost, Subject};

use crate::counter::{Counter, acquainted, day};
use crate::replica::until;
use crate::server::Server;
use crate::topology::Pair;

/// A sentinel that waits so long acts only when it is told to.
const NEVER_MS: u64 = 600_000;
/// Counted request by request.
const EXACT: u64 = 60;
/// Counted in blocks.
const LEASED: u64 = 600;

/// Two replicas on one pair, with two limited clients each.
struct Both {
    pair: Pair,
    counters: [Counter; 2],
    exact: [Arc<Subject>; 2],
    leased: [Arc<Subject>; 2],
}

impl Both {
    async fn start() -> Both {
        let pair = Pair::start(NEVER_MS).await;
        let mut settings = pair.target();
        // The machine may be busy: what is shown here is not how fast it answers.
        settings.timeout = Duration::from_secs(2);
        let lost = Lost { grace: Duration::ZERO, denies: false, slot_life: Duration::from_secs(15) };
        let counters = [Counter::at(&settings, lost).await, Counter::at(&settings, lost).await];
        acquainted(&counters[0], &counters[1]).await;
        let exact = counters.each_ref().map(|counter| counter.client("exact", &[("rpd", EXACT)]));
        let leased = counters.each_ref().map(|counter| counter.client("leased", &[("rpd", LEASED)]));
        Both { pair, counters, exact, leased }
    }

    /// What each replica could spend, at most `most`.
    async fn spend(&self, subjects: &[Arc<Subject>; 2], most: u64) -> [u64; 2] {
        let [a, b] = &self.counters;
        [a.spend(&subjects[0], most).await, b.spend(&subjects[1], most).await]
    }

    /// Spends until `all` were admitted: blocks that one gives back the other gets a moment later. Then there is no more.
    async fn spend_all(&self, subjects: &[Arc<Subject>; 2], all: u64) -> u64 {
        let (mut spent, deadline) = (0, Instant::now() + Duration::from_secs(30));
        while spent < all && Instant::now() < deadline {
            spent += self.spend(subjects, 10_000).await.iter().sum::<u64>();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        spent + self.spend(subjects, 10_000).await.iter().sum::<u64>()
    }

    /// Waits until the follower knows that so much was used.
    async fn used(&self, exact: u64, leased: u64) {
        until("in step, with every block given back", || used_of(&self.pair.follower) == [exact, leased])
            .await;
    }

    async fn degraded(&self, is: bool) {
        let all = || self.counters.iter().all(|counter| counter.limits.is_degraded() == is);
        until("noticed by both", all).await;
    }

    /// The primary is gone: each replica has its half of either limit and no more.
    async fn lose_primary(&mut self) {
        self.pair.primary.kill();
        self.degraded(true).await;
        assert_eq!(self.spend(&self.exact, 1_000).await, [EXACT / 2; 2]);
        assert_eq!(self.spend(&self.leased, 10_000).await, [LEASED / 2; 2]);
    }

    async fn fail_over(&self) {
        let told = self.pair.sentinel.ask(&["SENTINEL", "FAILOVER", "main"]);
        assert!(told.contains("+OK"), "{told}");
        self.degraded(false).await;
    }
}

/// What a server says was used today, in rising order.
fn used_of(server: &Server) -> Vec<u64> {
    let keys = server.ask(&["KEYS", "*{c.*"]);
    let used = |key: &str| {
        let stored = server.ask(&["HGET", key, "rpd"]);
        stored.trim().rsplit(':').next().and_then(|used| used.parse().ok())
    };
    let mut all: Vec<u64> = keys.lines().filter(|line| line.contains("{c.")).filter_map(used).collect();
    all.sort_unstable();
    all
}

/// Kills: clients shut out, or let in without a limit, between two primaries; a counter that stays with the old one; use
/// that is forgotten though the new primary knows it.
#[tokio::test]
async fn a_limit_lasts_through_a_failover() {
    let mut both = Both::start().await;
    let started = day();
    assert_eq!(both.spend(&both.exact, 10).await, [10, 10]);
    assert_eq!(both.spend(&both.leased, 100).await, [100, 100]);
    both.used(20, 200).await;
    both.lose_primary().await;
    both.fail_over().await;
    let (exact, leased) = (EXACT - 20, LEASED - 200);
    let spent = [both.spend_all(&both.exact, exact).await, both.spend_all(&both.leased, leased).await];
    assert!(spent == [exact, leased] || day() > started, "{spent:?}");
}

/// The follower had heard of nothing. Kills: a limit that is gone with what was lost, a window more for each replica.
#[tokio::test]
async fn a_failover_that_loses_everything_gives_one_window_more() {
    let mut both = Both::start().await;
    let started = day();
    let spent = [both.spend_all(&both.exact, EXACT).await, both.spend_all(&both.leased, LEASED).await];
    assert!(spent == [EXACT, LEASED] || day() > started, "{spent:?}");
    both.used(EXACT, LEASED).await;
    both.pair.follower.ask(&["CONFIG", "SET", "replica-read-only", "no"]);
    both.pair.follower.ask(&["FLUSHALL"]);
    both.lose_primary().await;
    both.fail_over().await;
    let spent = [both.spend_all(&both.exact, EXACT).await, both.spend_all(&both.leased, LEASED).await];
    assert!(spent == [EXACT, LEASED] || day() > started, "{spent:?}");
}
