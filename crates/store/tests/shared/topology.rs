//! More than one server: a cluster, and a pair with a sentinel.

use std::path::PathBuf;

use crate::replica::{HOUR, Replica, burst, now, target, until};
use crate::server::{Server, free_port};

/// The slots of a cluster.
const SLOTS: u32 = 16_384;

/// A file of a server's own, gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(std::env::temp_dir().join(format!("headgate-{}-{name}-{}", std::process::id(), free_port())))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It may not have been written.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Three nodes that share the slots.
async fn cluster() -> Vec<(Server, u16, Scratch)> {
    let node = |_| {
        let (bus, file) = (free_port(), Scratch::new("nodes"));
        let port = bus.to_string();
        let args =
            ["--cluster-enabled", "yes", "--cluster-port", &port, "--cluster-config-file", file.path()];
        (Server::start(&args), bus, file)
    };
    let nodes: Vec<(Server, u16, Scratch)> = (0..3).map(node).collect();
    for (i, (node, ..)) in (0u32..).zip(&nodes) {
        let (from, to) = (SLOTS * i / 3, SLOTS * (i + 1) / 3 - 1);
        node.ask(&["CLUSTER", "ADDSLOTSRANGE", &from.to_string(), &to.to_string()]);
        let (first, bus, _) = &nodes[0];
        node.ask(&["CLUSTER", "MEET", "127.0.0.1", &first.port.to_string(), &bus.to_string()]);
    }
    let whole = |node: &Server| node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    until("a whole cluster", || nodes.iter().all(|(node, ..)| whole(node))).await;
    nodes
}

/// Kills: scripts whose keys lie in several slots, and words that reach only the node they are said to.
#[tokio::test]
async fn a_cluster_serves_as_one_server_does() {
    let nodes = cluster().await;
    let replica = || {
        let mut settings = target(0, "headgate");
        settings.url = Some(format!("valkey-cluster://127.0.0.1:{}", nodes[0].0.port));
        Replica::at(&settings)
    };
    let (a, b) = (replica(), replica());
    until("connected", || a.is_up() && b.is_up()).await;
    let (first, second) = (a.account(&[200]), b.account(&[200]));
    let before = now() / HOUR;
    let (one, other) = tokio::join!(a.spend(&first, 1000), b.spend(&second, 1000));
    let rest = a.spend(&first, 1000).await + b.spend(&second, 1000).await;
    assert!(one + other + rest == 200 || now() / HOUR > before, "{one}, {other} and {rest}");
    // Addresses lie all over the slots.
    for i in 0..20 {
        let place = format!("host-{i}:443");
        let (mine, theirs) = (a.memory.address(&place), b.memory.address(&place));
        mine.hit(&burst(now()), 0.5);
        a.valkey.as_ref().unwrap().stir();
        until("parked for the other", || theirs.record().in_episode()).await;
    }
}

/// A server, its follower, and a sentinel that puts the one in the other's place.
pub(crate) struct Pair {
    pub(crate) primary: Server,
    pub(crate) follower: Server,
    pub(crate) sentinel: Server,
    _config: Scratch,
}

impl Pair {
    /// Both are in step. The sentinel acts when the primary was silent for so long.
    pub(crate) async fn start(silent_ms: u64) -> Pair {
        let primary = Server::start(&[]);
        let to = format!("127.0.0.1 {}", primary.port);
        let follower = Server::start(&["--replicaof", &to]);
        let config = Scratch::new("sentinel");
        let lines = [
            format!("sentinel monitor main 127.0.0.1 {} 1", primary.port),
            format!("sentinel down-after-milliseconds main {silent_ms}"),
            "sentinel failover-timeout main 3000".to_owned(),
        ];
        std::fs::write(&config.0, lines.join("\n")).expect("a file");
        until("in step", || follower.ask(&["INFO", "replication"]).contains("master_link_status:up")).await;
        let sentinel = Server::start_with(Some(config.path()), &["--sentinel"]);
        until("both known to the sentinel", || {
            sentinel.ask(&["SENTINEL", "REPLICAS", "main"]).contains(&follower.port.to_string())
        })
        .await;
        Pair { primary, follower, sentinel, _config: config }
    }

    /// Settings that name the sentinel.
    pub(crate) fn target(&self) -> store::Target {
        let mut settings = target(0, "headgate");
        let port = self.sentinel.port;
        settings.url = Some(format!("valkey-sentinel://127.0.0.1:{port}?sentinelServiceName=main"));
        settings
    }
}

/// Kills: a client that stays with the old primary.
#[tokio::test]
async fn a_failover_is_followed() {
    // Long enough for a busy machine not to be taken for a dead primary.
    let mut pair = Pair::start(3_000).await;
    let replica = Replica::at(&pair.target());
    until("connected", || replica.is_up()).await;
    let account = replica.account(&[]);
    let far = recovery::Hit { hint: Some(std::time::Duration::from_secs(3000)), ..burst(now()) };
    account.park.hit(&far, 0.5);
    pair.primary.kill();
    until("noticed", || !replica.is_up()).await;
    until("found where it is now", || replica.is_up()).await;
    until("told there", || pair.follower.ask(&["GET", "headgate:v1:{a.a}:park"]).contains(";hinted")).await;
}
