//! More proxies in front of the same providers.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::harness::{Builder, Client, Proxy, World, soon};
use crate::server::Server;

const GLANCE: Duration = Duration::from_millis(5);

/// The settings that name this Valkey; one of the proxies checks health.
pub(crate) fn on(server: &Server) -> Vec<(String, String)> {
    let port = server.port.to_string();
    let host = ("VALKEY_HOST", "127.0.0.1");
    let elected = ("STANDALONE_HEALTH_CHECKS", "false");
    [host, ("VALKEY_PORT", port.as_str()), elected, ("LOG_LEVEL", "info")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// A world whose proxy shares by this Valkey.
pub(crate) fn sharing(server: &Server) -> Builder {
    on(server).iter().fold(World::build(), |world, (name, value)| world.env(name, value))
}

/// The settings that name this Valkey, for proxies beside a separate checker that probes every second.
pub(crate) fn beside_checker(server: &Server) -> Vec<(String, String)> {
    let mut env = on(server);
    env.retain(|(name, _)| name != "STANDALONE_HEALTH_CHECKS");
    let often = ["HEALTH_CHECK_INTERVAL", "EPHEMERAL_CHECKS_INTERVAL"];
    env.extend(often.map(|name| (name.to_owned(), "1".to_owned())));
    env
}

/// Another proxy with the endpoints of `world`.
pub(crate) struct Twin {
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
}

impl Twin {
    pub(crate) async fn of(world: &World, mut env: Vec<(String, String)>) -> Twin {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("twin-{}-{number}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&dir).expect("a directory");
        let file = world.proxy.dir.join("endpoints.json");
        let own = [("HEALTH_CHECK_INTERVAL", "0"), ("WORKER_THREADS", "1")];
        env.splice(0..0, own.map(|(name, value)| (name.to_owned(), value.to_owned())));
        env.push(("CONFIG_FILE".to_owned(), file.display().to_string()));
        let proxy = Proxy::start(dir, &[], &env).await;
        let client = Client::new(proxy.address);
        until(async || client.get("/ready").await.status == 200).await;
        Twin { proxy, client }
    }
}

/// The value of the first metric whose line begins so; nothing if there is none.
pub(crate) async fn metric(proxy: &Proxy, line: &str) -> Option<f64> {
    let text = Client::new(proxy.metrics).get("/metrics").await;
    let found = text.text().lines().find(|candidate| candidate.starts_with(line))?;
    found.rsplit(' ').next()?.parse().ok()
}

/// Whether this proxy keeps the endpoint out of selection.
pub(crate) async fn parked(proxy: &Proxy, endpoint: &str) -> bool {
    let line = format!("headgate_endpoint_parked{{chain=\"main\",endpoint=\"{endpoint}\"}}");
    metric(proxy, &line).await == Some(1.0)
}

pub(crate) async fn degraded(proxy: &Proxy) -> bool {
    metric(proxy, "headgate_store_degraded").await == Some(1.0)
}

/// Waits for what must come.
pub(crate) async fn until(happened: impl AsyncFn() -> bool) {
    soon(async {
        while !happened().await {
            tokio::time::sleep(GLANCE).await;
        }
    })
    .await;
}

/// The running hour: windows of an hour may turn in the middle of a test.
pub(crate) fn hour() -> usize {
    let hours = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 3600;
    usize::try_from(hours).expect("small")
}
