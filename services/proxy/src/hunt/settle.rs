//! What ended attempts add up to: whether the search goes on, who is to blame, and what the client gets when nobody is
//! left. It asks nobody.

use super::{End, Hunt, Step};
use crate::exchange::{Answer, Outcome, Rest};
use crate::reply::Problem;
use crate::retry::{self, Ended, Next};
use crate::route::{BlockWanted, Safety, block_wanted};
use detect::{Detail, Verdict};
use std::time::Instant;

impl Hunt<'_> {
    /// What one ended attempt means for the search.
    pub(super) fn decide(&mut self, index: u16, ended: &Ended, outcome: Outcome) -> Result<Step, End> {
        let next = retry::next(ended, self.need.safety, self.bad_request.is_some());
        if let Ended::Answered { judgement, .. } = ended {
            self.limited |= judgement.verdict.is_limit();
        }
        let kept_to_itself = self.need.safety == Safety::Transaction && self.request.chain.at(index).private;
        match (next, outcome) {
            (Next::Return, Outcome::Answered(answer)) => {
                self.answered(index, &answer);
                Ok(Step::Done(answer))
            }
            (Next::Elsewhere { counts }, outcome) => {
                self.attempts += u32::from(counts);
                self.maybe_done |= self.unknown_outcome(ended);
                self.count_retry(ended);
                let outcome = match partly(outcome) {
                    Ok(answer) => return Ok(Step::Partly(answer)),
                    Err(outcome) => outcome,
                };
                self.keep(outcome);
                // Of a private endpoint's attempts there is but the first: nobody else can have carried it out.
                if self.maybe_done && kept_to_itself {
                    return Err(self.end(Problem::AllAttemptsFailed));
                }
                Ok(Step::Again)
            }
            (Next::Stop | Next::Return, _) => {
                self.failures += 1;
                let late = matches!(ended, Ended::TimedOut) && self.request.left(Instant::now()).is_zero();
                Err(self.end(if late { Problem::Deadline } else { Problem::AllAttemptsFailed }))
            }
        }
    }

    /// Whether the attempt may have been carried out although nobody said so.
    fn unknown_outcome(&self, ended: &Ended) -> bool {
        match ended {
            Ended::Unreachable => false,
            Ended::Broken | Ended::TimedOut => true,
            Ended::Answered { status, judgement } => {
                judgement.verdict == Verdict::UpstreamFault && !(300..500).contains(status)
            }
        }
    }

    /// An answer that turned out to lack what others may have: it is kept in case nobody has it.
    pub(crate) fn lacks(&mut self, answer: Box<Answer>) {
        self.state_missing();
        self.refusal.get_or_insert(answer);
    }

    /// An answer worth having: it convicts those who failed the same call.
    fn answered(&mut self, index: u16, answer: &Answer) {
        if !self.suspects.is_empty() && matches!(answer.judgement.verdict, Verdict::Ok | Verdict::ClientFault)
        {
            crate::record::convict(self.request, &self.suspects, index);
            self.suspects.clear();
        }
    }

    /// Keeps what may be all that anybody has to say.
    fn keep(&mut self, outcome: Outcome) {
        let Outcome::Answered(mut answer) = outcome else {
            self.failures += 1;
            return;
        };
        // The next attempt must not wait for a place that this request holds itself.
        answer.rest.iter_mut().for_each(Rest::step_aside);
        match answer.judgement.verdict {
            Verdict::Capability => {
                if answer.judgement.detail == Detail::StateMissing {
                    self.state_missing();
                }
                self.refusal.get_or_insert(answer);
            }
            Verdict::RateLimited | Verdict::QuotaExhausted => {}
            Verdict::UpstreamFault if retry::is_undecided_400(answer.status.as_u16(), &answer.judgement) => {
                self.bad_request.get_or_insert(answer);
            }
            Verdict::Ok
            | Verdict::ClientFault
            | Verdict::Auth
            | Verdict::Syncing
            | Verdict::UpstreamFault => {
                self.failures += 1;
            }
        }
    }

    /// Behind is not pruned: a recent block may be at any endpoint whose head has reached it, an older one only
    /// at those that keep everything.
    fn state_missing(&mut self) {
        match block_wanted(self.method, self.params) {
            BlockWanted::Number(block) => {
                let head = self.request.chain.head.get();
                if head > 0 && block.saturating_add(128) < head {
                    self.archive |= self.request.chain.endpoints.iter().any(|endpoint| endpoint.archive);
                } else {
                    self.block = Some(block);
                }
            }
            BlockWanted::Earliest => {
                self.archive |= self.request.chain.endpoints.iter().any(|endpoint| endpoint.archive);
            }
            BlockWanted::Unknown => {}
        }
    }

    fn count_retry(&self, ended: &Ended) {
        let reason = match ended {
            Ended::Unreachable => "unreachable",
            Ended::Broken => "broken",
            Ended::TimedOut => "timeout",
            Ended::Answered { judgement, .. } => judgement.verdict.as_str(),
        };
        self.request.worker.metrics.retry(self.request.chain, reason);
    }

    /// What the client gets when the search ends with `problem`.
    pub(super) fn end(&mut self, problem: Problem) -> End {
        if let Some(answer) = self.bad_request.take() {
            return End::Answer(answer);
        }
        match (self.refusal.take(), problem) {
            (Some(answer), Problem::AllAttemptsFailed | Problem::NoLiveEndpoint) => End::Answer(answer),
            (_, problem) => End::Problem(problem),
        }
    }
}

/// An answer to a batch that says something of its calls, one by one or of all at once.
fn partly(outcome: Outcome) -> Result<Box<Answer>, Outcome> {
    match outcome {
        Outcome::Answered(answer) if answer.batch && !answer.items.is_empty() => Ok(answer),
        Outcome::Answered(_) | Outcome::Unreachable(_) | Outcome::Broken(_) | Outcome::TimedOut => {
            Err(outcome)
        }
    }
}
