//! One replica is cut off from the store while another reaches it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::{Cost, Limit, Take, Unit};
use recovery::Policy;
use store::Account;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::replica::{Replica, now, target, until};
use crate::server::Server;

const WINDOW: u64 = 1_000;
const LIMIT: u32 = 100;

/// A way to the server that can be cut.
struct Way {
    port: u16,
    task: tokio::task::JoinHandle<()>,
}

impl Way {
    async fn to(server: u16) -> Way {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let task = tokio::spawn(async move {
            let mut passing = JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                passing.spawn(async move {
                    if let Ok(mut to) = TcpStream::connect(("127.0.0.1", server)).await {
                        // Either side may end it.
                        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                    }
                });
            }
        });
        Way { port, task }
    }

    /// Nothing passes from now on.
    fn cut(&self) {
        self.task.abort();
    }
}

fn account(replica: &Replica) -> Arc<Account> {
    let limit = Limit { amount: LIMIT, unit: Unit::Requests, window_ms: WINDOW, smooth: false };
    replica.memory.account("a", "", |before| {
        let gate = replica.memory.gate(vec![limit], None, None);
        Account::new("a", Policy::default(), gate, before, now())
    })
}

/// Spends all it can for so long; how many in each window.
async fn greedy(replica: &Replica, account: &Account, length: Duration) -> BTreeMap<u64, u32> {
    let (end, mut spent) = (Instant::now() + length, BTreeMap::new());
    while Instant::now() < end {
        match account.gate.try_take(Cost::requests(1), now()) {
            Take::Granted(ticket) => {
                let at = now();
                if account.gate.sent(ticket, at) {
                    *spent.entry(at / WINDOW).or_insert(0) += 1;
                }
            }
            Take::Doubt if replica.is_up() => {
                replica.valkey.as_ref().expect("it shares").wait_for_tokens().await;
            }
            Take::Doubt | Take::Dry { .. } => tokio::time::sleep(Duration::from_millis(2)).await,
            Take::TooBig { .. } => panic!("one is never too big"),
        }
    }
    spent
}

/// Kills: a share that is spent by the one that was cut off and granted to the other one as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_cut_off_spends_no_more_than_is_kept_back_for_it() {
    let server = Server::start(&[]);
    let way = Way::to(server.port).await;
    let (a, b) = (Replica::at(&target(way.port, "headgate")), Replica::connected(server.port).await);
    until("connected", || a.is_up()).await;
    let (first, second) = (account(&a), account(&b));
    let length = Duration::from_secs(12);
    let cutting = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        way.cut();
    };
    let (one, other, ()) = tokio::join!(greedy(&a, &first, length), greedy(&b, &second, length), cutting);
    let mut together = one.clone();
    other.iter().for_each(|(window, n)| *together.entry(*window).or_insert(0) += n);
    assert!(together.values().all(|n| *n <= LIMIT), "{one:?} and {other:?}");
    // Three seconds after the cut it spends its share again; the last windows lie well past that.
    let ended = now() / WINDOW;
    assert!(one.range(ended - 4..).any(|(_, n)| *n > 0), "cut off it has its share: {one:?}");
    assert!(!a.is_up());
}
