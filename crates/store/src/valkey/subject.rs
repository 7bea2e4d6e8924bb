//! One account or address kept in step with Valkey: what was done here is told, what others did is taken over.
//! The arithmetic is `recovery`'s and `aimd`'s; the write is a compare-and-set that is tried again on newer records.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aimd::{Learned, News};
use fred::types::Value;
use ledger::Footprint;
use recovery::Record;

use super::counts::Op;
use super::hours;
use super::keys::Of;
use super::link::{Failure, Link};
use super::scripts::Scripts;
use super::trouble::Trouble;
use crate::{Account, Park};

/// A command of the background has this long.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);
/// Others may be writing the same record: so often it is tried again at once.
const TRIES: u32 = 5;
/// A park is forgotten so long after its last change. Episodes are probed daily at least.
const PARK_LIFE_MS: u64 = 3 * 24 * 3_600_000;
/// What was learned is forgotten so long after its last change.
const LEARNED_LIFE_MS: u64 = 30 * 24 * 3_600_000;
/// Clean use is written this often; a decrease at once.
const CLEAN_EVERY_MS: u64 = 5_000;

/// What all subjects share.
pub(crate) struct Ground {
    pub(crate) link: Arc<Link>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) trouble: Arc<Trouble>,
    pub(crate) holder: String,
    pub(crate) channel: String,
}

/// Something shared, by the name of its keys: what was told of it.
pub(crate) struct Subject {
    of: Of,
    learned_written: AtomicU64,
    told_hours: Mutex<String>,
}

/// Its handle in this process.
pub(crate) enum Handle {
    Account(Arc<Account>),
    Address(Arc<Park>),
}

/// How much is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The records of accounts, and of addresses that are parked as far as is known.
    Usual,
    /// All records: others said that something changed.
    Records,
    /// The 24-hour use of others as well.
    Whole,
}

/// What [`Subject::sync`] found.
struct Found {
    live: u32,
    park: String,
    learned: String,
    hours: Vec<String>,
    /// What all others ask of a learned ceiling, and use.
    others: Footprint,
}

impl Handle {
    /// Whether others should hear of it, or it of others, at every pass.
    pub(crate) fn is_of_interest(&self) -> bool {
        match self {
            Handle::Account(_) => true,
            Handle::Address(park) => park.record().in_episode() || park.has_news(),
        }
    }

    fn park(&self) -> &Park {
        match self {
            Handle::Account(account) => &account.park,
            Handle::Address(park) => park,
        }
    }

    fn account(&self) -> Option<&Account> {
        match self {
            Handle::Account(account) => Some(account),
            Handle::Address(_) => None,
        }
    }
}

impl Subject {
    pub(crate) fn new(of: Of) -> Subject {
        Subject { of, learned_written: AtomicU64::new(0), told_hours: Mutex::default() }
    }

    /// Tells and asks, once, at `now` (Unix milliseconds). True if a park changed here.
    pub(crate) async fn sync(
        &self,
        ground: &Ground,
        handle: &Handle,
        depth: Depth,
        now: u64,
    ) -> Result<bool, Failure> {
        let account = handle.account();
        let hours = account.map_or_else(String::new, |account| hours::line(&account.gate.own_24h(now)));
        let news = depth == Depth::Whole || *self.told() != hours;
        let found = self.ask(ground, account, depth, if news { &hours } else { "" }, now).await?;
        if news {
            *self.told() = hours;
        }
        if let Some(account) = account {
            self.take_in(ground, account, &found, depth, now).await?;
        }
        let changed = self.reconcile_park(ground, handle.park(), found.park).await?;
        if let Some(account) = account.filter(|account| changed && !account.park.record().in_episode()) {
            account.gate.rested(now);
        }
        Ok(changed)
    }

    async fn ask(
        &self,
        ground: &Ground,
        account: Option<&Account>,
        depth: Depth,
        hours: &str,
        now: u64,
    ) -> Result<Found, Failure> {
        let leases = account.map_or(&[][..], |account| account.gate.leases());
        // To be heard before what was spent alone is reported would free the share that is kept back for it.
        let hello = !leases.is_empty() && !leases.iter().any(|lease| lease.owes_report(now));
        let footprint = account.and_then(|account| account.gate.footprint(now));
        let knows = leases.first().and_then(ledger::Leased::knows);
        let flag = |yes: bool| if yes { "1" } else { "" }.to_owned();
        let args = vec![
            ground.holder.clone(),
            flag(hello),
            knows.map_or_else(String::new, |n| n.to_string()),
            hours.to_owned(),
            flag(depth == Depth::Whole && account.is_some()),
            footprint.as_ref().map_or_else(String::new, |own| own.wanted.to_string()),
            footprint.as_ref().map_or_else(String::new, uses),
        ];
        let of = &self.of;
        let keys = vec![of.park(), of.learned(), of.replicas(), of.hours(), of.wants(), of.uses()];
        let answer = ground.link.run(Op::Sync, &ground.scripts.sync, keys, args, LIMIT).await;
        let answer = answer.inspect_err(|failure| {
            if let Failure::Refused(why) = failure {
                ground.trouble.of_key(&self.of.park(), why);
            }
        })?;
        let unreadable = || Failure::Refused("the sync script answered what we cannot read".to_owned());
        let found = read(answer).ok_or_else(unreadable)?;
        if hello {
            leases.iter().for_each(|lease| lease.told(found.live));
        }
        Ok(found)
    }

    async fn take_in(
        &self,
        ground: &Ground,
        account: &Account,
        found: &Found,
        depth: Depth,
        now: u64,
    ) -> Result<(), Failure> {
        account.gate.beside(&found.others, now);
        if depth == Depth::Whole {
            let mut others = BTreeMap::new();
            for line in &found.hours {
                if hours::add(line, &mut others).is_none() {
                    ground.trouble.of_key(&self.of.hours(), "not hours of a known version");
                }
            }
            account.gate.adopt_24h(&others, now);
        }
        self.reconcile_learned(ground, account, found.learned.clone(), now).await
    }

    /// Merges what others learned into ours, and writes what they lack.
    async fn reconcile_learned(
        &self,
        ground: &Ground,
        account: &Account,
        mut stored: String,
        now: u64,
    ) -> Result<(), Failure> {
        let key = self.of.learned();
        for _ in 0..TRIES {
            let theirs = match stored.as_str() {
                "" => None,
                text => match Learned::decode(text) {
                    Ok(record) => Some(record),
                    Err(error) => {
                        ground.trouble.of_key(&key, &error.to_string());
                        return Ok(());
                    }
                },
            };
            ground.trouble.is_well(&key);
            if let Some(theirs) = &theirs {
                account.gate.adopt(theirs, now);
            }
            let Some(ours) = account.gate.export() else { return Ok(()) };
            if !self.is_worth_writing(&ours, theirs.as_ref(), now) {
                return Ok(());
            }
            match ground.swap(key.clone(), stored, ours.encode(), LEARNED_LIFE_MS).await? {
                None => {
                    self.learned_written.store(now, Relaxed);
                    return Ok(());
                }
                Some(newer) => stored = newer,
            }
        }
        Ok(())
    }

    fn is_worth_writing(&self, ours: &Learned, theirs: Option<&Learned>, now: u64) -> bool {
        match ours.news(theirs) {
            News::None => false,
            News::Slight => now.saturating_sub(self.learned_written.load(Relaxed)) >= CLEAN_EVERY_MS,
            News::Decision => true,
        }
    }

    /// Takes our steps again on what is stored, writes the outcome, and goes on from it. True if it changed anything
    /// here.
    async fn reconcile_park(
        &self,
        ground: &Ground,
        park: &Park,
        mut stored: String,
    ) -> Result<bool, Failure> {
        let key = self.of.park();
        for _ in 0..TRIES {
            let theirs = match stored.as_str() {
                "" => None,
                text => match Record::decode(text) {
                    Ok(record) => Some(record),
                    Err(error) => {
                        ground.trouble.of_key(&key, &error.to_string());
                        return Ok(false);
                    }
                },
            };
            ground.trouble.is_well(&key);
            let before = park.record();
            let proposal = park.propose(theirs.as_ref());
            if proposal.record != theirs.unwrap_or_default()
                && let Some(newer) =
                    ground.swap(key.clone(), stored, proposal.record.encode(), PARK_LIFE_MS).await?
            {
                stored = newer;
                continue;
            }
            park.settle(&proposal);
            return Ok(before.in_episode() != park.record().in_episode());
        }
        Ok(false)
    }

    fn told(&self) -> std::sync::MutexGuard<'_, String> {
        self.told_hours.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ground {
    /// `None`: written. `Some`: what stands there instead.
    async fn swap(
        &self,
        key: String,
        old: String,
        new: String,
        life_ms: u64,
    ) -> Result<Option<String>, Failure> {
        let args = vec![old, new, life_ms.to_string(), self.channel.clone(), self.holder.clone()];
        self.link.counts().tripped(Op::Swap);
        let answer = self.link.run(Op::Swap, &self.scripts.swap, vec![key], args, LIMIT).await?;
        let answer = answer.into_array();
        match (answer.first().and_then(Value::as_u64), answer.get(1).and_then(Value::as_string)) {
            (Some(1), _) => Ok(None),
            (_, Some(held)) => Ok(Some(held)),
            (_, None) => Err(Failure::Refused("the swap script answered what we cannot read".to_owned())),
        }
    }
}

/// What is used, as the script reads it.
fn uses(own: &Footprint) -> String {
    own.used.iter().map(|(window, used)| format!("{window}:{used}")).collect::<Vec<_>>().join(" ")
}

fn read(answer: Value) -> Option<Found> {
    let [_, live, park, learned, hours, wanted, uses] = <[Value; 7]>::try_from(answer.into_array()).ok()?;
    let hours = hours.into_array().iter().map(Value::as_string).collect::<Option<_>>()?;
    let uses = uses.into_array().iter().map(Value::as_u64).collect::<Option<Vec<_>>>()?;
    let used = uses.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    Some(Found {
        live: u32::try_from(live.as_u64()?).ok()?,
        park: park.as_string()?,
        learned: learned.as_string()?,
        hours,
        others: Footprint { wanted: wanted.as_u64()?, used },
    })
}
