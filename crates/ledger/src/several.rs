//! Several static ceilings of one account at once: all of them give, or none does. Decides only that; each ceiling
//! counts for itself.

use crate::ticket::NAMED;
use crate::{CeilingKind, Cost, Limit, Plan, Take, Taken, Ticket, Unit};

/// One static ceiling, however it comes by its tokens.
pub(crate) trait Ceiling {
    fn limit(&self) -> &Limit;
    fn plan(&self) -> &Plan;
    /// Takes `n` tokens of the running window, or none; none also if fewer than `leave` would be left.
    fn take(&self, n: u32, leave: u32, now: u64) -> Taken;
    fn put_back(&self, window: u32, n: u32);
    /// When `n`, which must not exceed the plan's largest window, may be had from `now` on.
    fn when(&self, n: u32, now: u64) -> u64;
}

/// All or nothing over every limit: before one that does not give, what the others gave is put back. What `ahead` costs
/// is left everywhere.
pub(crate) fn take<C: Ceiling>(ceilings: &[C], cost: Cost, ahead: Cost, now: u64) -> Take {
    if let Some(largest) = too_big(ceilings, cost) {
        return Take::TooBig { largest };
    }
    let mut ticket = Ticket::free(cost);
    for (i, ceiling) in ceilings.iter().enumerate() {
        let n = cost.of(ceiling.limit().unit);
        if n == 0 {
            continue;
        }
        match ceiling.take(n, ahead.of(ceiling.limit().unit), now) {
            Taken::Yes(spent) => {
                ticket.ends = ticket.ends.min(spent.ends);
                if let Some(window) = ticket.windows.get_mut(i) {
                    *window = spent.window;
                }
            }
            Taken::Doubt => {
                put_back(&ceilings[..i], &ticket);
                return Take::Doubt;
            }
            Taken::Dry { .. } => {
                put_back(&ceilings[..i], &ticket);
                return Take::Dry { again_at: when(ceilings, cost, now), kind: CeilingKind::Static };
            }
        }
    }
    Take::Granted(ticket)
}

/// When all of `cost`, which must fit every window whole, may be had.
pub(crate) fn when<C: Ceiling>(ceilings: &[C], cost: Cost, now: u64) -> u64 {
    ceilings.iter().map(|c| c.when(cost.of(c.limit().unit), now)).max().unwrap_or(now)
}

/// Whether `cost` fits every ceiling's largest window.
pub(crate) fn fits<C: Ceiling>(ceilings: &[C], cost: Cost) -> bool {
    ceilings.iter().all(|c| cost.of(c.limit().unit) <= c.plan().largest())
}

/// The most requests of such a cost that fit a window whole, if `cost` does not.
fn too_big<C: Ceiling>(ceilings: &[C], cost: Cost) -> Option<u32> {
    if fits(ceilings, cost) {
        return None;
    }
    let fitting = |c: &C| {
        let whole = u64::from(c.plan().largest()) * u64::from(cost.requests);
        whole.checked_div(u64::from(cost.of(c.limit().unit))).unwrap_or(u64::MAX)
    };
    ceilings.iter().map(fitting).min().map(|n| n.min(u64::from(u32::MAX)) as u32)
}

pub(crate) fn put_back<C: Ceiling>(ceilings: &[C], ticket: &Ticket) {
    for (ceiling, window) in ceilings.iter().zip(ticket.windows).take(NAMED) {
        let n = ticket.cost.of(ceiling.limit().unit);
        if n > 0 {
            ceiling.put_back(window, n);
        }
    }
}

/// How many requests of `units` compute units each `left` tokens of `unit` make.
pub(crate) fn parts(left: u32, units: u32, unit: Unit) -> u64 {
    left.checked_div(Cost { requests: 1, units }.of(unit)).map_or(u64::MAX, u64::from)
}
