use std::sync::Mutex;

use rand::SeedableRng;

use super::*;

const SETTINGS: Settings =
    Settings { interval_ms: 30_000, ephemeral_interval_ms: 10_000, concurrency: 4, deadline_ms: 5_000 };

/// Answers after 10 ms, except that target 13 panics and target 17 hangs.
#[derive(Default)]
struct Scripted {
    begun: Mutex<Vec<(u32, Instant)>>,
}

impl Prober for Scripted {
    type Target = u32;

    async fn probe(&self, target: u32) -> Standing {
        self.begun.lock().expect("no panic while held").push((target, Instant::now()));
        tokio::time::sleep(Duration::from_millis(10)).await;
        match target {
            13 => panic!("a probe with a bug"),
            17 => pending().await,
            _ => Standing::Good,
        }
    }
}

impl Scripted {
    fn count(&self, target: u32) -> usize {
        self.begun.lock().expect("no panic while held").iter().filter(|(probed, _)| *probed == target).count()
    }
}

struct Running {
    prober: Arc<Scripted>,
    commands: mpsc::Sender<Command<u32>>,
    first_pass: watch::Receiver<bool>,
    task: tokio::task::JoinHandle<()>,
}

fn start(settings: Settings, targets: &[u32]) -> Running {
    let prober = Arc::new(Scripted::default());
    let (commands, inbox) = mpsc::channel(16);
    let (over, first_pass) = watch::channel(false);
    let rng = SmallRng::seed_from_u64(1);
    let task =
        tokio::spawn(run_checks(Arc::clone(&prober), settings, vec![targets.to_vec()], inbox, over, rng));
    Running { prober, commands, first_pass, task }
}

async fn advance(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_pass_is_quick_and_announced() {
    let mut running = start(SETTINGS, &(100..140).collect::<Vec<_>>());
    let began = Instant::now();
    running.first_pass.wait_for(|over| *over).await.expect("running");
    assert!(began.elapsed() < Duration::from_millis(150), "{:?}", began.elapsed());
}

// Kills: a crash or a hang that takes the others, or its own later probes, with it.
#[tokio::test(start_paused = true)]
async fn probes_that_crash_or_hang_cost_only_themselves() {
    let mut running = start(SETTINGS, &[13, 1]);
    let began = Instant::now();
    running.first_pass.wait_for(|over| *over).await.expect("running");
    assert!(began.elapsed() < Duration::from_millis(100), "a crash is noticed at once");
    running.commands.send(Command::Retarget(vec![vec![13, 17, 1]])).await.expect("running");
    advance(120).await;
    for target in [13, 17, 1] {
        assert!(running.prober.count(target) >= 4, "target {target}: {}", running.prober.count(target));
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspect_is_probed_within_a_second_or_so() {
    let running = start(Settings { interval_ms: 0, ..SETTINGS }, &[1, 2]);
    advance(60).await;
    assert_eq!(running.prober.count(1), 1, "interval 0 leaves the good ones alone");
    running.commands.send(Command::Suspect(1)).await.expect("running");
    advance(2).await;
    assert_eq!((running.prober.count(1), running.prober.count(2)), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_reload_changes_the_targets() {
    let running = start(SETTINGS, &[1]);
    advance(1).await;
    running.commands.send(Command::Retarget(vec![vec![2]])).await.expect("running");
    advance(1).await;
    assert_eq!((running.prober.count(1), running.prober.count(2)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn it_stops_when_its_owner_is_gone() {
    let running = start(SETTINGS, &[17]);
    advance(1).await;
    drop(running.commands);
    running.task.await.expect("a clean end");
}
