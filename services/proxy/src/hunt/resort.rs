//! What a request does when nobody is left whom health allows: one attempt at whoever failed longest ago, or the end of
//! the search and why.

use super::{End, Hunt, Picked};
use crate::gates::Permits;
use crate::reply::Problem;
use crate::select::{last_resort, opening};
use crate::why::What;
use ledger::Cost;

impl Hunt<'_> {
    /// Nobody whom health allows is left: one attempt at whoever failed longest ago. A refusal that uses up no attempt
    /// does not end it.
    pub(super) fn resort(&mut self, cost: Cost, permits: Permits) -> Result<Picked, End> {
        let begun = self.resorted_at.is_some();
        let chosen = if begun || self.asked == 0 || self.all_failed() {
            let since = *self.resorted_at.get_or_insert(self.attempts);
            if self.attempts > since { None } else { last_resort(self.request.chain, &self.wish(cost)) }
        } else {
            None
        };
        let Some(index) = chosen else {
            let problem = if self.limited && self.failures == 0 {
                Problem::Saturated { at: self.soonest_opening() }
            } else if self.asked > 0 {
                Problem::AllAttemptsFailed
            } else {
                Problem::NoLiveEndpoint
            };
            return Err(self.end(problem));
        };
        self.request.tell(What::LastResort { endpoint: self.request.number(index) });
        Ok(Picked { index, ticket: None, overflow: None, cost, permits })
    }

    /// Whether nobody who was asked had anything to say.
    fn all_failed(&self) -> bool {
        self.failures > 0 && self.refusal.is_none() && self.bad_request.is_none()
    }

    /// Whether nobody is left whom health allows.
    pub(crate) fn is_last_resort(&self) -> bool {
        self.resorted_at.is_some()
    }

    /// When the first of those that refused for a limit opens again.
    fn soonest_opening(&self) -> u64 {
        let now = crate::clock::unix_ms();
        let endpoints =
            (0u16..).zip(&self.request.chain.endpoints).filter(|(index, _)| self.tried.contains(*index));
        endpoints.filter_map(|(_, endpoint)| opening(endpoint, now)).min().unwrap_or(now)
    }
}
