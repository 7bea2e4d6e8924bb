//! What endpoints of one account agree on. A limit belongs to the account, so endpoints that name the
//! same one must not contradict each other, and what one of them states holds for all.

use std::collections::BTreeMap;

use super::{Capacity, EndpointConfig, FleetConfig, LearningConfig, RecoveryConfig};
use crate::finding::Finding;

/// What the endpoints of an account said first, and where.
#[derive(Default)]
struct Account {
    endpoints: usize,
    capacity: Option<(String, Vec<Capacity>)>,
    learning: Option<(String, LearningConfig)>,
    recovery: Option<(String, RecoveryConfig)>,
}

/// Gives every endpoint its account's limits. Different ceilings are an error that names both endpoints.
pub(super) fn settle(fleet: &mut FleetConfig, findings: &mut Vec<Finding>) {
    let mut accounts: BTreeMap<String, Account> = BTreeMap::new();
    for (chain, endpoint) in fleet.endpoints().filter(|(_, endpoint)| endpoint.disabled.is_none()) {
        let account = accounts.entry(endpoint.account.clone()).or_default();
        account.join(&format!("{chain}.{}", endpoint.id), endpoint, findings);
    }
    for endpoint in fleet.chains.values_mut().flat_map(|chain| &mut chain.endpoints) {
        if let Some(account) = accounts.get(&endpoint.account) {
            account.apply(endpoint);
        }
    }
}

impl Account {
    fn join(&mut self, path: &str, endpoint: &EndpointConfig, findings: &mut Vec<Finding>) {
        self.endpoints += 1;
        let name = &endpoint.account;
        if !endpoint.capacity.is_empty()
            && let Some(other) = first_or_same(&mut self.capacity, path, &endpoint.capacity)
        {
            let message = format!("differs from {other}'s, of the same account \"{name}\"");
            findings.push(Finding::error(format!("{path}.capacity"), message));
        }
        if endpoint.learning.given
            && let Some(other) = first_or_same(&mut self.learning, path, &endpoint.learning)
        {
            let message = format!("differs from {other}'s, of the same account \"{name}\"; that one counts");
            findings.push(Finding::warning(format!("{path}.capacity_learning"), message));
        }
        if let Some(recovery) = &endpoint.recovery
            && let Some(other) = first_or_same(&mut self.recovery, path, recovery)
        {
            let message = format!("differs from {other}'s, of the same account \"{name}\"; that one counts");
            findings.push(Finding::warning(format!("{path}.rate_limit_recovery"), message));
        }
    }

    fn apply(&self, endpoint: &mut EndpointConfig) {
        endpoint.shared_account = self.endpoints > 1;
        if let Some((_, capacity)) = &self.capacity {
            endpoint.capacity.clone_from(capacity);
        }
        if let Some((_, learning)) = self.learning {
            endpoint.learning = learning;
        }
        if let Some((_, recovery)) = self.recovery {
            endpoint.recovery = Some(recovery);
        }
    }
}

/// Keeps the first value; the path of the first where `value` differs from it.
fn first_or_same<T: Clone + PartialEq>(
    first: &mut Option<(String, T)>,
    path: &str,
    value: &T,
) -> Option<String> {
    match first {
        Some((other, kept)) => (kept != value).then(|| other.clone()),
        None => {
            *first = Some((path.to_owned(), value.clone()));
            None
        }
    }
}
