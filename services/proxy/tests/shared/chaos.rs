//! Everything is restarted, at random, under load: no request is lost while one endpoint is healthy.

use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use simulator::{Behaviour, Limit};

use crate::harness::{Proxy, World, soaking};
use crate::server::Server;
use crate::twins::{Twin, beside_checker};

/// How many proxies there are; the client goes around whoever is being restarted, as a load balancer does.
const PROXIES: usize = 3;
/// Requests between two events.
const STRIDE: u64 = 60;

struct Chaos {
    server: Server,
    world: World,
    twins: Vec<Twin>,
    rng: SmallRng,
    asked: u64,
}

impl Chaos {
    async fn new(seed: u64) -> Chaos {
        let server = Server::start(&[]);
        let env = beside_checker(&server);
        let build = env.iter().fold(World::build(), |world, (name, value)| world.env(name, value));
        let world = build
            .checker()
            .primary("steady", Behaviour::Healthy)
            .primary("moody", Behaviour::Healthy)
            .primary("limited", Behaviour::limited(Limit::Fixed { n: 20, window: Duration::from_secs(1) }))
            .start()
            .await;
        let mut twins = Vec::new();
        for _ in 0..PROXIES {
            twins.push(Twin::of(&world, env.clone()).await);
        }
        Chaos { server, world, twins, rng: SmallRng::seed_from_u64(seed), asked: 0 }
    }

    /// One event, with requests before and after it at every proxy that is there.
    async fn step(&mut self) {
        let event = self.rng.random_range(0..8);
        eprintln!("after {} requests: {event}", self.asked);
        match event {
            0 => self.server.restart(),
            1 => self.server.freeze(),
            2 => self.server.thaw(),
            3 => self.restart_checker().await,
            4 => self.restart_proxy("TERM").await,
            5 => self.restart_proxy("KILL").await,
            _ => self.change_mood().await,
        }
        self.ask().await;
    }

    async fn ask(&mut self) {
        let from = self.asked;
        self.asked += STRIDE * self.twins.len() as u64;
        let volleys = (0u64..).zip(&self.twins).map(|(index, twin)| {
            let first = from + index * STRIDE;
            twin.client.volley(first..first + STRIDE)
        });
        futures_util::future::join_all(volleys).await;
    }

    async fn restart_checker(&mut self) {
        if let Some(checker) = self.world.checker.take() {
            checker.signal("KILL");
            checker.ended().await;
        }
        let mut env = beside_checker(&self.server);
        env.push(("CONFIG_FILE".to_owned(), self.world.proxy.file().display().to_string()));
        let dir = self.world.proxy.dir.join(format!("checker-{}", self.asked));
        std::fs::create_dir_all(&dir).expect("a directory");
        self.world.checker = Some(Proxy::checker(dir, &env).await);
    }

    /// Takes one proxy out while the others are asked, and puts a new one in its place.
    async fn restart_proxy(&mut self, signal: &str) {
        let index = self.rng.random_range(0..self.twins.len());
        let twin = self.twins.swap_remove(index);
        twin.proxy.signal(signal);
        self.ask().await;
        twin.proxy.ended().await;
        let twin = Twin::of(&self.world, beside_checker(&self.server)).await;
        self.twins.push(twin);
    }

    async fn change_mood(&mut self) {
        let mood = match self.rng.random_range(0..6) {
            0 => Behaviour::status(500),
            1 => Behaviour::rate_limited(Some(1)),
            2 => Behaviour::ResetBeforeAnswer,
            3 => Behaviour::CloseConnection,
            4 => Behaviour::embedded_limit(),
            _ => Behaviour::Healthy,
        };
        self.world["moody"].set(mood).await.expect("behaves");
    }
}

/// How long: `HEADGATE_CHAOS_SECONDS`, else a minute of a soak or a few seconds.
fn length() -> Duration {
    let given = std::env::var("HEADGATE_CHAOS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(if soaking() { 60 } else { 8 }))
}

/// Kills: any wait for the store, any state that a restart loses or strands, any error that is passed on while somebody
/// can serve. `HEADGATE_CHAOS_SEED` repeats a run's events.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_while_everything_is_restarted() {
    let given = std::env::var("HEADGATE_CHAOS_SEED").ok().and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(rand::random);
    eprintln!("HEADGATE_CHAOS_SEED={seed}");
    let mut chaos = Chaos::new(seed).await;
    let (end, mut events) = (Instant::now() + length(), 0);
    while Instant::now() < end {
        chaos.step().await;
        events += 1;
    }
    eprintln!("{events} events, {} requests", chaos.asked);
}
