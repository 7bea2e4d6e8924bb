//! What an attempt does when the connection that had been kept for it closed under it: it goes on over a fresh one, once, and
//! nobody is blamed. The provider may have counted what was written, so the account pays for both. Decides whether the call
//! may be sent a second time, as `retry` does for another endpoint.

use super::{Hunt, spend};
use crate::exchange::{Ask, Outcome, Stale, attempt_again};
use crate::record::Attempt;
use crate::route::Safety;
use crate::select::room;
use crate::upstream::Lost;
use crate::why::What;
use std::time::Instant;

impl Hunt<'_> {
    /// What the attempt comes to; `note` tells the second sending. What was paid first is good until `paid_until`. `None`: nothing was sent,
    /// and there are no tokens to send it now.
    pub(super) async fn again(
        &mut self,
        stale: Stale,
        ask: &Ask<'_>,
        note: &mut Attempt<'_>,
        paid_until: u64,
        limit: Instant,
    ) -> Option<Outcome> {
        let (request, lost) = (self.request, stale.lost);
        if lost == Lost::Unknown && self.need.safety == Safety::Once {
            return Some(Outcome::Broken(stale.how));
        }
        self.maybe_done |= lost == Lost::Unknown;
        let (number, how) = (request.number(note.index), stale.how.clone());
        let endpoint = request.chain.at(note.index);
        let pay = || {
            note.sent_at = crate::clock::unix_ms();
            let paid = (lost == Lost::Unwritten && note.sent_at < paid_until) || self.pay_again(note);
            if paid {
                request.tell(What::SentAgain { endpoint: number, how });
                request.worker.metrics.retry(request.chain, "closed");
            }
            paid
        };
        match attempt_again(request, endpoint, ask, stale, limit, pay).await {
            Ok(outcome) => Some(outcome),
            Err(_) if lost == Lost::Unwritten => None,
            Err(stale) => Some(Outcome::Broken(stale.how)),
        }
    }

    /// Takes what the second sending costs, and spends it at once. False: there is none to be had now.
    fn pay_again(&self, note: &Attempt<'_>) -> bool {
        let endpoint = self.request.chain.at(note.index);
        let ticket = if note.overflow { Ok(None) } else { room::take(endpoint, &self.wish(note.cost)) };
        ticket.is_ok_and(|ticket| spend(endpoint, ticket, note.cost, note.sent_at))
    }
}
