//! The handles of one process, kept over reloads. With the memory backend they are all there is; with another one
//! they are what it keeps in step.

use crate::{Account, Park};
use ledger::{Gate, Holder, Limit};
use recovery::{Policy, Record};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// All shared state of the process, by name.
#[derive(Debug, Default)]
pub struct Memory {
    kept: Mutex<Kept>,
    sharing: Option<Sharing>,
}

/// Who this process is among those that it shares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Its name.
    pub holder: Holder,
    /// How many proxies to reckon with if the store is lost before it told their number.
    pub assumed: u32,
}

#[derive(Debug, Default)]
struct Kept {
    accounts: HashMap<Box<str>, (Arc<Account>, Rules)>,
    addresses: HashMap<Box<str>, Arc<Park>>,
}

/// The configuration that an account was made from, in a form that can be compared.
pub type Rules = Box<str>;

impl Memory {
    /// Handles whose state is shared with other processes by somebody who keeps them in step.
    #[must_use]
    pub fn shared(sharing: Sharing) -> Memory {
        Memory { kept: Mutex::default(), sharing: Some(sharing) }
    }

    /// The gate of an account: over `limits`, or one that learns; it goes on with what was `learned`.
    #[must_use]
    pub fn gate(
        &self,
        limits: Vec<Limit>,
        learning: Option<aimd::Params>,
        learned: Option<aimd::Learned>,
    ) -> Gate {
        match self.sharing {
            Some(Sharing { holder, assumed }) if !limits.is_empty() => Gate::leased(limits, holder, assumed),
            _ => Gate::restored(limits, learning, learned),
        }
    }

    /// The account called `name`. It is made anew, from the one that there is, when its `rules` have changed.
    pub fn account(
        &self,
        name: &str,
        rules: &str,
        make: impl FnOnce(Option<&Account>) -> Account,
    ) -> Arc<Account> {
        let mut kept = self.kept();
        match kept.accounts.get(name) {
            Some((account, known)) if &**known == rules => Arc::clone(account),
            known => {
                let made = Arc::new(make(known.map(|(account, _)| &**account)));
                self.share(&made.park);
                kept.accounts.insert(name.into(), (Arc::clone(&made), rules.into()));
                made
            }
        }
    }

    /// What is parked when a provider refuses our address: everything at `host:port`.
    pub fn address(&self, place: &str) -> Arc<Park> {
        let park = || {
            let park = Park::new(Policy::default(), Record::default());
            self.share(&park);
            Arc::new(park)
        };
        Arc::clone(self.kept().addresses.entry(place.into()).or_insert_with(park))
    }

    /// The host and port of an address given out here.
    #[must_use]
    pub fn place(&self, address: &Arc<Park>) -> Option<Box<str>> {
        let kept = self.kept();
        kept.addresses.iter().find(|(_, park)| Arc::ptr_eq(park, address)).map(|(place, _)| place.clone())
    }

    /// Every account.
    #[must_use]
    pub fn accounts(&self) -> Vec<Arc<Account>> {
        self.kept().accounts.values().map(|(account, _)| Arc::clone(account)).collect()
    }

    /// Every address, by host and port.
    #[must_use]
    pub fn addresses(&self) -> Vec<(Box<str>, Arc<Park>)> {
        self.kept().addresses.iter().map(|(place, park)| (place.clone(), Arc::clone(park))).collect()
    }

    /// Forgets what nobody refers to any more.
    pub fn tidy(&self) {
        let mut kept = self.kept();
        kept.accounts.retain(|_, (account, _)| Arc::strong_count(account) > 1);
        kept.addresses.retain(|_, park| Arc::strong_count(park) > 1);
    }

    fn share(&self, park: &Park) {
        if self.sharing.is_some() {
            park.share();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock can panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::Gate;

    fn account(memory: &Memory, rules: &str) -> Arc<Account> {
        memory.account("a", rules, |before| {
            Account::new("a", Policy::default(), Gate::new(Vec::new(), None), before, 1_000)
        })
    }

    #[test]
    fn an_account_outlives_a_reload_and_keeps_its_use_under_other_rules() {
        let memory = Memory::default();
        let first = account(&memory, "x");
        first.gate.charge(ledger::Cost::requests(7), ledger::Sender::Client, 1_000);
        assert!(Arc::ptr_eq(&first, &account(&memory, "x")));
        let other = account(&memory, "y");
        assert!(!Arc::ptr_eq(&first, &other));
        assert_eq!(other.gate.use_24h(1_000), 7, "kills: starting at zero after a reload");
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let memory = Memory::default();
        let held = memory.address("h:1");
        drop(memory.address("h:2"));
        memory.tidy();
        assert!(Arc::ptr_eq(&held, &memory.address("h:1")));
        assert_eq!(memory.kept().addresses.len(), 1);
    }
}
