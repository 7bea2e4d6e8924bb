//! What a clients file says: clients, their keys and plans, and what is open to everybody. Decides whether it can be
//! used; pure. It fails closed: a word that is not understood might have been a limit, so it is an error, and never a
//! wider gate. No finding quotes a key.

mod expiry;
mod members;

use std::collections::HashMap;

use clients::{Access, BadKey, Client, DIMENSIONS, Definition, KeyHash, Limits, Methods};

use crate::finding::{Finding, did_you_mean, quoted};
use crate::fleet::FleetConfig;
use crate::json::Node;
use members::Members;

/// What the path of every finding begins with.
const FILE: &str = "clients file";
/// The largest limit: counts stay exact in every backend.
const LARGEST: i128 = 1_000_000_000_000;

/// Parses a clients file at `now` (Unix milliseconds). The definition holds what could be read; with an error among the
/// findings it must not be used.
pub fn parse_clients(text: &str, now: u64) -> (Definition, Vec<Finding>) {
    let mut reader = Reader { now, findings: Vec::new() };
    let definition = match Node::parse(text) {
        Ok(node) => reader.file(&node),
        Err(error) => {
            reader.error(FILE, format!("not JSON: {error}"));
            Definition::default()
        }
    };
    (definition, reader.findings)
}

/// Warns of chains that clients are allowed and nobody serves.
pub(crate) fn unserved_chains(definition: &Definition, fleet: &FleetConfig) -> Vec<Finding> {
    let served = || fleet.chains.keys().map(String::as_str);
    let anonymous = definition.anonymous.iter().map(|access| ("anonymous".to_owned(), access));
    let clients = definition.clients.iter();
    let clients = clients.map(|client| (format!("clients.{}", named(&client.id)), &client.access));
    let mut findings = Vec::new();
    for (path, access) in anonymous.chain(clients) {
        let chains = access.chains.iter().flatten().map(|chain| &**chain);
        for chain in chains.filter(|chain| !served().any(|name| name == *chain)) {
            let hint = did_you_mean(chain, served());
            findings.push(Finding::warning(
                format!("{FILE}: {path}.chains"),
                format!("no chain is called {}{hint}", quoted(chain)),
            ));
        }
    }
    findings
}

struct Reader {
    now: u64,
    findings: Vec<Finding>,
}

/// A template for clients, or the subject that they share.
struct Plan {
    shared: bool,
    limits: Limits,
    expires: Option<u64>,
}

impl Reader {
    fn error(&mut self, path: &str, message: impl Into<String>) {
        self.findings.push(Finding::error(path, message));
    }

    fn warning(&mut self, path: &str, message: impl Into<String>) {
        self.findings.push(Finding::warning(path, message));
    }

    fn file(&mut self, node: &Node) -> Definition {
        let file = self.members(FILE, node, &["anonymous", "plans", "clients"]);
        let at = |name: &str| format!("{FILE}: {name}");
        let anonymous = file.get("anonymous").and_then(|node| self.anonymous(&at("anonymous"), node));
        let plans = file.get("plans").map(|node| self.plans(&at("plans"), node)).unwrap_or_default();
        let clients =
            file.get("clients").map(|node| self.clients(&at("clients"), node, &plans)).unwrap_or_default();
        if clients.is_empty() && anonymous.is_none() {
            self.warning(
                FILE,
                "there are no clients, and nobody is served without a key: every request is refused",
            );
        }
        Definition { anonymous, clients }
    }

    fn anonymous(&mut self, path: &str, node: &Node) -> Option<Access> {
        let fields = self.members(path, node, &["allowed", "limits", "chains", "methods"]);
        let access = Access {
            chains: self.chains(&fields),
            methods: self.methods(&fields),
            expires: None,
            limits: self.limits(&fields),
        };
        self.flag(&fields, "allowed", true).then_some(access)
    }

    fn plans(&mut self, path: &str, node: &Node) -> HashMap<String, Plan> {
        let mut plans = HashMap::new();
        let Some(members) = self.object(path, node) else { return plans };
        for (name, node) in members {
            let path = format!("{path}.{}", named(name));
            let fields = self.members(&path, node, &["shared", "limits", "expires"]);
            let plan = Plan {
                shared: self.flag(&fields, "shared", false),
                limits: self.limits(&fields),
                expires: self.expires(&fields),
            };
            if plan.shared && plan.limits.is_open() {
                self.warning(&path, "shared, but without limits: there is nothing to share");
            }
            if plans.insert(name.clone(), plan).is_some() {
                self.error(&path, "there are two plans of this name");
            }
        }
        plans
    }

    fn clients(&mut self, path: &str, node: &Node, plans: &HashMap<String, Plan>) -> Vec<Client> {
        let Node::List(items) = node else {
            self.error(path, format!("must be a list of clients, not {}", node.kind()));
            return Vec::new();
        };
        let mut clients: Vec<Client> = Vec::new();
        let (mut ids, mut keys) = (HashMap::new(), HashMap::new());
        for (at, item) in items.iter().enumerate() {
            let Some(client) = self.client(&format!("{path}[{at}]"), item, plans) else { continue };
            let path = format!("{path}.{}", named(&client.id));
            if let Some(first) = ids.insert(client.id.clone(), at) {
                self.error(&path, format!("clients[{first}] and clients[{at}] have the same id"));
            }
            for key in &client.keys {
                match keys.insert(*key, at) {
                    Some(first) if first == at => self.error(&format!("{path}.keys"), "the same key twice"),
                    Some(first) => {
                        let other = named(clients.get(first).map_or("", |client| &client.id));
                        self.error(
                            &format!("{path}.keys"),
                            format!("{other} has the same key: each needs its own"),
                        );
                    }
                    None => {}
                }
            }
            clients.push(client);
        }
        clients
    }

    fn client(&mut self, path: &str, node: &Node, plans: &HashMap<String, Plan>) -> Option<Client> {
        const FIELDS: [&str; 7] = ["id", "keys", "plan", "limits", "chains", "methods", "expires"];
        let fields = self.members(path, node, &FIELDS);
        let id = match fields.get("id") {
            Some(Node::Text(id)) if !id.trim().is_empty() => id.as_str(),
            Some(Node::Text(_)) => return self.fail(&fields.path("id"), "must not be blank"),
            Some(other) => {
                return self.fail(&fields.path("id"), &format!("must be a string, not {}", other.kind()));
            }
            None => return self.fail(path, "has no id"),
        };
        // From here on the name says more than the number.
        let path = format!("{FILE}: clients.{}", named(id));
        let fields = fields.called(&path);
        let plan = self.plan(&fields, plans);
        let own = self.limits(&fields);
        let expires = [self.expires(&fields), plan.as_ref().and_then(|(_, plan)| plan.expires)];
        let keys = self.keys(&fields);
        if keys.is_empty()
            && !self.findings.iter().any(|finding| finding.path.starts_with(&fields.path("keys")))
        {
            self.warning(&path, "has no key: nobody can be this client");
        }
        Some(Client {
            id: id.into(),
            keys,
            shared_plan: plan.as_ref().filter(|(_, plan)| plan.shared).map(|(name, _)| (*name).into()),
            access: Access {
                chains: self.chains(&fields),
                methods: self.methods(&fields),
                expires: expires.into_iter().flatten().min(),
                limits: plan.map_or(own, |(_, plan)| own.over(&plan.limits)),
            },
        })
    }

    fn plan<'p>(
        &mut self,
        fields: &Members<'_>,
        plans: &'p HashMap<String, Plan>,
    ) -> Option<(&'p str, &'p Plan)> {
        let name = self.text(fields, "plan")?;
        let found = plans.get_key_value(name).map(|(name, plan)| (name.as_str(), plan));
        if found.is_none() {
            let hint = did_you_mean(name, plans.keys().map(String::as_str));
            self.error(&fields.path("plan"), format!("there is no plan {}{hint}", quoted(name)));
        }
        found
    }

    fn keys(&mut self, fields: &Members<'_>) -> Vec<KeyHash> {
        let mut keys = Vec::new();
        for (at, text) in self.texts(fields, "keys").unwrap_or_default().into_iter().enumerate() {
            match KeyHash::parse(text) {
                Ok(key) => keys.push(key),
                Err(bad) => self.error(&format!("{}[{at}]", fields.path("keys")), what_is_wrong(bad)),
            }
        }
        keys
    }

    fn chains(&mut self, fields: &Members<'_>) -> Option<Vec<Box<str>>> {
        let chains = self.texts(fields, "chains")?;
        if chains.is_empty() {
            self.warning(&fields.path("chains"), "an empty list: no chain is allowed");
        }
        Some(chains.into_iter().map(Into::into).collect())
    }

    fn methods(&mut self, fields: &Members<'_>) -> Methods {
        let Some(node) = fields.get("methods") else { return Methods::default() };
        let lists = self.members(&fields.path("methods"), node, &["allow", "deny"]);
        let mut patterns = |name: &str| -> Option<Vec<Box<str>>> {
            Some(self.texts(&lists, name)?.into_iter().map(Into::into).collect())
        };
        let (allow, deny) = (patterns("allow"), patterns("deny").unwrap_or_default());
        if allow.as_ref().is_some_and(Vec::is_empty) {
            self.error(
                &lists.path("allow"),
                "an empty list would allow nothing: leave it out, or name methods",
            );
        }
        Methods { allow: allow.unwrap_or_default(), deny }
    }

    fn limits(&mut self, fields: &Members<'_>) -> Limits {
        let mut limits = Limits::default();
        let Some(node) = fields.get("limits") else { return limits };
        let given = self.members(&fields.path("limits"), node, &DIMENSIONS);
        for name in DIMENSIONS {
            let Some(node) = given.get(name) else { continue };
            match node.whole() {
                Some(limit) if (1..=LARGEST).contains(&limit) => {
                    limits.set(name, u64::try_from(limit).unwrap_or(u64::MAX));
                }
                Some(0) => {
                    self.error(&given.path(name), "0 would refuse everything: leave it out for no limit");
                }
                _ => self.error(&given.path(name), format!("must be a whole number from 1 to {LARGEST}")),
            }
        }
        limits
    }

    fn expires(&mut self, fields: &Members<'_>) -> Option<u64> {
        let text = self.text(fields, "expires")?;
        let Some(expires) = expiry::parse(text) else {
            self.error(
                &fields.path("expires"),
                format!("{} is no date such as 2027-01-31T00:00:00Z", quoted(text)),
            );
            return None;
        };
        if expires <= self.now {
            self.warning(&fields.path("expires"), format!("{} is over: keys are refused", quoted(text)));
        }
        Some(expires)
    }

    fn fail<T>(&mut self, path: &str, message: &str) -> Option<T> {
        self.error(path, message);
        None
    }
}

fn what_is_wrong(bad: BadKey) -> String {
    match bad {
        BadKey::Plain => "not sha256:<64 hexadecimal digits>: a key itself must not stand here; \
                          `headgate-proxy client new` makes one and prints its entry"
            .to_owned(),
        BadKey::NotAHash => "sha256: must be followed by 64 hexadecimal digits".to_owned(),
    }
}

/// A name as a part of a path.
fn named(name: &str) -> String {
    match name.chars().count() {
        0..=40 => name.to_owned(),
        _ => name.chars().take(40).chain(['…']).collect(),
    }
}
