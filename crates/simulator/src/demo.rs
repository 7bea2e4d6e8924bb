//! The four providers of `headgate-proxy --demo` and the endpoints file that names them.

use std::io;
use std::time::Duration;

use serde_json::json;

use crate::behaviour::Behaviour;
use crate::chain::Chain;
use crate::limit::Limit;
use crate::provider::{Provider, Script};

/// Calls per second that the limited provider takes.
pub const LIMIT_PER_SECOND: u64 = 5;

/// How long the slow provider thinks.
pub const SLOWNESS: Duration = Duration::from_millis(300);

/// The running demo. Dropped, its providers stop.
#[derive(Debug)]
pub struct Demo {
    /// `steady`, `limited`, `failing`, `slow`, in this order.
    pub providers: Vec<(&'static str, Provider)>,
    /// The text of an endpoints file with the chain `demo`.
    pub endpoints_json: String,
}

/// Starts the demo's providers on the current runtime.
///
/// # Errors
/// When no port is to be had.
pub async fn demo() -> io::Result<Demo> {
    let chain = Chain::ticking(1337, Duration::from_secs(2));
    let limit = Limit::Rolling { n: LIMIT_PER_SECOND, window: Duration::from_secs(1) };
    let roles = [
        ("steady", Behaviour::Healthy),
        ("limited", Behaviour::limited(limit)),
        ("failing", Behaviour::status(500)),
        ("slow", Behaviour::delayed(SLOWNESS, Behaviour::Healthy)),
    ];
    let (mut providers, mut endpoints) = (Vec::new(), serde_json::Map::new());
    for (name, behaviour) in roles {
        let provider = Provider::start(Script::new(&chain).behaving(behaviour).remembering(0)).await?;
        let endpoint =
            json!({"provider": "demo", "role": "primary", "type": "full", "http_url": provider.url()});
        endpoints.insert(name.to_owned(), endpoint);
        providers.push((name, provider));
    }
    Ok(Demo { providers, endpoints_json: json!({"demo": endpoints}).to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[tokio::test]
    async fn the_demo_names_its_four_providers() {
        let demo = demo().await.expect("starts");
        let file: Value = serde_json::from_str(&demo.endpoints_json).expect("JSON");
        assert_eq!(demo.providers.len(), 4);
        for (name, provider) in &demo.providers {
            assert_eq!(file["demo"][*name]["http_url"], provider.url());
        }
    }
}
