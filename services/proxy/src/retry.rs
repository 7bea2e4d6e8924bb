//! Whether another attempt is worth it, and whether it may be made at all. Pure.

use crate::route::Safety;
use detect::{Detail, Judgement, Verdict};

/// How an attempt ended, as far as this decision needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    Answered { status: u16, judgement: Judgement },
    Unreachable,
    Broken,
    TimedOut,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The client gets this answer.
    Return,
    /// Ask somebody else. `counts`: it used up one of the attempts that a request has.
    Elsewhere { counts: bool },
    /// It may have been carried out; nobody else may be asked.
    Stop,
}

const FREE: Next = Next::Elsewhere { counts: false };
const COUNTED: Next = Next::Elsewhere { counts: true };

/// Decides on one ended attempt. `second_opinion`: another endpoint answered 400 before.
pub(crate) fn next(ended: &Ended, safety: Safety, second_opinion: bool) -> Next {
    match ended {
        Ended::Unreachable => FREE,
        Ended::Broken | Ended::TimedOut => unknown_outcome(safety),
        Ended::Answered { status, judgement } => match judgement.verdict {
            Verdict::Ok | Verdict::ClientFault => Next::Return,
            Verdict::RateLimited | Verdict::QuotaExhausted | Verdict::Auth | Verdict::Capability => FREE,
            Verdict::Syncing => COUNTED,
            Verdict::UpstreamFault if is_undecided_400(*status, judgement) => {
                if second_opinion {
                    Next::Return
                } else {
                    COUNTED
                }
            }
            // The server refused to take the request: nothing was carried out.
            Verdict::UpstreamFault if (300..500).contains(status) => COUNTED,
            Verdict::UpstreamFault => unknown_outcome(safety),
        },
    }
}

/// HTTP 400 whose body decides nothing: it may be the client's fault or the endpoint's.
pub(crate) fn is_undecided_400(status: u16, judgement: &Judgement) -> bool {
    status == 400 && judgement.detail == Detail::Undecided
}

fn unknown_outcome(safety: Safety) -> Next {
    match safety {
        Safety::Repeatable | Safety::Transaction => COUNTED,
        Safety::Once => Next::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use detect::{Head, Protocol, Rules};

    fn answered(status: u16, verdict: Verdict, detail: Detail) -> Ended {
        let headers = http::HeaderMap::new();
        let any = Rules::builtin().judge(&Head::new(Protocol::Http, &headers, 0), b"");
        Ended::Answered { status, judgement: Judgement { verdict, detail, ..any } }
    }

    #[test]
    fn each_end_has_its_consequence() {
        use Safety::{Once, Repeatable, Transaction};
        let plain = |status, verdict| answered(status, verdict, Detail::None);
        let bad = || answered(400, Verdict::UpstreamFault, Detail::Undecided);
        for (ended, safety, second, expected) in [
            (plain(200, Verdict::Ok), Once, false, Next::Return),
            (plain(200, Verdict::ClientFault), Repeatable, false, Next::Return),
            (plain(429, Verdict::RateLimited), Once, false, FREE),
            (plain(402, Verdict::QuotaExhausted), Repeatable, false, FREE),
            (plain(401, Verdict::Auth), Repeatable, false, FREE),
            (plain(200, Verdict::Capability), Once, false, FREE),
            (plain(503, Verdict::UpstreamFault), Repeatable, false, COUNTED),
            (plain(503, Verdict::UpstreamFault), Once, false, Next::Stop),
            (plain(404, Verdict::UpstreamFault), Once, false, COUNTED),
            (plain(200, Verdict::UpstreamFault), Transaction, false, COUNTED),
            (plain(200, Verdict::Syncing), Repeatable, false, COUNTED),
            (bad(), Repeatable, false, COUNTED),
            (bad(), Repeatable, true, Next::Return),
            (Ended::Unreachable, Once, false, FREE),
            (Ended::TimedOut, Repeatable, false, COUNTED),
            (Ended::TimedOut, Once, false, Next::Stop),
            (Ended::Broken, Transaction, false, COUNTED),
            (Ended::Broken, Once, false, Next::Stop),
        ] {
            assert_eq!(next(&ended, safety, second), expected, "{ended:?} {safety:?} {second}");
        }
    }
}
