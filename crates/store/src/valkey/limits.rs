//! Limits of clients in Valkey: asks carried there, answers carried back. Decides nothing: what is granted is the
//! script's, what it means `clients`'.

use std::sync::Arc;
use std::time::Duration;

use clients::{Credit, Limits, Tag, Used, WINDOWS, Wish};
use fred::types::Value;
use ledger::{Cost, Unit};

use super::counts::Op;
use super::keys::{Keys, LimitKeys};
use super::link::{Failure, Link, cannot_serve};
use super::scripts::{Script, Scripts};
use super::trouble::Trouble;

/// A command that nobody waits for has this long, or as long as one that somebody waits for: one that was given less time
/// would end the counting together while the others still have theirs.
const LIMIT: Duration = Duration::from_secs(1);
/// What is stored outlives its window by this.
const GRACE_MS: u64 = 60_000;
/// A proxy that was not heard for so long is gone.
const GONE_MS: u64 = 5_000;

/// Where all replicas count.
pub(crate) struct LimitStore {
    link: Arc<Link>,
    scripts: Arc<Scripts>,
    trouble: Arc<Trouble>,
    keys: Keys,
    holder: String,
    /// The longest that a command takes that somebody waits for.
    timeout: Duration,
    slot_life_ms: u64,
}

/// One subject as it is called there.
#[derive(Debug)]
pub(crate) struct Place {
    keys: LimitKeys,
    /// The places in [`WINDOWS`] that are counted, and what the scripts are told of them.
    counted: Vec<usize>,
    told: Vec<String>,
    slots: String,
}

/// What is asked of the store.
pub(crate) struct Asked<'a> {
    pub(crate) wish: Wish,
    pub(crate) replicas: u32,
    pub(crate) slot: Option<u64>,
    pub(crate) released: &'a [u64],
}

/// What it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) granted: Option<Cost>,
    /// Its clock.
    pub(crate) at: u64,
    pub(crate) held: u64,
    pub(crate) used: Used,
}

/// Why it said nothing.
#[derive(Debug)]
pub(crate) enum Miss {
    /// The server cannot be used.
    Away(String),
    /// This one key cannot be used; it was said in the log.
    Key,
}

impl Place {
    fn new(keys: &Keys, tag: &Tag, limits: &Limits) -> Place {
        // Clients of a shared plan may have limits of their own on what all of them use.
        let all = matches!(tag, Tag::Plan(_));
        let counted: Vec<usize> =
            (0..WINDOWS.len()).filter(|at| all || limits.windows[*at].is_some()).collect();
        let told = |at: &usize| {
            let window = &WINDOWS[*at];
            let unit = if window.unit == Unit::Requests { "r" } else { "u" };
            let limit = limits.windows[*at].map_or_else(String::new, |limit| limit.to_string());
            [window.name.to_owned(), unit.to_owned(), window.period_ms.to_string(), limit]
        };
        Place {
            keys: keys.limits(&tag.hashed()),
            told: counted.iter().flat_map(told).collect(),
            counted,
            slots: limits.concurrency.map_or_else(String::new, |limit| limit.to_string()),
        }
    }

    fn used(&self, told: &[u64]) -> Used {
        let mut used = [0; WINDOWS.len()];
        self.counted.iter().zip(told).for_each(|(at, told)| used[*at] = *told);
        used
    }
}

impl LimitStore {
    pub(super) fn new(
        link: &Arc<Link>,
        scripts: &Arc<Scripts>,
        trouble: &Arc<Trouble>,
        keys: &Keys,
        holder: &str,
        timeout: Duration,
        slot_life: Duration,
    ) -> LimitStore {
        LimitStore {
            link: Arc::clone(link),
            scripts: Arc::clone(scripts),
            trouble: Arc::clone(trouble),
            keys: keys.clone(),
            holder: holder.to_owned(),
            timeout,
            slot_life_ms: u64::try_from(slot_life.as_millis()).unwrap_or(u64::MAX),
        }
    }

    pub(crate) fn place(&self, tag: &Tag, limits: &Limits) -> Place {
        Place::new(&self.keys, tag, limits)
    }

    /// The longest that anybody may wait for an answer.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    pub(crate) fn slot_life_ms(&self) -> u64 {
        self.slot_life_ms
    }

    /// Tells when the connection is made or lost.
    pub(crate) fn turns(&self) -> tokio::sync::watch::Receiver<bool> {
        self.link.turns()
    }

    /// Checks and charges.
    pub(crate) async fn charge(&self, place: &Place, asked: &Asked<'_>) -> Result<Answered, Miss> {
        let wish = &asked.wish;
        let mut args: Vec<String> = [wish.need, wish.waiting, wish.more]
            .iter()
            .flat_map(|cost| [cost.requests.to_string(), cost.units.to_string()])
            .collect();
        args.extend([
            asked.replicas.max(1).to_string(),
            place.slots.clone(),
            asked.slot.map_or_else(String::new, |slot| self.slot(slot)),
            self.slot_life_ms.to_string(),
            GRACE_MS.to_string(),
            asked.released.len().to_string(),
        ]);
        args.extend(asked.released.iter().map(|slot| self.slot(*slot)));
        args.extend(place.told.iter().cloned());
        let keys = vec![place.keys.windows(), place.keys.slots()];
        let answer = self.run(Op::Limit, &self.scripts.limit, keys, args, self.timeout).await?;
        read(place, answer).ok_or_else(|| {
            self.trouble.of_key(&place.keys.windows(), "the limit script answered what we cannot read");
            Miss::Key
        })
    }

    /// Gives back; `id` rises, or there is none and it is sent once.
    pub(crate) async fn credit(&self, place: &Place, credit: &Credit, id: Option<u64>) -> Result<(), Miss> {
        let mut args = vec![
            self.holder.clone(),
            id.map_or_else(String::new, |id| id.to_string()),
            credit.granted.to_string(),
            credit.tokens.requests.to_string(),
            credit.tokens.units.to_string(),
            GRACE_MS.to_string(),
        ];
        args.extend(place.told.iter().cloned());
        let keys = vec![place.keys.windows()];
        self.run(Op::Credit, &self.scripts.credit, keys, args, self.patience()).await.map(drop)
    }

    /// Releases slots and prolongs others.
    pub(crate) async fn slots(&self, place: &Place, released: &[u64], kept: &[u64]) -> Result<(), Miss> {
        let mut args = vec![self.slot_life_ms.to_string(), GRACE_MS.to_string(), released.len().to_string()];
        args.extend(released.iter().chain(kept).map(|slot| self.slot(*slot)));
        self.run(Op::Slots, &self.scripts.slots, vec![place.keys.slots()], args, self.patience())
            .await
            .map(drop)
    }

    /// Says that we are there; how many are.
    pub(crate) async fn presence(&self) -> Result<u32, Miss> {
        let args = vec![self.holder.clone(), GONE_MS.to_string()];
        let keys = vec![self.keys.proxies()];
        let answer = self.run(Op::Presence, &self.scripts.presence, keys, args, self.patience()).await?;
        let proxies = answer.as_u64().and_then(|proxies| u32::try_from(proxies).ok());
        proxies.ok_or_else(|| Miss::Away("the presence script answered what we cannot read".to_owned()))
    }

    fn patience(&self) -> Duration {
        LIMIT.max(self.timeout)
    }

    /// A slot's name is known to nobody else, and before it is asked for.
    fn slot(&self, number: u64) -> String {
        format!("{}:{number}", self.holder)
    }

    async fn run(
        &self,
        op: Op,
        script: &Script,
        keys: Vec<String>,
        args: Vec<String>,
        limit: Duration,
    ) -> Result<Value, Miss> {
        let key = keys.first().cloned().unwrap_or_default();
        self.link.counts().tripped(op);
        match self.link.run(op, script, keys, args, limit).await {
            Ok(value) => {
                self.trouble.is_well(&key);
                Ok(value)
            }
            Err(Failure::Refused(why)) if !cannot_serve(&why) => {
                self.trouble.of_key(&key, &why);
                Err(Miss::Key)
            }
            Err(failure) => Err(Miss::Away(failure.to_string())),
        }
    }
}

impl std::fmt::Debug for LimitStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitStore").field("holder", &self.holder).finish_non_exhaustive()
    }
}

fn read(place: &Place, answer: Value) -> Option<Answered> {
    let numbers: Vec<u64> = answer.into_array().iter().map(Value::as_u64).collect::<Option<_>>()?;
    let ([granted, at, held, requests, units], used) = numbers.split_first_chunk()?;
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let tokens = Cost { requests: narrow(*requests), units: narrow(*units) };
    (used.len() == place.counted.len()).then(|| Answered {
        granted: (*granted == 1).then_some(tokens),
        at: *at,
        held: *held,
        used: place.used(used),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: an answer of another version that is taken for a grant, use that lands in another window.
    #[test]
    fn only_a_whole_answer_is_read() {
        let mut limits = Limits::default();
        assert!(limits.set("rpm", 600) && limits.set("cu_per_day", 9_000));
        let place = Place::new(&Keys::new("p"), &Tag::Client("a".into()), &limits);
        assert_eq!(place.told, ["rpm", "r", "60000", "600", "cu_per_day", "u", "86400000", "9000"]);
        let numbers = |n: &[i64]| Value::Array(n.iter().map(|n| Value::Integer(*n)).collect());
        let answered = read(&place, numbers(&[1, 1_700_000, 3, 5, 130, 17, 442])).expect("whole");
        assert_eq!(answered.granted, Some(Cost { requests: 5, units: 130 }));
        assert_eq!((answered.at, answered.held, answered.used), (1_700_000, 3, [0, 17, 0, 0, 0, 0, 442]));
        assert_eq!(read(&place, numbers(&[0, 1, 0, 0, 0, 600, 0])).expect("whole").granted, None);
        for bad in [&[1, 1_700_000, 3, 5, 130, 17][..], &[1, 2], &[-1, 1, 0, 0, 0, 1, 1]] {
            assert_eq!(read(&place, numbers(bad)), None, "{bad:?}");
        }
    }

    #[test]
    fn a_shared_plan_counts_all_windows() {
        let place = Place::new(&Keys::new("p"), &Tag::Plan("team".into()), &Limits::default());
        assert_eq!(place.counted.len(), WINDOWS.len());
    }
}
