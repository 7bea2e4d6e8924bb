//! The shared store that the settings name, for both services.

use config::{Finding, Settings, StoreBackend};
use store::{Target, Valkey};

/// The shared store, if the settings name one. It connects later: a store that is away keeps nobody from serving.
///
/// # Errors
/// A setting that cannot be used.
pub fn shared_store(settings: &Settings) -> Result<Option<Valkey>, Finding> {
    if settings.store_backend == StoreBackend::Memory {
        return Ok(None);
    }
    let target = Target {
        url: settings.valkey_url.as_ref().map(|url| url.expose().to_string()),
        host: settings.valkey_host.clone(),
        port: settings.valkey_port,
        username: settings.valkey_username.clone(),
        password: settings.valkey_pass.as_ref().map(|pass| pass.expose().to_owned()),
        tls: settings.valkey_use_tls,
        unchecked: settings.valkey_skip_tls_check,
        ca_file: settings.valkey_ca_file.clone(),
        prefix: settings.valkey_key_prefix.clone(),
        timeout: settings.valkey_timeout_ms,
        replicas_assumed: settings.replicas_assumed,
        poll: settings.health_cache_ttl,
    };
    match Valkey::new(&target, crate::clock::unix_ms) {
        Ok(valkey) => Ok(Some(valkey)),
        Err(bad) => Err(Finding::error(bad.setting, bad.why)),
    }
}
