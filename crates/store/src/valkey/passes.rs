//! When this process tells what the others should know and reads what they told, all but leases: in passes over
//! everything that its handles hold. What one of them tells and takes is the subject's.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::Valkey;
use super::counts::Op;
use super::keys::Of;
use super::subject::{self, Depth, Handle, Subject};
use crate::{Account, Memory};

/// Everything but leases is told and read this often.
const SYNC: Duration = Duration::from_millis(500);
/// And this often while an account that keeps a level is in use: a tenth of the shortest window, so that what others use is no old news.
const LIVELY: Duration = Duration::from_millis(100);
/// Between two passes lies at least this, however much changes.
const BREATH: Duration = Duration::from_millis(20);
/// The 24-hour use of others is read this often.
const WHOLE: Duration = Duration::from_secs(5);

type Subjects = HashMap<Of, Subject>;

impl Valkey {
    /// Waits for a whole pass of telling and reading, begun after this call.
    pub(super) async fn flush(&self) {
        let mut passes = self.passes.subscribe();
        // The pass under way, if one is, may have begun before what is to be told.
        let target = *passes.borrow_and_update() + 2;
        let passed = async {
            while self.is_up() && *passes.borrow_and_update() < target {
                self.stir();
                if passes.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = timeout(subject::LIMIT, passed).await;
    }

    pub(super) async fn keep_in_step(
        &self,
        memory: &Memory,
        mut heard: mpsc::Receiver<()>,
        changed: impl Fn(),
    ) {
        let mut subjects = HashMap::new();
        let mut turns = self.ground.link.turns();
        let mut whole_at: Option<Instant> = None;
        loop {
            let now = (self.clock)();
            let lively = memory.accounts().iter().any(|account| account.gate.is_lively(now));
            let mut depth = tokio::select! {
                () = sleep(if lively { LIVELY } else { SYNC }) => Depth::Usual,
                () = self.stirred.notified() => Depth::Usual,
                Some(()) = heard.recv() => Depth::Records,
                Ok(()) = turns.changed() => Depth::Whole,
            };
            if self.is_up() && !self.is_leaving() {
                if whole_at.is_none_or(|at| at.elapsed() >= WHOLE) {
                    depth = Depth::Whole;
                }
                if depth == Depth::Whole {
                    whole_at = Some(Instant::now());
                }
                if self.pass(&mut subjects, memory, depth).await {
                    changed();
                }
            }
            self.passes.send_modify(|passes| *passes += 1);
            sleep(BREATH).await;
        }
    }

    /// Tells and reads once for everything; true if a park changed here.
    pub(super) async fn pass(&self, subjects: &mut Subjects, memory: &Memory, depth: Depth) -> bool {
        let handles = self.handles(memory);
        subjects.retain(|of, _| handles.contains_key(of));
        for of in handles.keys() {
            subjects.entry(of.clone()).or_insert_with(|| Subject::new(of.clone()));
        }
        let now = (self.clock)();
        let looked_at = handles.iter().filter(|(_, handle)| depth != Depth::Usual || handle.is_of_interest());
        let syncs: Vec<_> = looked_at
            .filter_map(|(of, handle)| Some(subjects.get(of)?.sync(&self.ground, handle, depth, now)))
            .collect();
        if syncs.is_empty() {
            return false;
        }
        self.ground.link.counts().tripped(Op::Sync);
        let mut changed = false;
        for synced in join_all(syncs).await {
            match synced {
                Ok(this) => changed |= this,
                Err(failure) => tracing::debug!(%failure, "not in step with valkey"),
            }
        }
        changed
    }

    /// What `memory` holds now.
    fn handles(&self, memory: &Memory) -> HashMap<Of, Handle> {
        let account = |account: Arc<Account>| (self.keys.account(&account.name), Handle::Account(account));
        let address = |(place, park): (Box<str>, _)| (self.keys.address(&place), Handle::Address(park));
        let accounts = memory.accounts().into_iter().map(account);
        accounts.chain(memory.addresses().into_iter().map(address)).collect()
    }
}
