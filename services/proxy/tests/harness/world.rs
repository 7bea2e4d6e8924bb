//! Providers, an endpoints file that names them, and a proxy in front.

use std::fs;
use std::ops::Index;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use simulator::{Behaviour, Chain, Provider, Script};

use super::client::Client;
use super::proxy::{ENDPOINTS, Proxy, fresh_dir};
use super::{GLANCE, soon};

/// What the proxy asks of its own accord.
const PROBES: [&str; 2] = ["eth_blockNumber", "eth_syncing"];

/// A world to be: endpoints of the chain `main`, in order.
pub(crate) struct Builder {
    chain: Arc<Chain>,
    endpoints: Vec<(String, Behaviour, Script, Value)>,
    env: Vec<(String, String)>,
    checked: bool,
}

/// A running proxy, its providers, and a client.
pub(crate) struct World {
    pub(crate) proxy: Proxy,
    pub(crate) client: Client,
    pub(crate) chain: Arc<Chain>,
    /// The separate health checker, if there is one.
    pub(crate) checker: Option<Proxy>,
    providers: Vec<(String, Provider)>,
    asked_before: Vec<(String, usize)>,
}

impl World {
    /// Health is left to the defaults, but after the first probes only what failed is probed.
    pub(crate) fn build() -> Builder {
        Builder { chain: Chain::new(1337), endpoints: Vec::new(), env: Vec::new(), checked: false }
            .env("HEALTH_CHECK_INTERVAL", "0")
            .env("WORKER_THREADS", "2")
    }

    /// Endpoints that fail stay in rotation: every request can meet the fault.
    pub(crate) fn build_unwatched() -> Builder {
        Self::build().env("EPHEMERAL_CHECKS_ENABLED", "false")
    }

    /// What the operator's port says.
    pub(crate) async fn operator(&self, path: &str) -> super::Reply {
        Client::new(self.proxy.metrics).get(path).await
    }

    /// How many calls of clients the provider was asked: all but the proxy's own probes.
    pub(crate) fn asked(&self, name: &str) -> usize {
        let provider = &self[name];
        provider.total() - PROBES.iter().map(|method| provider.count(method)).sum::<usize>()
    }

    /// How many calls of clients all providers were asked together.
    pub(crate) fn asked_together(&self) -> usize {
        self.providers.iter().map(|(name, _)| self.asked(name)).sum()
    }

    /// How many calls the provider had been asked when the world was ready.
    pub(crate) fn asked_before(&self, name: &str) -> usize {
        self.asked_before.iter().find(|(own, _)| own == name).map_or(0, |(_, calls)| *calls)
    }

    pub(crate) fn providers(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter().map(|(_, provider)| provider)
    }
}

impl Index<&str> for World {
    type Output = Provider;

    fn index(&self, name: &str) -> &Provider {
        &self.providers.iter().find(|(own, _)| own == name).expect("a provider of this name").1
    }
}

impl Builder {
    /// A primary endpoint.
    pub(crate) fn primary(self, name: &str, behaviour: Behaviour) -> Self {
        self.endpoint(name, behaviour, json!({}))
    }

    /// An endpoint that is asked only when no primary one can serve.
    pub(crate) fn fallback(self, name: &str, behaviour: Behaviour) -> Self {
        self.endpoint(name, behaviour, json!({"role": "fallback"}))
    }

    /// An endpoint with these fields set.
    pub(crate) fn endpoint(self, name: &str, behaviour: Behaviour, fields: Value) -> Self {
        let script = Script::new(&self.chain);
        self.scripted(name, behaviour, script, fields)
    }

    /// An endpoint whose provider is made from the chain.
    pub(crate) fn node(self, name: &str, script: impl FnOnce(Script) -> Script, fields: Value) -> Self {
        let script = script(Script::new(&self.chain));
        self.scripted(name, Behaviour::Healthy, script, fields)
    }

    fn scripted(mut self, name: &str, behaviour: Behaviour, script: Script, fields: Value) -> Self {
        self.endpoints.push((name.to_owned(), behaviour, script, fields));
        self
    }

    /// Sets a variable of the proxy's environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A health checker of its own runs beside the proxy, with the same settings.
    pub(crate) fn checker(mut self) -> Self {
        self.checked = true;
        self
    }

    /// Starts providers and proxy. The providers are well until the proxy is ready, so that every endpoint is
    /// in service; then they behave as they were told to, and have forgotten the probes.
    pub(crate) async fn start(self) -> World {
        let (mut providers, mut behaviours, mut file) = (Vec::new(), Vec::new(), Map::new());
        for (name, behaviour, script, fields) in self.endpoints {
            let provider = Provider::start(script).await.expect("a provider starts");
            file.insert(name.clone(), entry(&provider, &fields));
            providers.push((name, provider));
            behaviours.push(behaviour);
        }
        let dir = fresh_dir();
        let path = dir.join(ENDPOINTS);
        fs::write(&path, json!({"main": file}).to_string()).expect("a file");
        let mut env = self.env;
        env.push(("CONFIG_FILE".to_owned(), path.display().to_string()));
        let checker = match self.checked {
            true => Some(Proxy::checker(fresh_dir(), &env).await),
            false => None,
        };
        let proxy = Proxy::start(dir, &[], &env).await;
        let client = Client::new(proxy.address);
        soon(ready(&client, &providers)).await;
        let asked_before =
            providers.iter().map(|(name, provider)| (name.clone(), provider.total())).collect();
        for ((_, provider), behaviour) in providers.iter().zip(behaviours) {
            provider.forget();
            provider.set(behaviour).await.expect("a provider behaves");
        }
        World { proxy, client, chain: self.chain, checker, providers, asked_before }
    }
}

/// Waits until the proxy is ready and the first probes are over.
async fn ready(client: &Client, providers: &[(String, Provider)]) {
    while client.get("/ready").await.status != 200 {
        tokio::time::sleep(GLANCE).await;
    }
    for (_, provider) in providers {
        while provider.count("eth_syncing") == 0 {
            tokio::time::sleep(GLANCE).await;
        }
        provider.in_flight(0).await;
    }
}

/// An entry of the endpoints file; "own" stands for the provider's address for WebSockets.
pub(crate) fn entry(provider: &Provider, fields: &Value) -> Value {
    let mut entry =
        json!({"provider": "simulated", "role": "primary", "type": "full", "http_url": provider.url()});
    for (name, value) in fields.as_object().into_iter().flatten() {
        let own = name == "ws_url" && value == "own";
        entry[name] = if own { provider.ws_url().into() } else { value.clone() };
    }
    entry
}
