//! Leases refilled: asks carried to the ledger in Valkey, grants carried back. Decides nothing: what to ask for is
//! `ledger`'s, what is granted the script's.

use std::sync::Arc;
use std::time::Duration;

use fred::types::Value;
use ledger::{Ask, Grant, Leased, Limit, Which};
use tokio::sync::Notify;

use super::counts::Op;
use super::keys::{Keys, Of};
use super::link::{Failure, Link, cannot_serve};
use super::scripts::Scripts;
use super::trouble::Trouble;
use crate::{Account, Clock};

/// A lease call has this long.
const LIMIT: Duration = Duration::from_secs(1);

/// Who refills. Calls fly at once and side by side; the connection sends them together.
pub(crate) struct Refill {
    pub(crate) link: Arc<Link>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) clock: Clock,
    pub(crate) holder: String,
    pub(crate) trouble: Arc<Trouble>,
    /// Tokens came: whoever waits for some looks again.
    pub(crate) filled: Arc<Notify>,
}

impl Refill {
    /// Asks for what `account` is due; true if anything was.
    pub(crate) fn ask(self: &Arc<Self>, account: &Arc<Account>, keys: &Keys) -> bool {
        let mut any = false;
        for (index, lease) in account.gate.leases().iter().enumerate() {
            let sent = (self.clock)();
            if let Some(ask) = lease.ask(sent) {
                let (refill, account, of) =
                    (Arc::clone(self), Arc::clone(account), keys.account(&account.name));
                tokio::spawn(async move {
                    if let Some(lease) = account.gate.leases().get(index) {
                        refill.fetch(lease, &of, &ask, sent).await;
                    }
                    refill.filled.notify_waiters();
                });
                any = true;
            }
        }
        any
    }

    async fn fetch(&self, lease: &Leased, of: &Of, ask: &Ask, sent: u64) {
        let keys = vec![of.ledger(lease.limit()), of.replicas()];
        let args = arguments(&self.holder, ask, lease.limit(), lease.plan().period_ms());
        let answer = self.link.run(Op::Lease, &self.scripts.lease, keys, args, LIMIT).await;
        let key = of.ledger(lease.limit());
        match answer.map(|value| grant(ask.id, value)) {
            Ok(Some(grant)) => {
                self.trouble.is_well(&key);
                lease.granted(&grant, sent, (self.clock)());
            }
            Ok(None) => {
                self.trouble.of_key(&key, "the lease script answered what we cannot read");
                lease.refused((self.clock)());
            }
            Err(Failure::Refused(why)) if !cannot_serve(&why) => {
                self.trouble.of_key(&key, &why);
                lease.refused((self.clock)());
            }
            Err(_) => lease.unanswered(),
        }
    }

    /// Returns what is left of the running window and says goodbye, at the end of the process.
    pub(crate) async fn give_back(&self, account: &Account, of: &Of) {
        for lease in account.gate.leases() {
            let now = (self.clock)();
            let (window, tokens) = lease.surrender(now).unwrap_or_default();
            let args = vec![self.holder.clone(), now.to_string(), window.to_string(), tokens.to_string()];
            let keys = vec![of.ledger(lease.limit()), of.replicas()];
            self.link.counts().tripped(Op::Lease);
            // Lost, they are only unused.
            let _ = self.link.run(Op::Lease, &self.scripts.give_back, keys, args, LIMIT).await;
        }
    }
}

fn arguments(holder: &str, ask: &Ask, limit: &Limit, period_ms: u64) -> Vec<String> {
    let text = |n: Option<u64>| n.map_or_else(String::new, |n| n.to_string());
    let which = match ask.which {
        Which::Running => "running",
        Which::Coming => "coming",
    };
    vec![
        holder.to_owned(),
        which.to_owned(),
        ask.demand.to_string(),
        ask.waiting.to_string(),
        text(ask.alone.map(|(window, _)| window)),
        text(ask.alone.map(|(_, spent)| u64::from(spent))),
        text(ask.knows.map(u64::from)),
        period_ms.to_string(),
        limit.amount.to_string(),
        if limit.smooth { "1" } else { "" }.to_owned(),
    ]
}

fn grant(id: u64, answer: Value) -> Option<Grant> {
    let numbers: Vec<u64> = answer.into_array().iter().map(Value::as_u64).collect::<Option<_>>()?;
    let [tokens, window, starts_in_ms, ends_in_ms, remaining, proxies] = numbers.try_into().ok()?;
    let narrow = |n: u64| u32::try_from(n).ok();
    let (tokens, remaining, proxies) = (narrow(tokens)?, narrow(remaining)?, narrow(proxies)?);
    Some(Grant { id, tokens, window, starts_in_ms, ends_in_ms, remaining, proxies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_grant_is_taken() {
        let numbers = |n: &[i64]| Value::Array(n.iter().map(|n| Value::Integer(*n)).collect());
        let whole = grant(7, numbers(&[5, 1_700_000, 0, 900, 95, 2])).expect("six numbers");
        assert_eq!(
            (whole.id, whole.tokens, whole.window, whole.ends_in_ms, whole.proxies),
            (7, 5, 1_700_000, 900, 2)
        );
        for bad in [&[5, 1, 0, 900, 95][..], &[-1, 1, 0, 900, 95, 2], &[1 << 40, 1, 0, 900, 95, 2]] {
            assert_eq!(grant(7, numbers(bad)), None, "{bad:?}");
        }
    }
}
