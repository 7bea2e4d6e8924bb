//! The connection to Valkey: made, watched, thrown away and made again. A server that stopped answering is noticed by
//! counting commands without an answer, since no library does. Decides what is up and what is lost; knows no keys'
//! meaning.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fred::error::{Error, ErrorKind};
use fred::prelude::{
    Builder, Client, ClientLike, EventInterface, Expiration, KeysInterface, LuaInterface, PubsubInterface,
};
use fred::types::{ConnectHandle, Value};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{sleep, timeout};

use super::counts::{Counts, Op};
use super::keys::Keys;
use super::scripts::Script;

/// So many commands without an answer, one after another, end a connection.
const MISSES: u32 = 3;
/// Connecting as a whole takes no longer.
const CONNECT: Duration = Duration::from_secs(3);
/// The first wait before connecting again, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long a connection is given to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);
/// What was written to see whether writing is possible goes by itself.
const TRIAL_LIFE_S: i64 = 10;

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("not connected")]
    Down,
    #[error("no answer in time")]
    TimedOut,
    #[error("connection lost: {0}")]
    Lost(String),
    /// The server answered with an error.
    #[error("{0}")]
    Refused(String),
}

/// Who listens to what others say.
#[derive(Clone)]
pub(crate) struct Ears {
    /// A record changed.
    pub(crate) changes: mpsc::Sender<()>,
    /// What a checker found, or whom a proxy ejected.
    pub(crate) news: mpsc::Sender<String>,
}

impl Ears {
    fn hear(&self, is_news: bool, text: String) {
        if is_news {
            // What a full queue loses is read with the next whole reading.
            let _ = self.news.try_send(text);
        } else {
            // A full queue says already what this would say.
            let _ = self.changes.try_send(());
        }
    }
}

/// One connection, or none.
pub(crate) struct Link {
    builder: Builder,
    place: String,
    keys: Keys,
    holder: String,
    counts: Counts,
    client: Mutex<Option<(u64, Client)>>,
    up: watch::Sender<bool>,
    /// Counts connections, so that an old one's failure does not end a new one.
    made: AtomicU64,
    misses: AtomicU32,
    /// Commands that the server could not serve. What only reads may succeed all the while: it clears nothing.
    refusals: AtomicU32,
    /// The newest connection that broke.
    broke: AtomicU64,
    broken: Notify,
}

impl Link {
    pub(crate) fn new(builder: Builder, place: String, keys: Keys, holder: String) -> Link {
        Link {
            builder,
            place,
            keys,
            holder,
            counts: Counts::default(),
            client: Mutex::new(None),
            up: watch::Sender::new(false),
            made: AtomicU64::new(0),
            misses: AtomicU32::new(0),
            refusals: AtomicU32::new(0),
            broke: AtomicU64::new(0),
            broken: Notify::new(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        *self.up.borrow()
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Tells when the connection is made or lost.
    pub(crate) fn turns(&self) -> watch::Receiver<bool> {
        self.up.subscribe()
    }

    /// Runs a script; it is loaded where the server does not know it. Who runs several at once, in one round trip, counts
    /// it once; failures are counted here.
    pub(crate) async fn run(
        &self,
        op: Op,
        script: &Script,
        keys: Vec<String>,
        args: Vec<String>,
        limit: Duration,
    ) -> Result<Value, Failure> {
        let (made, client) = self.client().clone().ok_or(Failure::Down)?;
        let answer = match timeout(limit, evalsha(&client, script, keys, args)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failure(&error)),
            Err(_) => Err(Failure::TimedOut),
        };
        match &answer {
            Ok(_) => self.misses.store(0, Relaxed),
            Err(failure) => {
                self.counts.failed(op);
                self.judge(failure, made);
            }
        }
        answer
    }

    /// What a failed command says about the connection.
    fn judge(&self, failure: &Failure, made: u64) {
        let ends = match failure {
            Failure::Down => false,
            Failure::Lost(_) => true,
            Failure::TimedOut => self.misses.fetch_add(1, Relaxed) + 1 >= MISSES,
            Failure::Refused(why) => cannot_serve(why) && self.refusals.fetch_add(1, Relaxed) + 1 >= MISSES,
        };
        if ends && self.broke.fetch_max(made, Relaxed) < made {
            tracing::debug!(%failure, "giving up a connection to valkey");
            self.broken.notify_one();
        }
    }

    /// Keeps a connection until it is dropped; what others say goes to `heard`.
    pub(crate) async fn keep(&self, heard: Ears) {
        let mut outage = Outage::new(&self.place);
        loop {
            match timeout(CONNECT, self.connect(heard.clone())).await.unwrap_or(Err(Failure::TimedOut)) {
                Ok((client, task)) => {
                    outage.over();
                    self.serve(client, &task).await;
                    outage.begins("connection lost");
                }
                Err(failure) => outage.begins(&failure.to_string()),
            }
            sleep(outage.wait()).await;
        }
    }

    /// Offers the connection to everybody until it breaks.
    async fn serve(&self, client: Client, task: &ConnectHandle) {
        let made = self.made.fetch_add(1, Relaxed) + 1;
        self.misses.store(0, Relaxed);
        self.refusals.store(0, Relaxed);
        *self.client() = Some((made, client.clone()));
        self.up.send_replace(true);
        while self.broke.load(Relaxed) < made {
            self.broken.notified().await;
        }
        *self.client() = None;
        self.up.send_replace(false);
        close(client, task).await;
    }

    async fn connect(&self, heard: Ears) -> Result<(Client, ConnectHandle), Failure> {
        let client = self.builder.build().map_err(|error| failure(&error))?;
        let task = client.init().await.map_err(|error| failure(&error))?;
        match self.try_out(&client, heard).await {
            Ok(()) => Ok((client, task)),
            Err(failure) => {
                close(client, &task).await;
                Err(failure)
            }
        }
    }

    /// A server that does not let us write, or listen, is of no use.
    async fn try_out(&self, client: &Client, heard: Ears) -> Result<(), Failure> {
        let life = Some(Expiration::EX(TRIAL_LIFE_S));
        let holder = self.holder.as_str();
        client
            .set::<(), _, _>(self.keys.trial(), holder, life, None, false)
            .await
            .map_err(|error| failure(&error))?;
        let own = self.holder.clone();
        let news = self.keys.news();
        client.on_message(move |message| {
            let text = message.value.as_string().unwrap_or_default();
            if text.lines().next() != Some(own.as_str()) {
                heard.hear(*message.channel == *news, text);
            }
            async { Ok(()) }
        });
        client.subscribe(vec![self.keys.changes(), self.keys.news()]).await.map_err(|error| failure(&error))
    }

    fn client(&self) -> MutexGuard<'_, Option<(u64, Client)>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn evalsha(
    client: &Client,
    script: &Script,
    keys: Vec<String>,
    args: Vec<String>,
) -> Result<Value, Error> {
    let sha = script.sha.as_str();
    match client.evalsha::<Value, _, _, _>(sha, keys.clone(), args.clone()).await {
        Err(error) if error.details().starts_with("NOSCRIPT") => {
            client.eval::<Value, _, _, _>(script.source, keys, args).await
        }
        answer => answer,
    }
}

async fn close(client: Client, task: &ConnectHandle) {
    // A server that does not answer does not say goodbye either: then the socket is simply closed.
    let _ = timeout(GOODBYE, client.quit()).await;
    task.abort();
}

fn failure(error: &Error) -> Failure {
    let text = error.details().to_owned();
    match error.kind() {
        ErrorKind::Timeout => Failure::TimedOut,
        ErrorKind::IO
        | ErrorKind::Canceled
        | ErrorKind::Backpressure
        | ErrorKind::Routing
        | ErrorKind::Tls => Failure::Lost(text),
        ErrorKind::Auth => Failure::Refused(format!("{text} (VALKEY_USERNAME, VALKEY_PASS)")),
        ErrorKind::Config
        | ErrorKind::InvalidCommand
        | ErrorKind::InvalidArgument
        | ErrorKind::Url
        | ErrorKind::Protocol
        | ErrorKind::Unknown
        | ErrorKind::Cluster
        | ErrorKind::Parse
        | ErrorKind::Sentinel
        | ErrorKind::NotFound => Failure::Refused(text),
    }
}

/// Whether a refusal is about the server and not about one command.
pub(crate) fn cannot_serve(why: &str) -> bool {
    const WORDS: [&str; 9] = [
        "OOM",
        "READONLY",
        "LOADING",
        "MISCONF",
        "MASTERDOWN",
        "CLUSTERDOWN",
        "NOAUTH",
        "NOPERM",
        "NOREPLICAS",
    ];
    WORDS.iter().any(|word| why.starts_with(word))
}

/// One warning per outage, and waits that double.
struct Outage<'a> {
    place: &'a str,
    told: bool,
    /// There never was a connection.
    never: bool,
    wait: Duration,
    rng: SmallRng,
}

impl<'a> Outage<'a> {
    fn new(place: &'a str) -> Outage<'a> {
        Outage { place, told: false, never: true, wait: WAITS.0, rng: SmallRng::from_os_rng() }
    }

    fn begins(&mut self, why: &str) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let place = self.place;
        if self.never {
            tracing::warn!(
                why,
                place,
                "valkey cannot be used: going on alone and trying again; to do without it set STORE_BACKEND=memory"
            );
        } else {
            tracing::warn!(why, place, "valkey is lost: going on with what is known, and trying again");
        }
    }

    fn over(&mut self) {
        tracing::info!(place = self.place, "connected to valkey");
        (self.told, self.never, self.wait) = (false, false, WAITS.0);
    }

    /// The wait before the next attempt, spread so that replicas do not come all at once.
    fn wait(&mut self) -> Duration {
        let wait = self.wait.mul_f64(self.rng.random_range(0.5..1.0));
        self.wait = (self.wait * 2).min(WAITS.1);
        wait
    }
}
