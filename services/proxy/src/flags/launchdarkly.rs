//! Flags from LaunchDarkly, by its own SDK: a stream keeps the rules here, and they are evaluated here. It sees one
//! context, the same from every replica.

mod transport;

use super::Values;
use crate::upstream::Connector;
use config::{Secret, SecretUrl};
use http::HeaderValue;
use launchdarkly_server_sdk::{
    Client, ConfigBuilder, Context, ContextBuilder, EventProcessorBuilder, ServiceEndpointsBuilder,
    StreamingDataSourceBuilder,
};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;
use transport::Transport;

/// Kind and key of the only context.
const NAME: &str = "headgate";

pub(crate) struct LaunchDarkly {
    client: Arc<Client>,
    context: Context,
}

/// A key that no header can carry is refused before anything is asked.
pub(super) fn check(key: &Secret) -> Result<(), &'static str> {
    match HeaderValue::from_str(key.expose()) {
        Ok(_) if !key.expose().contains(' ') => Ok(()),
        Ok(_) | Err(_) => Err("no SDK key: it has blanks, or characters that are not ASCII"),
    }
}

impl LaunchDarkly {
    /// Begins to follow the stream. Must be called where tasks can be spawned.
    pub(super) fn start(
        key: &Secret,
        relay: Option<&SecretUrl>,
        connector: &Connector,
    ) -> anyhow::Result<LaunchDarkly> {
        let transport = Transport::new(connector.clone());
        let mut endpoints = ServiceEndpointsBuilder::new();
        if let Some(relay) = relay {
            endpoints.relay_proxy(relay.expose().as_str());
        }
        let config = ConfigBuilder::new(key.expose())
            .service_endpoints(&endpoints)
            .data_source(StreamingDataSourceBuilder::new().transport(transport.clone()))
            .event_processor(EventProcessorBuilder::new().transport(transport))
            .build()?;
        let client = Client::build(config)?;
        client.start_with_default_executor();
        let context = ContextBuilder::new(NAME).kind(NAME).build().map_err(anyhow::Error::msg)?;
        Ok(LaunchDarkly { client: Arc::new(client), context })
    }

    /// Evaluates `flags` by the rules that have come.
    pub(super) fn read(&self, flags: &[Box<str>]) -> Result<Values, String> {
        if !self.client.initialized() {
            return Err("nothing has come from LaunchDarkly: it is away, or refuses the SDK key".into());
        }
        Ok(flags.iter().filter_map(|flag| Some((flag.to_string(), self.value(flag)?))).collect())
    }

    /// `None`: there is no such flag, or it cannot be evaluated.
    fn value(&self, flag: &str) -> Option<Value> {
        Some(self.client.json_variation(&self.context, flag, Value::Null)).filter(|value| !value.is_null())
    }

    /// Sends what is still to be told. On a thread of its own: a service that does not answer must not keep the process.
    pub(super) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        let client = Arc::clone(&self.client);
        std::thread::spawn(move || {
            client.close();
            // Nobody waits any more if it took too long.
            let _ = done.send(());
        });
        let _ = closed.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: a key with a line break from a file, which would fail only when the stream is opened.
    #[test]
    fn a_key_must_fit_a_header() {
        for (key, good) in
            [("sdk-0123-abcd", true), ("sdk\n", false), ("sdk key", false), ("schlüssel\u{7f}", false)]
        {
            assert_eq!(check(&Secret::new(key)).is_ok(), good, "{key:?}");
        }
    }
}
