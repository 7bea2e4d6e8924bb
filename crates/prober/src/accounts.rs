//! Parked accounts and addresses as the recovery driver sees them: who is parked, and one probe for each.

use crate::Target;
use crate::host::Host;
use crate::metrics as names;
use crate::sound::Sounder;
use fleet::{Chain, Endpoint, Fleet};
use health::{Accounts, Parked as Entry};
use ledger::Evidence;
use metrics::counter;
use recovery::{Kind, Probe};
use std::collections::HashSet;
use std::sync::Arc;
use store::{Change, Named, Park};

/// What is parked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Account(Box<str>),
    /// A host and port that refuses our address, by one endpoint on it.
    Address(u32),
}

pub(crate) struct Parked<H> {
    pub(crate) host: Arc<H>,
    pub(crate) sounder: Sounder,
}

/// A park, and an endpoint to probe it by.
struct Found {
    name: Name,
    chain: Arc<str>,
    endpoint: Arc<str>,
    target: Target,
    park: ParkOf,
}

impl<H: Host> Parked<H> {
    /// Every park in an episode, each once. Most are not, and nothing is copied of these.
    fn parked(fleet: &Fleet) -> Vec<Found> {
        let mut known: HashSet<*const Park> = HashSet::new();
        let mut found = Vec::new();
        for (chain, endpoint) in fleet.endpoints() {
            let mut is_new = |park: &Park| park.in_episode() && known.insert(std::ptr::from_ref(park));
            let (account, address) = (is_new(&endpoint.account.park), is_new(&endpoint.address));
            let account = account.then(|| Name::Account(endpoint.account.name.clone()));
            let address = address.then_some(Name::Address(endpoint.number));
            let names = account.into_iter().chain(address);
            found.extend(names.map(|name| Found::new(name, chain, endpoint)));
        }
        found
    }

    /// Numbers of endpoints are this process's own.
    fn shared_name(&self, name: &Name) -> Option<SharedName> {
        match name {
            Name::Account(account) => Some(SharedName::Account(account.clone())),
            Name::Address(_) => match self.find(name)?.park {
                ParkOf::Address(park) => self.host.memory().place(&park).map(SharedName::Address),
                ParkOf::Account(_) => None,
            },
        }
    }

    fn find(&self, name: &Name) -> Option<Found> {
        let fleet = self.host.fleet();
        let is_it = |endpoint: &Endpoint| match name {
            Name::Account(account) => endpoint.account.name == *account,
            Name::Address(number) => endpoint.number == *number,
        };
        let (chain, endpoint) = fleet.endpoints().find(|(_, endpoint)| is_it(endpoint))?;
        Some(Found::new(name.clone(), chain, endpoint))
    }
}

impl Found {
    fn new(name: Name, chain: &Chain, endpoint: &Endpoint) -> Found {
        let park = match &name {
            Name::Account(_) => ParkOf::Account(Arc::clone(&endpoint.account)),
            Name::Address(_) => ParkOf::Address(Arc::clone(&endpoint.address)),
        };
        let (chain, id) = (Arc::clone(&chain.name), Arc::clone(&endpoint.id));
        Found { name, chain, endpoint: id, target: Target::of(endpoint), park }
    }
}

/// A park's name among all processes.
enum SharedName {
    Account(Box<str>),
    Address(Box<str>),
}

impl SharedName {
    fn named(&self) -> Named<'_> {
        match self {
            SharedName::Account(name) => Named::Account(name),
            SharedName::Address(place) => Named::Address(place),
        }
    }
}

/// A park, held by whoever owns it.
enum ParkOf {
    Account(Arc<store::Account>),
    Address(Arc<Park>),
}

impl ParkOf {
    fn park(&self) -> &Park {
        match self {
            ParkOf::Account(account) => &account.park,
            ParkOf::Address(park) => park,
        }
    }
}

impl<H: Host> Accounts for Parked<H> {
    type Id = Name;

    fn now_ms(&self) -> u64 {
        fleet::clock::unix_ms()
    }

    async fn in_episode(&self) -> Option<Vec<Entry<Name>>> {
        let fleet = self.host.fleet();
        let entry = |found: Found| {
            let park = found.park.park();
            let (record, policy) = (park.record(), *park.policy());
            record.in_episode().then_some(Entry { id: found.name, record, policy })
        };
        Some(Self::parked(&fleet).into_iter().filter_map(entry).collect())
    }

    async fn claim(&self, name: &Name) -> bool {
        let Some(valkey) = self.host.valkey() else { return true };
        match self.shared_name(name) {
            Some(shared) => valkey.claim(shared.named()).await,
            None => false,
        }
    }

    async fn probe(&self, name: &Name) -> Probe {
        let Some(found) = self.find(name) else { return Probe::Failed };
        let Some(measured) = self.sounder.sound(found.target, false).await else { return Probe::Failed };
        match measured.limited {
            Some(limited) => Probe::Limited { kind: limited.kind, hint: limited.hint },
            None if measured.ok => Probe::Clean,
            None => Probe::Failed,
        }
    }

    async fn apply(&self, name: &Name, outcome: Probe, jitter: f64) -> bool {
        let Some(Found { chain, endpoint, park, .. }) = self.find(name) else { return false };
        let now = fleet::clock::unix_ms();
        if let (ParkOf::Account(account), Probe::Limited { kind: Kind::Burst, .. }) = (&park, outcome) {
            account.gate.refused(&Evidence::probe(now, jitter), now);
        }
        if park.park().probed(outcome, now, jitter) == Change::Back {
            tracing::info!(%chain, %endpoint, "back from being parked");
            counter!(names::RECOVERIES, "chain" => chain.to_string(), "endpoint" => endpoint.to_string())
                .increment(1);
            if let ParkOf::Account(account) = &park
                && let Some(lowered) = account.gate.back(&Evidence::probe(now, jitter), now)
            {
                tracing::info!(
                    %chain, %endpoint, window_ms = lowered.window_ms, from = lowered.from, to = lowered.to,
                    "ceiling lowered to what was granted"
                );
            }
        }
        if let (Some(valkey), Some(shared)) = (self.host.valkey(), self.shared_name(name)) {
            valkey.release(shared.named()).await;
        }
        true
    }
}
