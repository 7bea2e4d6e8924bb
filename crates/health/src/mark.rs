//! What the outcome of an attempt says about the endpoint's health. Poison requests hurt nobody: a timeout, a 5xx
//! or garbage counts only when another endpoint answered the same call; otherwise the probes decide. Pure.

/// How one attempt of a call ended, as far as health is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tried {
    /// An answer worth having: `ok`, `client_fault`, `capability`.
    Answered,
    /// Nothing about the endpoint's health: a rate limit, a quota, the client going away, our own deadline before
    /// anything was sent.
    Neutral,
    /// No connection, or one that broke: always the endpoint's.
    Connection,
    /// A timeout, a 5xx, garbage, a 400 whose body decides nothing: the call may be to blame.
    Doubtful,
    /// The endpoint says itself that it cannot serve: it is syncing, or refuses the key (confirmed by a probe).
    Unfit,
}

/// What to tell the tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// [`crate::Tracker::served`].
    Served,
    /// [`crate::Tracker::failed`].
    Failed,
    /// Nothing.
    None,
}

/// The mark of one attempt, given whether another endpoint answered the same call.
#[must_use]
pub fn mark(tried: Tried, answered_elsewhere: bool) -> Mark {
    match tried {
        Tried::Answered => Mark::Served,
        Tried::Neutral => Mark::None,
        Tried::Connection | Tried::Unfit => Mark::Failed,
        Tried::Doubtful if answered_elsewhere => Mark::Failed,
        Tried::Doubtful => Mark::None,
    }
}

/// The marks of all attempts of one call, each at another endpoint, in the same order; to be asked when the call
/// is over.
pub fn marks(attempts: &[Tried]) -> impl Iterator<Item = Mark> + '_ {
    let answered = attempts.contains(&Tried::Answered);
    attempts.iter().map(move |tried| mark(*tried, answered))
}

#[cfg(test)]
mod tests {
    use super::Tried::{Answered, Connection, Doubtful, Neutral, Unfit};
    use super::*;

    fn check(attempts: &[Tried], expected: &str) {
        let letters = marks(attempts).map(|mark| match mark {
            Mark::Served => 's',
            Mark::Failed => 'f',
            Mark::None => '-',
        });
        assert_eq!(letters.collect::<String>(), expected, "{attempts:?}");
    }

    // Kills: marking a doubtful failure without a second opinion.
    #[test]
    fn a_poison_request_hurts_nobody() {
        check(&[Doubtful, Doubtful, Doubtful], "---");
        check(&[Doubtful], "-");
        check(&[Doubtful, Neutral], "--");
    }

    #[test]
    fn an_answer_elsewhere_convicts_those_that_failed() {
        check(&[Doubtful, Answered], "fs");
        check(&[Doubtful, Neutral, Doubtful, Answered], "f-fs");
    }

    #[test]
    fn connection_failures_and_confessions_always_count() {
        check(&[Connection], "f");
        check(&[Connection, Doubtful], "f-");
        check(&[Unfit, Connection, Answered], "ffs");
    }
}
