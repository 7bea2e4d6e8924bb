//! What is wrong with a key: said once, with the key's name, until it is right again. Nothing there is overwritten.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Trouble(Mutex<HashSet<String>>);

impl Trouble {
    /// `key` holds what is not ours, or what this release cannot read.
    pub(crate) fn of_key(&self, key: &str, why: &str) {
        // A script that met a foreign value names its key itself.
        let named = why.split_once("FOREIGN ").and_then(|(_, rest)| rest.split_whitespace().next());
        let key = named.unwrap_or(key);
        if self.known().insert(key.to_owned()) {
            tracing::error!(key, why, "cannot use a key in valkey: left as it is, and not shared");
        }
    }

    /// `key` can be used.
    pub(crate) fn is_well(&self, key: &str) {
        let mut known = self.known();
        if !known.is_empty() && known.remove(key) {
            tracing::info!(key, "a key in valkey can be used again");
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
