//! The deadline of an exchange with an endpoint, unless this process itself stood still past it: what came meanwhile lies
//! unread then, and nobody may be blamed before it is looked at. Decides nothing about what comes.

use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// A deadline that is noticed later than this was missed because nothing of ours ran.
const LATE: Duration = Duration::from_millis(100);
/// What came meanwhile is read, and answered to, within this.
const GRACE: Duration = Duration::from_millis(250);

/// Waits until `limit`; nothing if it has passed.
pub async fn by<T>(limit: std::time::Instant, awaited: impl Future<Output = T>) -> Option<T> {
    let (mut awaited, limit) = (pin!(awaited), Instant::from_std(limit));
    match timeout_at(limit, awaited.as_mut()).await {
        Ok(value) => Some(value),
        Err(_) if limit.elapsed() < LATE => None,
        Err(_) => timeout(GRACE, awaited).await.ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use tokio::time::{advance, sleep};

    const LIMIT: Duration = Duration::from_secs(5);

    /// What is got of an answer that takes so long, by a process that stands still for a while at its beginning.
    async fn check(stands_still: Duration, takes: Duration, expected: Option<&str>) {
        let (tell, told) = oneshot::channel();
        let limit = Instant::now() + LIMIT;
        let answering = async {
            advance(stands_still).await;
            sleep(takes.saturating_sub(stands_still)).await;
            // It goes through other hands, as what is read of a connection does.
            tokio::spawn(async move { tell.send("answer") });
        };
        let (got, _) = tokio::join!(by(limit.into_std(), told), answering);
        assert_eq!(got.map(|told| told.expect("told")), expected, "{stands_still:?}, {takes:?}");
    }

    // Kills: giving up who answered while nothing of ours ran; waiting past the deadline for who did not; waiting for ever.
    #[tokio::test(start_paused = true)]
    async fn only_who_stood_still_looks_again() {
        let ms = Duration::from_millis;
        check(ms(0), ms(4_900), Some("answer")).await;
        check(ms(0), ms(5_050), None).await;
        check(ms(5_050), ms(4_000), None).await;
        check(ms(8_000), ms(4_000), Some("answer")).await;
        check(ms(8_000), ms(8_200), Some("answer")).await;
        check(ms(8_000), ms(8_300), None).await;
    }
}
