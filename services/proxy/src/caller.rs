//! Who asks, and may they: from a request's head to a client, an anonymous address, or a refusal. Decides before any body
//! is read; a key goes no further than this module, and is nowhere kept or printed.

mod toll;

pub(crate) use toll::Toll;

use crate::app::App;
use crate::fleet::Chain;
use crate::reply::Problem;
use ::clients::{Access, Definition, KeyHash, Registry, Tag, Who, asker, network_of};
use config::Network;
use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, Uri};
use ledger::Cost;
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use store::{Charge, ClientLimits, Denial, Permit, Subject};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// All clients, as one clients file names them, with what they are counted by.
pub(crate) struct Callers {
    registry: Registry,
    /// Of each client; `None`: without limits.
    subjects: Vec<Option<Arc<Subject>>>,
    limits: Arc<ClientLimits>,
}

/// Somebody who may ask on a chain.
#[derive(Clone)]
pub(crate) struct Caller {
    callers: Arc<Callers>,
    who: Who,
    subject: Option<Arc<Subject>>,
    credential: Credential,
}

/// What says who somebody is.
#[derive(Clone, Copy)]
enum Credential {
    Key(KeyHash),
    Address(IpAddr),
}

/// Where and how a request came in.
pub(crate) struct Arrival<'a> {
    pub(crate) peer: IpAddr,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

impl Callers {
    pub(crate) fn new(definition: Definition, limits: &Arc<ClientLimits>) -> Callers {
        let registry = Registry::new(definition);
        let subject = |client: &::clients::Client| {
            let limited = !client.access.limits.is_open();
            limited.then(|| limits.subject(&client.tag(), &client.access.limits))
        };
        let subjects = registry.clients().iter().map(subject).collect();
        Callers { registry, subjects, limits: Arc::clone(limits) }
    }

    fn access(&self, who: Who) -> Option<&Access> {
        match who {
            Who::Client(at) => self.registry.clients().get(at).map(|client| &client.access),
            Who::Anonymous => self.registry.anonymous(),
        }
    }

    fn subject(&self, who: Who, access: &Access, credential: Credential) -> Option<Arc<Subject>> {
        match (who, credential) {
            (Who::Client(at), _) => self.subjects.get(at).cloned().flatten(),
            (Who::Anonymous, Credential::Address(asker)) if !access.limits.is_open() => {
                Some(self.limits.subject(&Tag::Address(network_of(asker)), &access.limits))
            }
            (Who::Anonymous, _) => None,
        }
    }

    fn admit(self: &Arc<Self>, credential: Credential, chain: &Chain, now: u64) -> Result<Caller, Problem> {
        let key = match &credential {
            Credential::Key(key) => Some(key),
            Credential::Address(_) => None,
        };
        let who = self.registry.who(key, now).ok_or(Problem::Unauthorized)?;
        let access = self.access(who).ok_or(Problem::Unauthorized)?;
        if !access.allows_chain(&chain.name) {
            return Err(Problem::Forbidden);
        }
        let subject = self.subject(who, access, credential);
        Ok(Caller { callers: Arc::clone(self), who, subject, credential })
    }
}

/// Who asks on `chain` at `now` (Unix milliseconds); `Ok(None)`: there is no clients file, and everybody may.
pub(crate) fn identify(
    app: &App,
    chain: &Chain,
    arrival: &Arrival<'_>,
    now: u64,
) -> Result<Option<Caller>, Problem> {
    let Some(callers) = app.callers.load_full() else { return Ok(None) };
    let credential = match key_of(arrival) {
        Some(key) => Credential::Key(KeyHash::of(&key)),
        None => Credential::Address(asker_of(arrival, &app.settings.trusted_proxies)),
    };
    callers.admit(credential, chain, now).map(Some)
}

impl Caller {
    /// The same caller as the clients file stands at `now`, for whoever stays longer than one request. `Ok(None)`:
    /// everybody may.
    pub(crate) fn again(&self, app: &App, chain: &Chain, now: u64) -> Result<Option<Caller>, Problem> {
        let callers = app.callers.load_full();
        callers.map(|callers| callers.admit(self.credential, chain, now)).transpose()
    }

    /// A concurrency slot for a socket, held as long as the permit.
    pub(crate) async fn hold(&self) -> Result<Option<Permit>, Problem> {
        Ok(self.charge(Cost::requests(0), true).await?.and_then(|charge| charge.permit))
    }

    /// Whether it may call this method.
    pub(crate) fn may_call(&self, method: &str) -> bool {
        self.callers.access(self.who).is_some_and(|access| access.methods.allow(method))
    }

    /// Charges calls of this cost to its limits; with `hold` they take a concurrency slot, which ends with the permit in
    /// the charge. `None`: it has no limits.
    pub(crate) async fn charge(&self, cost: Cost, hold: bool) -> Result<Option<Charge>, Problem> {
        let Some(subject) = &self.subject else { return Ok(None) };
        match self.callers.limits.charge(subject, cost, hold).await {
            Ok(charge) => Ok(Some(charge)),
            Err(Denial::Refused(refusal)) => Err(Problem::ClientLimit(refusal)),
            Err(Denial::Never { dimension, limit }) => Err(Problem::CostExceedsLimit { dimension, limit }),
        }
    }

    /// What gives a charge back if nothing is dispatched for it.
    pub(crate) fn toll(&self, receipt: store::Receipt) -> Toll {
        Toll::new(Arc::clone(&self.callers.limits), receipt)
    }
}

/// The key that a request carries: the first there is of `Authorization: Bearer`, `X-Api-Key`, `/<chain>/<key>`.
fn key_of<'a>(arrival: &Arrival<'a>) -> Option<Cow<'a, [u8]>> {
    let bearer = arrival.headers.get(AUTHORIZATION).and_then(|value| bearer(value.as_bytes()));
    let header = || arrival.headers.get(X_API_KEY).map(|value| value.as_bytes().trim_ascii());
    bearer.or_else(header).map(Cow::Borrowed).or_else(|| {
        let (_, key) = arrival.uri.path().strip_prefix('/')?.split_once('/')?;
        (!key.is_empty()).then(|| percent_encoding::percent_decode_str(key).into())
    })
}

/// RFC 6750; other schemes are none of ours.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(6)?;
    let key = rest.strip_prefix(b" ")?;
    scheme.eq_ignore_ascii_case(b"bearer").then(|| key.trim_ascii())
}

fn asker_of(arrival: &Arrival<'_>, trusted: &[Network]) -> IpAddr {
    let lines = arrival.headers.get_all(X_FORWARDED_FOR).iter();
    // A line that is no text names nobody; what stands before it is not believed either.
    let entries: Vec<&str> = lines.flat_map(|line| line.to_str().unwrap_or("?").split(',')).collect();
    asker(arrival.peer, entries.into_iter(), |address| {
        trusted.iter().any(|network| network.contains(address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(path: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let uri: Uri = path.parse().expect("a URI");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let arrival = Arrival { peer: IpAddr::from([127, 0, 0, 1]), uri: &uri, headers: &map };
        key_of(&arrival).map(|key| String::from_utf8_lossy(&key).into_owned())
    }

    /// Kills: a way to carry the key that is not read, a scheme of somebody else's taken for a key.
    #[test]
    fn a_key_is_carried_in_three_ways() {
        for (path, headers, expected) in [
            ("/main", &[][..], None),
            ("/main/", &[], None),
            ("/main/k1", &[], Some("k1")),
            ("/main/k%2F1?archive=true", &[], Some("k/1")),
            ("/main", &[("x-api-key", " k2 ")], Some("k2")),
            ("/main", &[("authorization", "Bearer k3")], Some("k3")),
            ("/main", &[("authorization", "bearer   k3 ")], Some("k3")),
            ("/main", &[("authorization", "Bearer")], None),
            ("/main", &[("authorization", "Basic azM=")], None),
            ("/main", &[("authorization", "Bearerk3")], None),
            ("/main/k1", &[("authorization", "Basic azM=")], Some("k1")),
            ("/main/k1", &[("authorization", "Bearer k3"), ("x-api-key", "k2")], Some("k3")),
            ("/main/k1", &[("x-api-key", "k2")], Some("k2")),
        ] {
            assert_eq!(key(path, headers).as_deref(), expected, "{path} {headers:?}");
        }
    }
}
