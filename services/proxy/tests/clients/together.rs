//! Several real processes that count on one real Valkey.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use simulator::Behaviour;

use crate::file::{ClientsFile, client, post_as};
use crate::harness::{Builder, GLANCE, Reply, Socket, World, call, right, soon};
use crate::server::Server;
use crate::twins::{Twin, degraded, metric, on, sharing, until};

/// The machine may be busy; what is shown here is what is counted, not how fast.
const PATIENT: (&str, &str) = ("VALKEY_TIMEOUT_MS", "5000");

fn file(limits: &Value) -> ClientsFile {
    ClientsFile::new(&json!({"clients": [client("a", "k", json!({"limits": limits}))]}))
}

fn env(server: &Server, file: &ClientsFile, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = [("CLIENTS_FILE", file.path()), (PATIENT.0, PATIENT.1.to_owned())];
    let own = own.into_iter().chain(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    on(server).into_iter().chain(own.map(|(name, value)| (name.to_owned(), value))).collect()
}

/// A proxy that counts on this server, and its twin.
async fn two(
    server: &Server,
    file: &ClientsFile,
    behaviour: Behaviour,
    more: &[(&str, &str)],
) -> (World, Twin) {
    let env = env(server, file, more);
    let world = env.iter().fold(World::build(), |world: Builder, (name, value)| world.env(name, value));
    let world = world.primary("a", behaviour).start().await;
    let twin = Twin::of(&world, env).await;
    until(async || counts_together(&world.proxy).await && counts_together(&twin.proxy).await).await;
    (world, twin)
}

async fn counts_together(proxy: &crate::harness::Proxy) -> bool {
    metric(proxy, "headgate_client_limits_degraded").await == Some(0.0)
}

fn is_limited(reply: &Reply) -> bool {
    reply.refusal() == (429, -32005, "client_limit".to_owned())
}

fn seconds(reply: &Reply, header: &str) -> u64 {
    reply.header(header).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{header}: {reply:?}"))
}

/// Waits until a minute has begun that lasts for a while.
async fn early_in_a_minute() {
    let seconds =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    until(async || seconds() % 60 < 45).await;
}

/// Kills: a count per process; a Retry-After that is early, or that nobody admits; the memory store that shares.
#[tokio::test]
async fn what_one_process_admits_another_refuses_until_the_time_it_names() {
    let server = Server::start(&[]);
    let file = file(&json!({"rpm": 1}));
    let (world, twin) = two(&server, &file, Behaviour::Healthy, &[]).await;
    early_in_a_minute().await;
    assert_eq!(post_as(&world.client, "k", &call(1)).await.json(), right(1));
    let refused = post_as(&twin.client, "k", &call(2)).await;
    assert!(is_limited(&refused), "{refused:?}");
    let wait = seconds(&refused, "retry-after");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(seconds(&refused, "ratelimit-limit"), 1);
    // Alone, each process has all of it.
    let alone =
        World::build().primary("a", Behaviour::Healthy).env("CLIENTS_FILE", &file.path()).start().await;
    let other = Twin::of(&alone, vec![("CLIENTS_FILE".to_owned(), file.path())]).await;
    assert_eq!(post_as(&alone.client, "k", &call(1)).await.status, 200);
    assert_eq!(post_as(&other.client, "k", &call(2)).await.status, 200);
    // The first request at the time that was named.
    tokio::time::sleep(Duration::from_secs(wait)).await;
    assert_eq!(post_as(&twin.client, "k", &call(3)).await.json(), right(3));
}

/// Kills: a flood of refused requests that costs the store a round trip each.
#[tokio::test]
async fn a_flood_of_refused_requests_costs_no_round_trips() {
    let server = Server::start(&[]);
    let file = file(&json!({"rpd": 5}));
    let (world, twin) = two(&server, &file, Behaviour::Healthy, &[]).await;
    let trips =
        async || metric(&world.proxy, "headgate_store_round_trips_total{op=\"limit\"}").await.unwrap_or(0.0);
    let mut admitted = 0;
    for id in 0..10 {
        let client = if id % 2 == 0 { &world.client } else { &twin.client };
        admitted += u32::from(post_as(client, "k", &call(id)).await.status == 200);
    }
    assert_eq!(admitted, 5);
    let (before, began) = (trips().await, Instant::now());
    for id in 0..500 {
        assert!(is_limited(&post_as(&world.client, "k", &call(id)).await));
    }
    // It looks again once a second, and a batch that is cheaper might pass.
    let most = 2.0 + began.elapsed().as_secs_f64();
    assert!(trips().await - before <= most, "{} for 500 refused requests", trips().await - before);
}

/// Kills: a slot that dies with its process for good, one that is free while its process lives, and one that an old
/// socket has lost.
#[tokio::test]
async fn slots_outlive_no_process_and_last_as_long_as_their_socket() {
    let server = Server::start(&[]);
    let file = file(&json!({"concurrency": 1}));
    let (world, twin) = two(&server, &file, Behaviour::Healthy, &[("LIMITS_SLOT_TTL", "6")]).await;
    let mut socket = Socket::open_at(twin.proxy.address, "/main/k", &[])
        .await
        .unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let old = Instant::now() + Duration::from_secs(8);
    while Instant::now() < old {
        assert!(
            is_limited(&post_as(&world.client, "k", &call(1)).await),
            "a socket older than the TTL counts"
        );
    }
    assert_eq!(socket.ask(call(2)).await, right(2));
    twin.proxy.signal("KILL");
    twin.proxy.ended().await;
    until(async || post_as(&world.client, "k", &call(1)).await.status == 200).await;
}

/// Kills: clients shut out, or let in without a limit, while Valkey is frozen; more than one warning; an outage that does
/// not end; a wait for each request.
#[tokio::test]
async fn a_frozen_valkey_leaves_each_process_its_share() {
    let server = Server::start(&[]);
    let file = file(&json!({"rpd": 20}));
    let (world, twin) = two(&server, &file, Behaviour::Healthy, &[("VALKEY_TIMEOUT_MS", "1000")]).await;
    let presence =
        async |proxy| metric(proxy, "headgate_store_round_trips_total{op=\"presence\"}").await.unwrap_or(0.0);
    let (first, second) = (presence(&world.proxy).await, presence(&twin.proxy).await);
    until(async || presence(&world.proxy).await > first + 1.0 && presence(&twin.proxy).await > second + 1.0)
        .await;
    until(async || counts_together(&world.proxy).await && counts_together(&twin.proxy).await).await;
    // A machine that stood still for a second may have had outages before.
    let alone =
        |proxy: &crate::harness::Proxy| proxy.log().matches("client limits are counted alone").count();
    let before = [alone(&world.proxy), alone(&twin.proxy)];
    server.freeze();
    for ((proxy, client), before) in
        [(&world.proxy, &world.client), (&twin.proxy, &twin.client)].into_iter().zip(before)
    {
        let mut admitted = 0;
        for id in 0..40 {
            admitted += u32::from(post_as(client, "k", &call(id)).await.status == 200);
        }
        assert_eq!(admitted, 10, "half of twenty");
        assert_eq!(metric(proxy, "headgate_client_limits_degraded").await, Some(1.0));
        assert_eq!(alone(proxy), before + 1);
        assert!(degraded(proxy).await || client.get("/ready").await.json()["degraded"] == json!(["store"]));
    }
    server.thaw();
    until(async || counts_together(&world.proxy).await && counts_together(&twin.proxy).await).await;
    assert_eq!(post_as(&world.client, "k", &call(1)).await.status, 200, "nothing of it was charged there");
}

/// Kills: a start that waits for, or is ended by, a server that accepts and never answers; `deny` that admits.
#[tokio::test]
async fn a_server_that_never_answers_denies_where_that_was_asked_for() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("bound").port().to_string();
    let limited = client("a", "k", json!({"limits": {"rpd": 1000}}));
    let file = ClientsFile::new(&json!({"clients": [limited, client("b", "free", json!({}))]}));
    let world = World::build()
        .primary("a", Behaviour::Healthy)
        .env("VALKEY_HOST", "127.0.0.1")
        .env("VALKEY_PORT", &port)
        .env("STANDALONE_HEALTH_CHECKS", "false")
        .env("CLIENTS_FILE", &file.path())
        .env("LIMITS_DEGRADED_GRACE", "0")
        .env("LIMITS_DEGRADED_MODE", "deny")
        .start()
        .await;
    let refused = post_as(&world.client, "k", &call(1)).await;
    assert!(is_limited(&refused) && seconds(&refused, "retry-after") == 1, "{refused:?}");
    assert_eq!(post_as(&world.client, "free", &call(2)).await.json(), right(2), "nothing is limited here");
}

/// Kills: leases of a killed process that are given out again, a limit of each process, a limit nearly unused.
#[tokio::test]
async fn a_killed_process_with_a_block_leads_to_no_more() {
    let server = Server::start(&[]);
    let file = file(&json!({"rpd": 400}));
    let (world, twin) = two(&server, &file, Behaviour::Healthy, &[]).await;
    let volley = async |client: &crate::harness::Client, count: u64| {
        let mut admitted = 0;
        for id in 0..count {
            admitted += u64::from(post_as(client, "k", &call(id)).await.status == 200);
        }
        admitted
    };
    let first = volley(&twin.client, 60).await;
    twin.proxy.signal("KILL");
    twin.proxy.ended().await;
    let second = volley(&world.client, 500).await;
    assert_eq!(first, 60);
    assert!((380..=400).contains(&(first + second)), "{first} and {second}");
}

/// Five processes want five times what there is. Kills: a limit of each process; tokens that nobody gets.
#[tokio::test]
async fn many_processes_keep_one_leased_limit() {
    let server = Server::start(&[]);
    let file = file(&json!({"rpd": 1000}));
    let (world, twin) = two(&server, &file, Behaviour::Healthy, &[]).await;
    let mut twins = vec![twin];
    for _ in 0..3 {
        twins.push(Twin::of(&world, env(&server, &file, &[])).await);
    }
    for twin in &twins {
        until(async || counts_together(&twin.proxy).await).await;
    }
    let clients: Vec<_> = twins.iter().map(|twin| &twin.client).chain([&world.client]).collect();
    let admitted = AtomicU64::new(0);
    let asking = clients.iter().map(|client| async {
        // What one process has left another one gets a moment later. Then there is no more.
        let mut refused = 0;
        while refused < 20 {
            match post_as(client, "k", &call(1)).await.status {
                200 => _ = admitted.fetch_add(1, Relaxed),
                _ => {
                    refused += u32::from(admitted.load(Relaxed) >= 990);
                    tokio::time::sleep(GLANCE * 20).await;
                }
            }
        }
    });
    soon(futures_util::future::join_all(asking)).await;
    let admitted = admitted.into_inner();
    assert!((990..=1000).contains(&admitted), "{admitted}");
    let mut trips = 0.0;
    for proxy in twins.iter().map(|twin| &twin.proxy).chain([&world.proxy]) {
        trips += metric(proxy, "headgate_store_round_trips_total{op=\"limit\"}").await.unwrap_or(0.0);
    }
    assert!(trips <= 250.0, "{trips} round trips for 1100 requests");
}

/// Kills: a shared key that is in the keys of Valkey in plain text, keys that do not end, one client in two slots.
#[tokio::test]
async fn what_is_stored_is_named_by_a_hash_and_ends() {
    let server = Server::start(&[]);
    let id = "a{b}:c ".repeat(1_500);
    let limits = json!({"limits": {"rpd": 50, "concurrency": 5}});
    let file = ClientsFile::new(&json!({"clients": [client(&id, "hunter2-key", limits)]}));
    let world = sharing(&server)
        .env("CLIENTS_FILE", &file.path())
        .env(PATIENT.0, PATIENT.1)
        .primary("a", Behaviour::Hang)
        .start()
        .await;
    until(async || counts_together(&world.proxy).await).await;
    let hanging = {
        let client = world.client.clone();
        tokio::spawn(async move { post_as(&client, "hunter2-key", &call(1)).await })
    };
    soon(world["a"].in_flight(1)).await;
    let all = server.ask(&["KEYS", "*"]);
    let ours: Vec<&str> = all.lines().filter(|line| line.contains(":{c.")).collect();
    let mut tags: Vec<&str> = ours.iter().filter_map(|key| key.split(['{', '}']).nth(1)).collect();
    tags.dedup();
    assert_eq!((ours.len(), tags.len()), (2, 1), "{all}");
    assert!(!all.contains("hunter2") && !all.contains("a{b}"), "{all}");
    for key in ours {
        let life: i64 = server.ask(&["PTTL", key]).trim().trim_start_matches(':').parse().expect("a number");
        assert!(life > 0, "{key} never ends");
    }
    hanging.abort();
}
