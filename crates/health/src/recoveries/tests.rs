use std::future::pending;
use std::sync::Mutex;

use rand::SeedableRng;
use recovery::{Block, Hit, Kind, hit, parked, probed};
use tokio::task::JoinHandle;

use super::*;

const BASE: u64 = 1_800_000_000_000;
const LIMITED: Probe = Probe::Limited { kind: Kind::Burst, hint: None };

/// What goes wrong, each until its count is used up.
#[derive(Default)]
struct Faults {
    panics: u32,
    hangs: u32,
    failed_writes: u32,
    failed_reads: u32,
    claimed_elsewhere: u32,
    /// Reads that show every account as it was when its probe was due.
    stale_reads: u32,
}

/// Accounts in memory, of a provider that limits until `free_from`.
struct Fleet {
    started: Instant,
    records: Mutex<HashMap<&'static str, Record>>,
    policy: Policy,
    free_from: u64,
    faults: Mutex<Faults>,
    probes: Mutex<Vec<u64>>,
    changes: watch::Sender<u64>,
}

/// Uses one up.
fn take(count: &mut u32) -> bool {
    let some = *count > 0;
    *count = count.saturating_sub(1);
    some
}

impl Fleet {
    fn update(&self, id: &'static str, change: impl Fn(&Record) -> Record) {
        let mut records = self.records.lock().expect("no panic while held");
        let record = records.entry(id).or_default();
        *record = change(record);
    }

    fn is_parked(&self, id: &'static str) -> bool {
        let records = self.records.lock().expect("no panic while held");
        records.get(id).is_some_and(|record| parked(record, self.now_ms()))
    }

    fn fault(&self, pick: impl Fn(&mut Faults) -> &mut u32) -> bool {
        take(pick(&mut self.faults.lock().expect("no panic while held")))
    }

    fn hit(&self, id: &'static str) {
        let event = Hit { now: self.now_ms(), hint: None, kind: Kind::Burst, window_ms: 60_000, gap_ms: 0 };
        self.update(id, |record| hit(record, &self.policy, &event, 0.5));
        self.changes.send_modify(|change| *change += 1);
    }

    /// The milliseconds until the account is back, to 10.
    async fn back_after(&self, id: &'static str) -> u64 {
        let from = self.now_ms();
        while self.is_parked(id) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert!(self.now_ms() < from + 86_400_000, "stranded");
        }
        self.now_ms() - from
    }
}

impl Accounts for Fleet {
    type Id = &'static str;

    fn now_ms(&self) -> u64 {
        BASE + u64::try_from(self.started.elapsed().as_millis()).expect("a short test")
    }

    async fn in_episode(&self) -> Option<Vec<Parked<&'static str>>> {
        if self.fault(|faults| &mut faults.failed_reads) {
            return None;
        }
        let records = self.records.lock().expect("no panic while held");
        let stale = Record { parked_until: 1, next_probe: 1, changed_at: 1, ..Record::default() };
        let answered = !self.probes.lock().expect("no panic while held").is_empty();
        if answered && self.fault(|faults| &mut faults.stale_reads) {
            return Some(
                records.keys().map(|id| Parked { id: *id, record: stale, policy: self.policy }).collect(),
            );
        }
        let parked = records.iter().filter(|(_, record)| record.in_episode());
        Some(parked.map(|(id, record)| Parked { id: *id, record: *record, policy: self.policy }).collect())
    }

    async fn claim(&self, _: &&'static str) -> bool {
        !self.fault(|faults| &mut faults.claimed_elsewhere)
    }

    async fn probe(&self, _: &&'static str) -> Probe {
        self.probes.lock().expect("no panic while held").push(self.now_ms() - BASE);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(!self.fault(|faults| &mut faults.panics), "a probe with a bug");
        if self.fault(|faults| &mut faults.hangs) {
            pending::<()>().await;
        }
        if self.now_ms() >= self.free_from { Probe::Clean } else { LIMITED }
    }

    async fn apply(&self, id: &&'static str, outcome: Probe, jitter: f64) -> bool {
        if self.fault(|faults| &mut faults.failed_writes) {
            return false;
        }
        self.update(id, |record| probed(record, &self.policy, outcome, self.now_ms(), jitter));
        true
    }
}

fn fleet(free_after_ms: u64, faults: Faults) -> (Arc<Fleet>, JoinHandle<()>) {
    fleet_of(Policy::default(), free_after_ms, faults)
}

fn fleet_of(policy: Policy, free_after_ms: u64, faults: Faults) -> (Arc<Fleet>, JoinHandle<()>) {
    let (changes, inbox) = watch::channel(0);
    let fleet = Arc::new(Fleet {
        started: Instant::now(),
        records: Mutex::default(),
        policy,
        free_from: BASE + free_after_ms,
        faults: Mutex::new(faults),
        probes: Mutex::default(),
        changes,
    });
    let driver = tokio::spawn(run_recoveries(Arc::clone(&fleet), inbox, SmallRng::seed_from_u64(3)));
    (fleet, driver)
}

// Kills: polling once a second, and sleeping through a change.
#[tokio::test(start_paused = true)]
async fn a_short_wait_is_probed_promptly() {
    let (fleet, _driver) = fleet(0, Faults::default());
    tokio::time::sleep(Duration::from_secs(3)).await;
    fleet.hit("a");
    let back = fleet.back_after("a").await;
    assert!((500..=550).contains(&back), "{back}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_limited_is_probed_ever_more_rarely() {
    let (fleet, _driver) = fleet(20_000, Faults::default());
    fleet.hit("a");
    let back = fleet.back_after("a").await;
    let probes = fleet.probes.lock().expect("no panic while held").clone();
    assert!((6..=8).contains(&probes.len()), "{probes:?}");
    assert!(back < 20_000 + 20_000, "within one wait of being free: {back}");
}

#[tokio::test(start_paused = true)]
async fn accounts_do_not_wait_for_each_other() {
    let (fleet, _driver) = fleet(0, Faults { hangs: 1, ..Faults::default() });
    fleet.hit("hangs");
    tokio::time::sleep(Duration::from_secs(1)).await;
    fleet.hit("b");
    assert!(fleet.back_after("b").await <= 550);
    assert!(fleet.is_parked("hangs"));
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_the_account_is_back() {
    let check = async |name, faults, within: u64| {
        let (fleet, _driver) = fleet(0, faults);
        fleet.hit("a");
        let back = fleet.back_after("a").await;
        assert!(back <= within, "{name}: {back}");
    };
    let none = Faults::default;
    check("a probe panics", Faults { panics: 1, ..none() }, 2_000).await;
    check("two probes panic", Faults { panics: 2, ..none() }, 5_000).await;
    check("a probe hangs", Faults { hangs: 1, ..none() }, 12_500).await;
    check("a write fails", Faults { failed_writes: 1, ..none() }, 2_000).await;
    check("reads fail", Faults { failed_reads: 3, ..none() }, 4_000).await;
    check("another process probed and died", Faults { claimed_elsewhere: 15, ..none() }, 16_500).await;
}

// Kills: repeating at once what has just failed, or what a view that lags behind still shows as due.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_or_lags_does_not_make_it_hammer_the_provider() {
    let check = async |faults, most: usize| {
        let (fleet, _driver) = fleet(0, faults);
        fleet.hit("a");
        tokio::time::sleep(Duration::from_secs(5)).await;
        let probes = fleet.probes.lock().expect("no panic while held").clone();
        assert!((1..=most).contains(&probes.len()), "{probes:?}");
    };
    check(Faults { failed_writes: 1_000, ..Faults::default() }, 6).await;
    check(Faults { stale_reads: 1, ..Faults::default() }, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_another_process_has_claimed_is_not_probed() {
    let (fleet, _driver) = fleet(0, Faults { claimed_elsewhere: 1_000, ..Faults::default() });
    fleet.hit("a");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(fleet.probes.lock().expect("no panic while held").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_restarted_process_resumes_what_another_began() {
    let (fleet, driver) = fleet(0, Faults { hangs: 1, ..Faults::default() });
    fleet.hit("a");
    tokio::time::sleep(Duration::from_millis(700)).await;
    driver.abort();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let inbox = fleet.changes.subscribe();
    let _second = tokio::spawn(run_recoveries(Arc::clone(&fleet), inbox, SmallRng::seed_from_u64(4)));
    assert!(fleet.back_after("a").await <= 50);
}

#[tokio::test(start_paused = true)]
async fn a_park_that_nobody_announced_is_found() {
    let (fleet, _driver) = fleet(0, Faults::default());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let event = Hit { now: fleet.now_ms(), hint: None, kind: Kind::Burst, window_ms: 60_000, gap_ms: 0 };
    fleet.update("a", |record| hit(record, &fleet.policy, &event, 0.5));
    assert!(fleet.back_after("a").await <= 5_500);
}

#[tokio::test(start_paused = true)]
async fn a_block_is_probed_as_often_as_it_demands() {
    let block = Block { initial_backoff: Duration::from_secs(2), required_successes: 3, ..Block::default() };
    let (fleet, _driver) = fleet_of(Policy::new(Some(&block)), 0, Faults::default());
    fleet.hit("a");
    let back = fleet.back_after("a").await;
    assert!((6_000..6_200).contains(&back), "{back}");
    assert_eq!(fleet.probes.lock().expect("no panic while held").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn it_stops_when_its_owner_is_gone() {
    struct Nothing;
    impl Accounts for Nothing {
        type Id = u8;
        fn now_ms(&self) -> u64 {
            BASE
        }
        async fn in_episode(&self) -> Option<Vec<Parked<u8>>> {
            Some(Vec::new())
        }
        async fn claim(&self, _: &u8) -> bool {
            false
        }
        async fn probe(&self, _: &u8) -> Probe {
            Probe::Failed
        }
        async fn apply(&self, _: &u8, _: Probe, _: f64) -> bool {
            false
        }
    }
    let (changes, inbox) = watch::channel(0);
    let driver = tokio::spawn(run_recoveries(Arc::new(Nothing), inbox, SmallRng::seed_from_u64(5)));
    drop(changes);
    driver.await.expect("a clean end");
}
