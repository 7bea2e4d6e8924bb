//! Many clients that follow heads. Says `subscribed` when all are, waits for a line, then takes so many heads and prints how
//! long each was on its way to the last client. Waits for the end of its input before it closes anything.

use std::collections::BTreeMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use memchr::memmem;
use tokio::sync::Barrier;
use tokio::task::{LocalSet, spawn_local};

use crate::client::Client;
use crate::now_ns;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;
/// How many clients of a thread are opened at a time.
const AT_ONCE: usize = 32;

#[derive(Args, Clone)]
pub(crate) struct Options {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long, default_value = "/main")]
    path: String,
    #[arg(long, default_value_t = 1000)]
    clients: usize,
    /// Threads that they are spread over.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Heads to take.
    #[arg(long, default_value_t = 20)]
    heads: usize,
}

/// What a thread saw of a head: how many of its clients got it, and when the last one did, in nanoseconds since it was sent.
#[derive(Clone, Copy, Default)]
struct Seen {
    clients: usize,
    last: u64,
}

type Heads = BTreeMap<u64, Seen>;

/// Who has subscribed, and when counting began: heads that were sent before do not count.
#[derive(Default)]
struct Start {
    subscribed: AtomicU64,
    since: AtomicU64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let start = Arc::new(Start::default());
    let threads: Vec<_> = (0..options.threads)
        .map(|lane| {
            let (options, start) = (options.clone(), Arc::clone(&start));
            thread::spawn(move || run_lane(&options, lane, &start))
        })
        .collect();
    let until = Instant::now() + Duration::from_secs(120);
    while start.subscribed.load(SeqCst) < options.clients as u64 {
        ensure!(
            Instant::now() < until && !threads.iter().any(|lane| lane.is_finished()),
            "not all could subscribe"
        );
        thread::sleep(Duration::from_millis(10));
    }
    say("subscribed")?;
    stdin().lock().read_line(&mut String::new())?;
    start.since.store(now_ns(), SeqCst);
    let mut all = Heads::new();
    for lane in threads {
        for (number, seen) in lane.join().expect("a lane does not panic")? {
            let head = all.entry(number).or_default();
            head.clients += seen.clients;
            head.last = head.last.max(seen.last);
        }
    }
    print_outcome(options, &all)?;
    std::io::copy(&mut stdin().lock(), &mut std::io::sink())?;
    Ok(())
}

/// A share of the clients, until each has its heads. They stay open until the process ends.
fn run_lane(options: &Options, lane: usize, start: &Arc<Start>) -> anyhow::Result<Heads> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    let heads = local.block_on(&runtime, async {
        let mut waiting = Vec::new();
        let share: Vec<usize> = (lane..options.clients).step_by(options.threads).collect();
        for some in share.chunks(AT_ONCE) {
            let ready = Arc::new(Barrier::new(some.len() + 1));
            for _ in some {
                let (options, start, ready) = (options.clone(), Arc::clone(start), Arc::clone(&ready));
                waiting.push(spawn_local(async move { follow(&options, &start, &ready).await }));
            }
            ready.wait().await;
        }
        let mut heads = Heads::new();
        let mut open = Vec::new();
        for client in waiting {
            let (client, seen) = client.await??;
            open.push(client);
            for (number, took) in seen {
                let head = heads.entry(number).or_default();
                head.clients += 1;
                head.last = head.last.max(took);
            }
        }
        std::mem::forget(open);
        Ok::<_, anyhow::Error>(heads)
    });
    std::mem::forget((runtime, local));
    heads
}

/// One client: what it got, and how long each head was on its way.
async fn follow(
    options: &Options,
    start: &Start,
    ready: &Barrier,
) -> anyhow::Result<(Client, Vec<(u64, u64)>)> {
    let opened = subscribe(options).await;
    ready.wait().await;
    let mut client = opened?;
    start.subscribed.fetch_add(1, SeqCst);
    let mut seen = Vec::with_capacity(options.heads);
    while seen.len() < options.heads {
        let (number, sent) = client.hear(read).await?.context("a message that is no head")?;
        let since = start.since.load(SeqCst);
        if since > 0 && sent > since {
            seen.push((number, now_ns().saturating_sub(sent)));
        }
    }
    Ok((client, seen))
}

async fn subscribe(options: &Options) -> anyhow::Result<Client> {
    let mut client = Client::open(options.address, &options.path).await?;
    client.send(CALL).await?;
    let subscribed = client.hear(|text| memmem::find(text, br#""result":"0x"#).is_some()).await?;
    ensure!(subscribed, "no subscription");
    Ok(client)
}

/// The number of a head, and when it was sent.
fn read(text: &[u8]) -> Option<(u64, u64)> {
    let after = |name: &[u8]| {
        let start = memmem::find(text, name)? + name.len();
        let rest = std::str::from_utf8(text.get(start..)?).ok()?;
        Some(rest.split(['"', ',', '}']).next()?.to_owned())
    };
    let number = u64::from_str_radix(&after(br#""number":"0x"#)?, 16).ok()?;
    Some((number, after(br#""sent":"#)?.parse().ok()?))
}

fn print_outcome(options: &Options, all: &Heads) -> anyhow::Result<()> {
    let missed = all.values().filter(|seen| seen.clients != options.clients).count();
    let mut last: Vec<u64> = all.values().map(|seen| seen.last / 1000).collect();
    last.sort_unstable();
    let at = |share: f64| last.get(((last.len() as f64 - 1.0) * share) as usize).copied();
    let report = serde_json::json!({
        "clients": options.clients,
        "heads": all.len(),
        "messages": all.values().map(|seen| seen.clients).sum::<usize>(),
        // Heads that did not reach everybody, each once.
        "incomplete": missed,
        "last_client_us": {"p50": at(0.5), "max": at(1.0)},
    });
    say(&report.to_string())
}

fn say(line: &str) -> anyhow::Result<()> {
    println!("{line}");
    stdout().flush().context("saying it")
}
