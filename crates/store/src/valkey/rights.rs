//! Rights that one process of a deployment has at a time: to probe a parked account, to check health. Each is a lease.
//! Decides nothing: who asks first has it, until its life ends or it is given up.

use std::time::Duration;

use fred::types::Value;

use super::counts::Op;
use super::subject;
use super::{Named, Valkey};

/// Who probes a parked account has this long, or somebody else may.
const PROBER_MS: u64 = 15_000;
/// Who checks health has this long, or somebody else takes over.
const CHECKER_MS: u64 = 10_000;

impl Valkey {
    /// How long the right to check health lasts; it is to be taken again well before.
    #[must_use]
    pub fn checks_lease() -> Duration {
        Duration::from_millis(CHECKER_MS)
    }

    /// Takes, or keeps, the right to check health; false when another process has it. Without Valkey everybody has it.
    pub async fn claim_checks(&self) -> bool {
        self.claim_key(self.keys.checker(), CHECKER_MS).await
    }

    /// Gives up the right to check health: another process may begin at once.
    pub async fn release_checks(&self) {
        self.release_key(self.keys.checker()).await;
    }

    /// Takes the right to probe what is parked; false when another process has it. Without Valkey everybody has it.
    pub async fn claim(&self, named: Named<'_>) -> bool {
        self.claim_key(self.of(named).prober(), PROBER_MS).await
    }

    /// Waits until others can know what was changed here, then gives up the right to probe.
    pub async fn release(&self, named: Named<'_>) {
        self.flush().await;
        self.release_key(self.of(named).prober()).await;
    }

    async fn claim_key(&self, key: String, life_ms: u64) -> bool {
        if !self.is_up() {
            return true;
        }
        let args = vec![self.ground.holder.clone(), life_ms.to_string()];
        self.ground.link.counts().tripped(Op::Claim);
        let script = &self.ground.scripts.claim;
        let answer = self.ground.link.run(Op::Claim, script, vec![key], args, subject::LIMIT).await;
        answer.ok().as_ref().and_then(Value::as_u64) == Some(1)
    }

    async fn release_key(&self, key: String) {
        self.ground.link.counts().tripped(Op::Claim);
        let (script, args) = (&self.ground.scripts.release, vec![self.ground.holder.clone()]);
        // Lost, it ends by itself.
        let _ = self.ground.link.run(Op::Claim, script, vec![key], args, subject::LIMIT).await;
    }
}
