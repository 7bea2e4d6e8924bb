//! The one place that reads the wall clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970; 0 when the clock stands before that.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
