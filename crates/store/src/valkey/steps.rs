//! Whether the wall clock made a step. The bounds of leases are measured by it, and a step moves them all.

use std::time::{Duration, Instant};

use crate::Clock;

/// A wall clock that moved against the monotonic one by more than this has made a step.
const STEP_MS: u64 = 20;
/// Reading both clocks takes no longer, unless the thread was interrupted.
const READ: Duration = Duration::from_millis(5);

/// The wall clock beside the monotonic one.
pub(crate) struct StepWatch {
    clock: Clock,
    wall: u64,
    monotonic: Instant,
}

impl StepWatch {
    pub(crate) fn new(clock: Clock) -> StepWatch {
        StepWatch { clock, wall: clock(), monotonic: Instant::now() }
    }

    /// Whether the clock made a step since this was last asked.
    pub(crate) fn stepped(&mut self) -> bool {
        let (began, wall, monotonic) = (Instant::now(), (self.clock)(), Instant::now());
        if monotonic - began > READ {
            // Interrupted between the two: nothing can be told.
            return false;
        }
        let passed = u64::try_from((monotonic - self.monotonic).as_millis()).unwrap_or(u64::MAX);
        let stepped = wall.abs_diff(self.wall.saturating_add(passed)) > STEP_MS;
        (self.wall, self.monotonic) = (wall, monotonic);
        if stepped {
            tracing::warn!("the wall clock made a step: leased tokens are given up");
        }
        stepped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::{SystemTime, UNIX_EPOCH};

    static AHEAD_MS: AtomicU64 = AtomicU64::new(0);

    fn clock() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        since.as_millis() as u64 + AHEAD_MS.load(Relaxed)
    }

    /// Asks until the thread was not interrupted; the answer is the same then.
    fn stepped(watch: &mut StepWatch) -> bool {
        (0..100).any(|_| watch.stepped())
    }

    #[test]
    fn a_step_is_noticed_once_and_time_that_passes_is_none() {
        let mut watch = StepWatch::new(clock);
        assert!(!watch.stepped());
        AHEAD_MS.store(500, Relaxed);
        assert!(stepped(&mut watch), "forwards");
        assert!(!watch.stepped());
        AHEAD_MS.store(0, Relaxed);
        assert!(stepped(&mut watch), "backwards");
    }
}
