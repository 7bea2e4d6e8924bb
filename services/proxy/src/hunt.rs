//! The search for an endpoint that answers one call, or a batch: attempt after attempt until `retry` is content,
//! nobody is left, or time is up. Its only state is who was tried and what became of it.

mod again;
mod place;
mod resort;
mod settle;
mod wait;

use crate::exchange::{Answer, Ask, Outcome, attempt, connected};
use crate::gates::Permits;
use crate::record::{Attempt, record};
use crate::reply::Problem;
use crate::request::Request;
use crate::retry::Ended;
use crate::route::{Need, Safety};
use crate::select::{Choice, Indices, Saturated, Skip, Wish, select};
use crate::why::What;
use config::Role;
use ledger::{Cost, Sender, Ticket};
use place::Place;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Account, Turn};

/// Who is asked next.
pub(crate) struct Picked {
    index: u16,
    ticket: Option<Ticket>,
    overflow: Option<Pass>,
    cost: Cost,
    permits: Permits,
}

/// Leave to overload one account, one at a time; ends when dropped, also when the client goes away.
pub(crate) struct Pass(Arc<Account>);

impl Drop for Pass {
    fn drop(&mut self) {
        self.0.gate.overflow_ended();
    }
}

/// What an attempt led to.
pub(crate) enum Step {
    /// The client gets this.
    Done(Box<Answer>),
    /// Some calls of a batch may be answered; the others are to be asked elsewhere.
    Partly(Box<Answer>),
    /// Somebody else is to be asked.
    Again,
}

/// Why the search ended without an answer to pass on.
pub(crate) enum End {
    /// A refusal, or a 400, that is all anybody had to say.
    Answer(Box<Answer>),
    Problem(Problem),
    /// Nobody has room for all calls of this batch at once, but maybe for some.
    Split,
}

/// The state of one search.
pub(crate) struct Hunt<'a> {
    request: &'a Request<'a>,
    need: Need,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a [u8]>,
    /// Only this endpoint knows the id that the call is about.
    only: Option<u16>,
    tried: Indices,
    /// Who had no tokens to spare when somebody was last chosen.
    dry: Indices,
    /// Where it waits for tokens; `None`: it never did.
    place: Option<Place>,
    /// Attempts of those that are limited in number.
    attempts: u32,
    public_attempts: u32,
    /// All attempts, for the client that wants to know.
    pub(crate) asked: u32,
    pub(crate) last: Option<u16>,
    /// Failed without a second opinion so far: endpoint and when the attempt began.
    suspects: Vec<(u16, u64)>,
    failures: u32,
    limited: bool,
    waited: Duration,
    /// How many attempts had been counted when nobody was left whom health allows.
    resorted_at: Option<u32>,
    /// When tokens were first waited for.
    in_doubt_since: Option<Instant>,
    /// An earlier attempt may have been carried out.
    pub(crate) maybe_done: bool,
    block: Option<u64>,
    range: Option<u64>,
    archive: bool,
    refusal: Option<Box<Answer>>,
    bad_request: Option<Box<Answer>>,
}

impl<'a> Hunt<'a> {
    pub(crate) fn new(
        request: &'a Request<'a>,
        need: Need,
        method: &'a str,
        params: Option<&'a [u8]>,
    ) -> Hunt<'a> {
        Hunt {
            request,
            need,
            method,
            params,
            only: None,
            tried: Indices::default(),
            dry: Indices::default(),
            place: None,
            attempts: 0,
            public_attempts: 0,
            asked: 0,
            last: None,
            suspects: Vec::new(),
            failures: 0,
            limited: false,
            waited: Duration::ZERO,
            resorted_at: None,
            in_doubt_since: None,
            maybe_done: false,
            block: None,
            range: None,
            archive: need.archive,
            refusal: None,
            bad_request: None,
        }
    }

    /// The call spans so many blocks: who takes fewer is not asked, as long as somebody takes them.
    pub(crate) fn span(&mut self, range: u64) {
        let takes = |most: Option<u64>| most.is_none_or(|most| range <= most);
        let anybody = self.request.chain.endpoints.iter().any(|endpoint| takes(endpoint.max_block_range));
        self.range = anybody.then_some(range);
    }

    /// Only `index` knows what the call is about.
    pub(crate) fn pin(&mut self, index: u16) {
        self.only = Some(index);
    }

    /// Who is next; waits for capacity where that is worth it.
    pub(crate) async fn next(&mut self, cost: Cost) -> Result<Picked, End> {
        let picked = self.seek(cost).await;
        if let Some(place) = &mut self.place {
            place.leave();
        }
        picked
    }

    async fn seek(&mut self, cost: Cost) -> Result<Picked, End> {
        loop {
            if self.attempts >= self.request.worker.app.settings.proxy_max_retries {
                return Err(self.end(Problem::AllAttemptsFailed));
            }
            if self.request.left(Instant::now()).is_zero() {
                return Err(self.end(Problem::Deadline));
            }
            let permits = self.admitted().await?;
            match self.choose(cost) {
                Choice::Take { index, ticket } => {
                    return Ok(Picked { index, ticket, overflow: None, cost, permits });
                }
                Choice::Nobody => return self.resort(cost, permits),
                Choice::Doubt => {
                    drop(permits);
                    Box::pin(self.wait_for_tokens()).await;
                }
                Choice::Saturated(saturated) => {
                    // What waits for an opening is not under way.
                    drop(permits);
                    if saturated.tokens && cost.requests > 1 {
                        return Err(End::Split);
                    }
                    if let Some((index, pass)) = Box::pin(self.wait(&saturated, cost)).await? {
                        let permits = self.admitted().await?;
                        return Ok(Picked { index, ticket: None, overflow: Some(pass), cost, permits });
                    }
                }
            }
        }
    }

    fn choose(&mut self, cost: Cost) -> Choice {
        if let Some(choice) = self.preferred(cost) {
            return choice;
        }
        let wish = self.wish(cost);
        let chain = self.request.chain;
        let metrics = &self.request.worker.metrics;
        let mut rng = self.request.worker.rng.borrow_mut();
        let mut dry = Indices::default();
        let choice = select(chain, &wish, &mut *rng, |index, skip| {
            let endpoint = chain.at(index);
            if let Skip::Dry { .. } | Skip::Behind { .. } | Skip::Doubt = skip {
                dry.insert(index);
            }
            if let Skip::Dry { .. } | Skip::Behind { .. } | Skip::Parked { .. } = skip {
                metrics.endpoint(chain, endpoint).skipped.add(1);
            }
            // A park says so itself.
            let level = matches!(skip, Skip::Dry { .. }).then(|| endpoint.account.gate.level());
            let level = level.flatten().map(Box::new);
            self.request.tell(What::Skipped { endpoint: self.request.number(index), skip, level });
        });
        drop(rng);
        self.dry = dry;
        choice
    }

    /// The endpoint that told the client of the newest head, if it may be asked now and nobody was.
    fn preferred(&self, cost: Cost) -> Option<Choice> {
        let chain = self.request.chain;
        let number = self.request.prefer.filter(|_| self.tried.is_empty() && self.only.is_none())?;
        let (index, _) = (0u16..).zip(&chain.endpoints).find(|(_, endpoint)| endpoint.number == number)?;
        let wish = Wish { only: Some(index), may_wait: false, ..self.wish(cost) };
        let mut rng = self.request.worker.rng.borrow_mut();
        let choice = select(chain, &wish, &mut *rng, |_, _| {});
        matches!(choice, Choice::Take { .. }).then_some(choice)
    }

    fn wish(&self, cost: Cost) -> Wish<'_> {
        let app = &self.request.worker.app;
        Wish {
            method: self.method,
            known_method: self.need.known,
            archive: self.archive,
            block: self.block,
            range: self.range,
            only: self.only,
            given_away: self.need.safety == Safety::Transaction && !self.tried.is_empty(),
            may_try: self.need.safety == Safety::Repeatable,
            public: !app.settings.public_first || self.public_attempts < app.settings.public_first_attempts,
            cost,
            may_wait: self.may_wait_for_tokens(),
            turn: self.place.as_ref().map_or(Turn::NEWCOMER, Place::turn),
            now: crate::clock::unix_ms(),
            tried: &self.tried,
            policy: app.selection,
        }
    }

    /// Gives back what was picked and is not asked after all.
    pub(crate) fn put_back(&self, picked: Picked) {
        if let Some(ticket) = picked.ticket {
            self.request.chain.at(picked.index).account.gate.give_back(ticket);
        }
    }

    /// Asks who was picked, records what came of it, and decides.
    pub(crate) async fn ask(&mut self, mut picked: Picked, ask: &Ask<'_>) -> Result<Step, End> {
        let request = self.request;
        let endpoint = request.chain.at(picked.index);
        let begun = Instant::now();
        let limit = request.attempt_limit(begun);
        self.tried.insert(picked.index);
        // A token is good for its window: it is spent when there is a connection to write to, not before.
        let unreachable = match &picked.ticket {
            Some(_) => Box::pin(connected(request, endpoint, limit)).await.err(),
            None => None,
        };
        let paid_until = picked.ticket.as_ref().map_or(u64::MAX, Ticket::ends);
        let mut note = self.note(&picked);
        if !pay(endpoint, &mut picked, unreachable.is_some(), note.sent_at) {
            return Ok(self.choose_again(picked.index));
        }
        self.asked += 1;
        request.dispatching();
        self.last = Some(picked.index);
        self.public_attempts += u32::from(endpoint.role == Role::Public);
        let attempted = match unreachable {
            Some(outcome) => Ok(outcome),
            None => attempt(request, endpoint, ask, picked.permits, note.sent_at, limit).await,
        };
        let outcome = match attempted {
            Ok(outcome) => outcome,
            Err(stale) => match Box::pin(self.again(*stale, ask, &mut note, paid_until, limit)).await {
                Some(outcome) => outcome,
                None => return Ok(self.choose_again(picked.index)),
            },
        };
        let over = Instant::now();
        note.took = over.saturating_duration_since(begun);
        let ended = self.told(picked.index, &outcome, over, note.took);
        if record(request, &note, &ended, &outcome) {
            self.suspects.push((picked.index, note.sent_at));
        }
        self.decide(picked.index, &ended, outcome)
    }

    /// What will be recorded of an attempt that is sent now.
    fn note(&self, picked: &Picked) -> Attempt<'a> {
        Attempt {
            index: picked.index,
            method: self.method,
            known_method: self.need.known,
            cost: picked.cost,
            overflow: picked.overflow.is_some(),
            sent_at: crate::clock::unix_ms(),
            took: Duration::ZERO,
            protocol: self.request.chain.at(picked.index).call_protocol(),
        }
    }

    /// The window of its token ended between its grant and now, and nothing was sent.
    fn choose_again(&mut self, index: u16) -> Step {
        self.tried.remove(index);
        Step::Again
    }

    fn told(&self, index: u16, outcome: &Outcome, over: Instant, took: Duration) -> Ended {
        let endpoint = self.request.number(index);
        let (ended, how) = match outcome {
            Outcome::Answered(answer) => {
                let (status, judgement) = (answer.status.as_u16(), answer.judgement);
                self.request.tell_of(over, What::Answered { endpoint, status, judgement, took });
                return Ended::Answered { status, judgement };
            }
            Outcome::Unreachable(how) => (Ended::Unreachable, how.clone()),
            Outcome::Broken(how) => (Ended::Broken, how.clone()),
            Outcome::TimedOut => (Ended::TimedOut, "timed out".to_owned()),
        };
        let (chain, id) = (&self.request.chain.name, &self.request.chain.at(index).id);
        tracing::debug!(%chain, endpoint = %id, %how, "attempt failed");
        self.request.tell_of(over, What::Failed { endpoint, how, took });
        ended
    }
}

/// Spends the ticket, or counts a dispatch that needed none; what nobody could be asked for is given back. False: the
/// ticket has ended.
fn pay(endpoint: &crate::fleet::Endpoint, picked: &mut Picked, unreachable: bool, now: u64) -> bool {
    match picked.ticket.take() {
        Some(ticket) if unreachable => {
            endpoint.account.gate.give_back(ticket);
            true
        }
        ticket => spend(endpoint, ticket, picked.cost, now),
    }
}

/// Counts what is sent `now`, with its ticket if there is a ceiling. False: the ticket's window has ended.
fn spend(endpoint: &crate::fleet::Endpoint, ticket: Option<Ticket>, cost: Cost, now: u64) -> bool {
    let gate = &endpoint.account.gate;
    match ticket {
        Some(ticket) => gate.sent(ticket, now),
        None => {
            gate.charge(cost, Sender::Client, now);
            true
        }
    }
}
