//! `client new`: a key nobody can guess, shown once, and the entry that knows it by its hash.

use clients::KeyHash;
use rand::TryRngCore;
use rand::rngs::OsRng;
use serde_json::json;
use std::process::ExitCode;

/// What every key of ours begins with, so that a scanner for leaked secrets can find it.
const BEGINNING: &str = "hg_";

pub(super) fn new(id: &str, plan: Option<&str>) -> ExitCode {
    if id.trim().is_empty() {
        eprintln!("headgate-proxy client new: --id must not be blank");
        return ExitCode::from(super::BAD_CONFIGURATION);
    }
    let mut chance = [0; 32];
    if let Err(error) = OsRng.try_fill_bytes(&mut chance) {
        eprintln!("headgate-proxy client new: the system gives no randomness: {error}");
        return ExitCode::FAILURE;
    }
    let key = chance.iter().fold(BEGINNING.to_owned(), |key, byte| key + &format!("{byte:02x}"));
    println!("key: {key}");
    println!("{}", entry(id, plan, &key));
    eprintln!(
        "The key is shown this once: give it to the client. The entry belongs into the list \"clients\" of CLIENTS_FILE."
    );
    ExitCode::SUCCESS
}

fn entry(id: &str, plan: Option<&str>, key: &str) -> serde_json::Value {
    let mut entry = json!({ "id": id, "keys": [KeyHash::of(key.as_bytes()).to_string()] });
    if let Some(plan) = plan {
        entry["plan"] = plan.into();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: an entry that the clients file would refuse, or that opens to another key.
    #[test]
    fn the_entry_is_what_a_clients_file_takes() {
        let file = json!({ "plans": { "p": {} }, "clients": [entry("a{:}", Some("p"), "hg_0f")] });
        let (read, findings) = config::parse_clients(&file.to_string(), 0);
        assert_eq!(findings, []);
        assert_eq!(&*read.clients[0].id, "a{:}");
        assert!(read.clients[0].keys[0].is(&KeyHash::of(b"hg_0f")));
    }
}
