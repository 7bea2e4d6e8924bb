//! The providers behind `docker compose --profile demo`: each has something for a dashboard to show. What they do over
//! time is decided here; how each behaves is the other modules'.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::answer::Answer;
use crate::behaviour::Behaviour;
use crate::chain::Chain;
use crate::limit::Limit;
use crate::provider::{Provider, Script};

/// Name and behaviour at the start; the port of each is one above the one before.
fn cast() -> [(&'static str, Behaviour); 7] {
    let per = |n, seconds| Limit::Rolling { n, window: Duration::from_secs(seconds) };
    let spent = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"monthly quota exceeded"}}"#;
    [
        ("steady", Behaviour::limited(per(30, 1))),
        ("hidden", Behaviour::limited(per(120, 10))),
        ("flaky", Behaviour::fraction(20, Behaviour::status(500))),
        ("moody", Behaviour::Healthy),
        ("slow", Behaviour::delayed(Duration::from_millis(250), Behaviour::Healthy)),
        ("spent", Behaviour::Answer(Answer::json(429, spent))),
        ("shared", Behaviour::limited(per(40, 2))),
    ]
}

/// How long `moody` serves, and how long it is out.
const GOOD_MOOD: Duration = Duration::from_secs(50);
const BAD_MOOD: Duration = Duration::from_secs(20);

/// The running providers.
#[derive(Debug)]
pub struct Stage {
    providers: Vec<(&'static str, Provider)>,
}

impl Stage {
    /// Starts them on `first` and the ports after it; on any ports if that is port 0.
    ///
    /// # Errors
    /// When a port is not to be had.
    pub async fn open(first: SocketAddr) -> io::Result<Self> {
        let chain = Chain::ticking(1337, Duration::from_secs(2));
        let mut providers = Vec::new();
        for (offset, (name, behaviour)) in (0u16..).zip(cast()) {
            let mut address = first;
            address.set_port(if first.port() == 0 { 0 } else { first.port() + offset });
            let script = Script::new(&chain).behaving(behaviour).remembering(0);
            providers.push((name, Provider::start_at(script, address).await?));
        }
        Ok(Self { providers })
    }

    /// Each with its name.
    #[must_use]
    pub fn providers(&self) -> &[(&'static str, Provider)] {
        &self.providers
    }

    /// Lets `moody` come and go, for ever.
    ///
    /// # Errors
    /// When its port cannot be listened on again.
    pub async fn play(&self) -> io::Result<()> {
        self.change_moods(GOOD_MOOD, BAD_MOOD).await
    }

    async fn change_moods(&self, good: Duration, bad: Duration) -> io::Result<()> {
        let moody = self.providers.iter().filter(|(name, _)| *name == "moody");
        let moody: Vec<&Provider> = moody.map(|(_, provider)| provider).collect();
        loop {
            for (mood, behaviour) in [(good, Behaviour::Healthy), (bad, Behaviour::RefuseConnections)] {
                for provider in &moody {
                    provider.set(behaviour.clone()).await?;
                }
                tokio::time::sleep(mood).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Kills: a provider that the demo's endpoints file does not name, or names on another's port.
    #[tokio::test]
    async fn the_demos_endpoints_file_names_all_of_them_in_order() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/endpoints-demo.json");
        let file: Value =
            serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
        let stage = Stage::open(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("starts");
        let named: Vec<&Value> = file.as_object().expect("chains").values().collect();
        for (offset, (name, _)) in stage.providers().iter().enumerate() {
            let url = format!("http://providers:{}", 8545 + offset);
            assert!(named.iter().any(|chain| chain[*name]["http_url"] == url.as_str()), "{name} at {url}");
        }
    }

    /// Kills: a mood that does not change, or changes for good.
    #[tokio::test]
    async fn moody_comes_and_goes() {
        let stage = Stage::open(SocketAddr::from(([127, 0, 0, 1], 0))).await.expect("starts");
        let (_, moody) = &stage.providers()[3];
        let look = async {
            for wanted in [true, false, true] {
                while tokio::net::TcpStream::connect(moody.address()).await.is_ok() != wanted {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        };
        let mood = Duration::from_millis(100);
        tokio::select! {
            played = stage.change_moods(mood, mood) => panic!("ended: {played:?}"),
            looked = tokio::time::timeout(Duration::from_secs(60), look) => looked.expect("moods"),
        }
    }
}
