//! Several static ceilings of one account at once: all of them give, or none does. Decides only that; each ceiling
//! counts for itself.

use crate::fixed::Fixed;
use crate::ticket::NAMED;
use crate::{CeilingKind, Cost, Take, Ticket};

/// All or nothing over every limit: the first that is dry gives back what the others gave.
pub(crate) fn take(fixed: &[Fixed], cost: Cost, now: u64) -> Take {
    if let Some(largest) = too_big(fixed, cost) {
        return Take::TooBig { largest };
    }
    let mut ticket = Ticket::free(cost);
    for (i, ceiling) in fixed.iter().enumerate() {
        let n = cost.of(ceiling.limit.unit);
        if n == 0 {
            continue;
        }
        match ceiling.take(n, now) {
            Some(spent) => {
                ticket.ends = ticket.ends.min(spent.ends);
                if let Some(window) = ticket.windows.get_mut(i) {
                    *window = spent.window;
                }
            }
            None => {
                put_back(&fixed[..i], &ticket);
                let again = fixed.iter().map(|f| f.when(cost.of(f.limit.unit), now)).max();
                return Take::Dry { again_at: again.unwrap_or(now), kind: CeilingKind::Static };
            }
        }
    }
    Take::Granted(ticket)
}

/// The most requests of such a cost that fit a window whole, if `cost` does not.
fn too_big(fixed: &[Fixed], cost: Cost) -> Option<u32> {
    let exceeds = |f: &Fixed| cost.of(f.limit.unit) > f.plan.largest();
    if !fixed.iter().any(exceeds) {
        return None;
    }
    let fitting = |f: &Fixed| {
        let whole = u64::from(f.plan.largest()) * u64::from(cost.requests);
        whole.checked_div(u64::from(cost.of(f.limit.unit))).unwrap_or(u64::MAX)
    };
    fixed.iter().map(fitting).min().map(|n| n.min(u64::from(u32::MAX)) as u32)
}

pub(crate) fn put_back(fixed: &[Fixed], ticket: &Ticket) {
    for (ceiling, window) in fixed.iter().zip(ticket.windows).take(NAMED) {
        let n = ticket.cost.of(ceiling.limit.unit);
        if n > 0 {
            ceiling.put_back(window, n);
        }
    }
}
