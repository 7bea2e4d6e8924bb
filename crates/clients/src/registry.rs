//! Whom a key belongs to. Decides who is asking; keeps no key, only hashes.

use crate::{Access, KeyHash, Tag};
use std::collections::HashMap;

/// One client, its plan put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub id: Box<str>,
    pub keys: Vec<KeyHash>,
    /// The plan whose clients are counted together, if this one is.
    pub shared_plan: Option<Box<str>>,
    pub access: Access,
}

/// What a clients file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `None`: nobody is served without a key.
    pub anonymous: Option<Access>,
    pub clients: Vec<Client>,
}

/// All clients, by their keys.
#[derive(Debug)]
pub struct Registry {
    definition: Definition,
    by_key: HashMap<u64, Vec<(KeyHash, usize)>>,
}

/// Who is asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The place in [`Registry::clients`].
    Client(usize),
    Anonymous,
}

impl Client {
    /// What its limits belong to.
    #[must_use]
    pub fn tag(&self) -> Tag {
        match &self.shared_plan {
            Some(plan) => Tag::Plan(plan.clone()),
            None => Tag::Client(self.id.clone()),
        }
    }
}

impl Registry {
    #[must_use]
    pub fn new(definition: Definition) -> Registry {
        let mut by_key: HashMap<u64, Vec<(KeyHash, usize)>> = HashMap::new();
        for (at, client) in definition.clients.iter().enumerate() {
            client.keys.iter().for_each(|key| by_key.entry(key.bucket()).or_default().push((*key, at)));
        }
        Registry { definition, by_key }
    }

    /// All clients, in the file's order.
    #[must_use]
    pub fn clients(&self) -> &[Client] {
        &self.definition.clients
    }

    /// What is granted without a key.
    #[must_use]
    pub fn anonymous(&self) -> Option<&Access> {
        self.definition.anonymous.as_ref()
    }

    /// Who asks with a key of this hash at `now`; `None`: nobody we know. A key that is not known, or not any more, is not the same
    /// as none: who believes to be somebody is told that they are not.
    #[must_use]
    pub fn who(&self, key: Option<&KeyHash>, now: u64) -> Option<Who> {
        let Some(hash) = key else {
            let open = self.definition.anonymous.as_ref().is_some_and(|access| !access.has_expired(now));
            return open.then_some(Who::Anonymous);
        };
        let found = self.by_key.get(&hash.bucket())?;
        // Every candidate is looked at, whichever fits.
        let fits = |found, (stored, at): &(KeyHash, usize)| if stored.is(hash) { Some(*at) } else { found };
        let fitting = found.iter().fold(None, fits)?;
        (!self.definition.clients[fitting].access.has_expired(now)).then_some(Who::Client(fitting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(id: &str, keys: &[&str], expires: Option<u64>) -> Client {
        Client {
            id: id.into(),
            keys: keys.iter().map(|key| KeyHash::of(key.as_bytes())).collect(),
            shared_plan: None,
            access: Access { expires, ..Access::default() },
        }
    }

    /// Kills: a wrong key served as anonymous, an expired one served at all, one client's key that opens another's door.
    #[test]
    fn keys_name_clients() {
        let clients = vec![client("a", &["ka", "ka2"], None), client("b", &["kb"], Some(500))];
        let closed = Registry::new(Definition { anonymous: None, clients: clients.clone() });
        let open = Registry::new(Definition { anonymous: Some(Access::default()), clients });
        for (key, now, expected) in [
            (Some("ka"), 0, Some(Who::Client(0))),
            (Some("ka2"), 0, Some(Who::Client(0))),
            (Some("kb"), 499, Some(Who::Client(1))),
            (Some("kb"), 500, None),
            (Some("kc"), 0, None),
            (Some(""), 0, None),
        ] {
            let hash = key.map(|key: &str| KeyHash::of(key.as_bytes()));
            let (closed, open) = (closed.who(hash.as_ref(), now), open.who(hash.as_ref(), now));
            assert_eq!((closed, open), (expected, expected), "{key:?}");
        }
        assert_eq!((closed.who(None, 0), open.who(None, 0)), (None, Some(Who::Anonymous)));
    }

    #[test]
    fn clients_of_a_shared_plan_are_counted_together() {
        let mut shared = client("a", &[], None);
        assert_eq!(shared.tag(), Tag::Client("a".into()));
        shared.shared_plan = Some("team".into());
        assert_eq!(shared.tag(), Tag::Plan("team".into()));
    }
}
