//! One static ceiling of a process that shares its account with others: a lease beside what was wanted and not had,
//! and what was sent without a token. Decides what may be spent here now; whoever talks to the store carries asks and
//! grants to and fro.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::several::Ceiling;
use crate::{Ask, CeilingKind, CeilingView, Grant, Holder, Lease, Limit, LocalMs, Plan, StoreMs, Taken};

/// A store that refused an ask for good is not asked again for this long.
const REFUSED_MS: u64 = 15_000;

/// One static limit, as one of several replicas holds it. `now` is the gate's axis.
#[derive(Debug)]
pub struct Leased {
    limit: Limit,
    plan: Plan,
    lease: Lease,
    /// The most that one request wanted in vain since the last ask.
    wanted: AtomicU32,
    /// Sent without a token, to be paid for out of the next grant.
    debt: AtomicU32,
    /// The store is known to be lost.
    cut: AtomicBool,
    /// Until when the store is not asked, because it refused.
    refused_until: AtomicU64,
}

impl Leased {
    pub(crate) fn new(limit: Limit, holder: Holder, assumed: u32) -> Self {
        let plan = Plan::of(&limit);
        Self {
            limit,
            plan,
            lease: Lease::new(plan, holder, assumed),
            wanted: AtomicU32::new(0),
            debt: AtomicU32::new(0),
            cut: AtomicBool::new(false),
            refused_until: AtomicU64::new(0),
        }
    }

    /// The limit as configured.
    #[must_use]
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Its windows.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The ask that is due, if one is; it is to be answered by [`Leased::granted`] or [`Leased::unanswered`].
    pub fn ask(&self, now: u64) -> Option<Ask> {
        let debt = self.debt.load(Ordering::Relaxed);
        let waiting = self.wanted.load(Ordering::Relaxed).saturating_add(debt);
        let ask = self.lease.ask(waiting, LocalMs(now))?;
        self.wanted.store(0, Ordering::Relaxed);
        Some(ask)
    }

    /// Takes in a grant whose ask was sent at `sent`, arrived at `received`.
    pub fn granted(&self, grant: &Grant, sent: u64, received: u64) {
        self.lease.granted(grant, LocalMs(sent), LocalMs(received));
        let debt = self.debt.swap(0, Ordering::Relaxed);
        if debt > 0 {
            self.lease.drain(debt, LocalMs(received));
        }
    }

    /// The ask under way got no answer in time.
    pub fn unanswered(&self) {
        self.lease.unanswered();
    }

    /// The store answered that it will not grant: there is something else where the ledger should be. As good as no
    /// store, for a while.
    pub fn refused(&self, now: u64) {
        self.lease.unanswered();
        self.refused_until.store(now.saturating_add(REFUSED_MS), Ordering::Relaxed);
        self.cut_off(now);
    }

    /// The connection to the store was closed, now or before.
    pub fn cut_off(&self, now: u64) {
        if !self.cut.swap(true, Ordering::Relaxed) {
            self.lease.cut_off(LocalMs(now));
        }
    }

    /// The store is there.
    pub fn back(&self, now: u64) {
        let refused = now < self.refused_until.load(Ordering::Relaxed);
        if !refused && self.cut.swap(false, Ordering::Relaxed) {
            self.lease.back(LocalMs(now));
        }
    }

    /// Whether answers of the store come too late: see [`Lease::is_late`].
    #[must_use]
    pub fn is_late(&self, now: u64) -> bool {
        self.lease.is_late(LocalMs(now))
    }

    /// The store said how many proxies there are.
    pub fn told(&self, proxies: u32) {
        self.lease.told(proxies);
    }

    /// The number of proxies it was last told.
    #[must_use]
    pub fn knows(&self) -> Option<u32> {
        self.lease.knows()
    }

    /// True while something spent alone must be reported before anything else is said to the store.
    #[must_use]
    pub fn owes_report(&self, now: u64) -> bool {
        self.lease.owes_report(LocalMs(now))
    }

    /// Takes out all tokens of the running window, to be returned to the store: the window's number and how many.
    pub fn surrender(&self, now: u64) -> Option<(u64, u32)> {
        self.lease.surrender(LocalMs(now))
    }

    /// Forgets tokens and what is known of the windows: `now` has made a step, and every bound is off by it.
    pub fn void(&self) {
        self.lease.void();
    }

    /// Counts `n` that are sent whether or not there are tokens.
    pub(crate) fn charge(&self, n: u32, now: u64) {
        if n > 0 && self.take(n, 0, now) == Taken::Doubt {
            self.debt.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// Tokens to be had at `now`: those held here, and those that the store was last known to have.
    pub(crate) fn left(&self, now: u64) -> u32 {
        let known = self.lease.remaining(LocalMs(now)).unwrap_or_else(|| self.amount(now));
        self.lease.held(LocalMs(now)).saturating_add(known).min(self.plan.largest())
    }

    pub(crate) fn view(&self, now: u64) -> CeilingView {
        CeilingView {
            window_ms: self.limit.window_ms,
            unit: self.limit.unit,
            limit: u64::from(self.limit.amount),
            kind: CeilingKind::Static,
            used: u64::from(self.amount(now).saturating_sub(self.left(now))),
        }
    }

    fn amount(&self, now: u64) -> u32 {
        self.plan.amount(self.plan.number(StoreMs(now)))
    }
}

impl Ceiling for Leased {
    fn limit(&self) -> &Limit {
        &self.limit
    }

    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn take(&self, n: u32, leave: u32, now: u64) -> Taken {
        let taken = self.lease.take_leaving(n, leave, LocalMs(now));
        if taken == Taken::Doubt {
            self.wanted.fetch_max(n, Ordering::Relaxed);
        }
        taken
    }

    fn put_back(&self, window: u32, n: u32) {
        self.lease.put_back(window, n);
    }

    fn when(&self, n: u32, now: u64) -> u64 {
        self.lease.when(n, LocalMs(now)).0
    }
}
