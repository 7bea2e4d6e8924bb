//! Starts the real binary in front of scripted providers and asks it things.

mod client;
mod command;
mod proxy;
mod socket;
mod world;

pub(crate) use client::{Client, Reply, call, calls, right};
pub(crate) use command::{run, run_binary};
pub(crate) use proxy::{Proxy, checker_binary};
pub(crate) use socket::Socket;
pub(crate) use world::{Builder, World, entry};

use std::time::Duration;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often something is looked at that cannot be waited for.
pub(crate) const GLANCE: Duration = Duration::from_millis(5);

/// Whether tests run at full length.
pub(crate) fn soaking() -> bool {
    std::env::var("HEADGATE_SOAK").is_ok_and(|value| value == "1")
}

/// Waits for what must come. A test that hangs tells nothing.
pub(crate) async fn soon<T>(awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, awaited).await.expect("comes within a minute")
}
