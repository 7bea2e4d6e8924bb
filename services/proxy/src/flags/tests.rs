//! The real loop over a source that does what a test says.

use super::*;
use config::{FlagsProvider, Settings};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::Mutex;

/// What one reading comes to.
enum Reading {
    Values(serde_json::Value),
    Away,
    Panics,
    Hangs,
}

use Reading::{Away, Hangs, Panics};

fn says(values: serde_json::Value) -> Reading {
    Reading::Values(values)
}

/// Plays readings one after another; then the last values for ever, until it is closed.
struct Script {
    readings: Arc<Mutex<VecDeque<Reading>>>,
    closed: Arc<std::sync::atomic::AtomicBool>,
}

impl Read for Script {
    async fn read(&mut self, _: &[Box<str>]) -> Result<Values, String> {
        let next = self.readings.lock().expect("no panic under this lock").pop_front();
        match next {
            Some(Reading::Values(values)) => Ok(serde_json::from_value(values).expect("an object")),
            Some(Away) | None => Err("away".into()),
            Some(Panics) => panic!("a bug in reading"),
            Some(Hangs) => std::future::pending().await,
        }
    }

    async fn close(&mut self) {
        self.closed.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// Gates with a ceiling of 10 upstream, one of which is a chain's.
fn gates() -> Gates {
    let settings = Settings {
        headgate_flags_provider: FlagsProvider::Valkey,
        max_upstream_in_flight: Some(10),
        ..Settings::default()
    };
    let gates = Gates::new(&settings);
    gates.of_chain("main");
    gates
}

fn limits(gates: &Gates) -> [u32; 2] {
    [&gates.upstream, &gates.of_chain("main")].map(|gate| gate.load().limit.map_or(0, NonZeroU32::get))
}

/// Plays these readings through the loop; the limits after each (upstream, and upstream.main).
async fn play(readings: Vec<Reading>) -> Vec<[u32; 2]> {
    let (gates, count) = (gates(), readings.len());
    let readings = Arc::new(Mutex::new(VecDeque::from(readings)));
    let closed = Arc::default();
    let script = Script { readings: Arc::clone(&readings), closed: Arc::clone(&closed) };
    let flags = Flags::new(script, "valkey", Duration::from_millis(1));
    let (stop, stopped) = oneshot::channel();
    let mut seen = vec![];
    let watching = async {
        for left in (0..count).rev() {
            // A reading is taken when the next one has begun, or when none is left to begin.
            while readings.lock().expect("no panic under this lock").len() > left {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            seen.push(limits(&gates));
        }
        stop.send(()).expect("it runs");
    };
    tokio::join!(flags.run(&gates, stopped), watching);
    assert!(closed.load(std::sync::atomic::Ordering::SeqCst), "it was not closed");
    seen
}

/// Kills: a cap that loosens because its source is away, or because reading it panicked, and one that stays when its flag
/// is taken away.
#[tokio::test]
async fn what_was_delivered_stays_in_force() {
    let tight = || says(json!({"headgate.concurrency.upstream": 4, "headgate.concurrency.upstream.main": 3}));
    let seen = play(vec![
        tight(),
        Away,
        Panics,
        says(json!({"headgate.concurrency.upstream": 2})),
        Panics,
        says(json!({})),
    ])
    .await;
    assert_eq!(seen, [[4, 3], [4, 3], [4, 3], [2, 0], [2, 0], [10, 0]]);
}

/// Kills: a bad value that closes a gate or keeps the one before it, and a flag that raises a ceiling.
#[tokio::test]
async fn a_bad_value_is_the_ceiling() {
    let main = |value: serde_json::Value| {
        says(json!({"headgate.concurrency.upstream": value, "headgate.concurrency.upstream.main": value}))
    };
    let bad = [json!(0), json!(-1), json!(1.5), json!("4"), json!(null), json!(u64::MAX)];
    for value in bad {
        let seen = play(vec![main(json!(4)), main(value.clone())]).await;
        assert_eq!(seen, [[4, 4], [10, 0]], "{value}");
    }
    assert_eq!(play(vec![main(json!(11))]).await, [[10, 11]]);
}

/// Kills: a start that waits for ever for a source that never answers, and one that gives up after the first failure.
#[tokio::test(start_paused = true)]
async fn the_start_waits_for_values_but_not_for_long() {
    for (readings, expected, most) in [
        (vec![says(json!({"headgate.concurrency.upstream": 4}))], 4, Duration::ZERO),
        (
            vec![Away, Panics, Away, says(json!({"headgate.concurrency.upstream": 4}))],
            4,
            Duration::from_millis(500),
        ),
        (vec![Hangs, Hangs, Hangs], 10, FIRST),
        (vec![], 10, FIRST),
    ] {
        let gates = gates();
        let script = Script { readings: Arc::new(Mutex::new(readings.into())), closed: Arc::default() };
        let began = Instant::now();
        Flags::new(script, "valkey", PERIOD).first(&gates).await;
        assert_eq!(limits(&gates)[0], expected);
        assert!(began.elapsed() <= most + Duration::from_millis(10), "{:?}", began.elapsed());
    }
}

/// Kills: readings that are made up for after some that took long, and ones that come closer than their period.
#[tokio::test(start_paused = true)]
async fn missed_readings_are_skipped() {
    let gates = gates();
    let readings: VecDeque<Reading> = (0..100).map(|count| if count < 5 { Hangs } else { Away }).collect();
    let readings = Arc::new(Mutex::new(readings));
    let script = Script { readings: Arc::clone(&readings), closed: Arc::default() };
    let (stop, stopped) = oneshot::channel();
    let flags = Flags::new(script, "valkey", Duration::from_millis(900));
    let waiting = async {
        sleep(Duration::from_secs(20)).await;
        stop.send(()).expect("it runs");
    };
    tokio::join!(flags.run(&gates, stopped), waiting);
    // Five of two seconds each, then one per period: made up for, they would be 22.
    let read = 100 - readings.lock().expect("no panic under this lock").len();
    assert!((14..=18).contains(&read), "{read} readings in 20 s");
}
