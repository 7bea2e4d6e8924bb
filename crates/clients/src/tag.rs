//! Whose use is counted: a client, the clients of a shared plan, or an address. Decides what they are called where
//! names must be short and harmless.

use ring::digest::{SHA256, digest};

/// What limits belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// A client, by its id.
    Client(Box<str>),
    /// All clients of a shared plan, by its name.
    Plan(Box<str>),
    /// Whoever asks without a key from this network.
    Address(Box<str>),
}

impl Tag {
    /// A name of 34 harmless characters: its kind, and a hash of what it is called.
    #[must_use]
    pub fn hashed(&self) -> String {
        let (kind, name) = match self {
            Tag::Client(id) => ('c', id),
            Tag::Plan(name) => ('p', name),
            Tag::Address(network) => ('n', network),
        };
        let hash = digest(&SHA256, name.as_bytes());
        hash.as_ref().iter().take(16).fold(format!("{kind}."), |text, byte| text + &format!("{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: names that end a hash tag or a key, a plan that shares the count of a client of the same name.
    #[test]
    fn odd_names_become_harmless_and_stay_different() {
        let long = "x".repeat(10_000);
        let tags = [
            Tag::Client("a".into()),
            Tag::Plan("a".into()),
            Tag::Address("a".into()),
            Tag::Client("a}{b:c".into()),
            Tag::Client("a b\n".into()),
            Tag::Client(long.as_str().into()),
        ];
        let mut names: Vec<String> = tags.iter().map(Tag::hashed).collect();
        assert!(names.iter().all(|name| name.len() == 34));
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), tags.len());
    }
}
