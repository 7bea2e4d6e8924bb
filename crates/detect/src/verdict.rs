//! The vocabulary of judgements: what an answer says, about whom, and by which rule. Data only.

use std::time::Duration;

/// What an answer says. Ordered from harmless to worst; a batch's verdict is its worst item's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// A usable answer.
    Ok,
    /// The client's own doing: a revert, bad parameters, a result cap, a sender's limit.
    ClientFault,
    /// This endpoint cannot serve this request, another one might.
    Capability,
    /// The endpoint failed, or said something no rule knows.
    UpstreamFault,
    /// The endpoint is behind its chain.
    Syncing,
    /// A limit on the rate of requests was reached.
    RateLimited,
    /// What was paid for, or granted per day or month, is used up.
    QuotaExhausted,
    /// The provider does not accept our credentials, our address or our account.
    Auth,
}

impl Verdict {
    /// All verdicts, from harmless to worst.
    pub const ALL: [Verdict; 8] = [
        Verdict::Ok,
        Verdict::ClientFault,
        Verdict::Capability,
        Verdict::UpstreamFault,
        Verdict::Syncing,
        Verdict::RateLimited,
        Verdict::QuotaExhausted,
        Verdict::Auth,
    ];

    /// The name used in rules, metrics and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::ClientFault => "client_fault",
            Verdict::Capability => "capability",
            Verdict::UpstreamFault => "upstream_fault",
            Verdict::Syncing => "syncing",
            Verdict::RateLimited => "rate_limited",
            Verdict::QuotaExhausted => "quota_exhausted",
            Verdict::Auth => "auth",
        }
    }

    /// Whether the provider said that it has had enough of us: the verdicts that carry a wait.
    pub const fn is_limit(self) -> bool {
        matches!(self, Verdict::RateLimited | Verdict::QuotaExhausted)
    }

    /// What a verdict is about when its rule does not say.
    pub const fn usual_scope(self) -> Scope {
        match self {
            Verdict::Ok | Verdict::ClientFault | Verdict::Capability => Scope::Request,
            Verdict::RateLimited | Verdict::QuotaExhausted | Verdict::Auth => Scope::Account,
            Verdict::Syncing | Verdict::UpstreamFault => Scope::Endpoint,
        }
    }
}

/// What a verdict is about: nothing but the request, or what has to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Only this request.
    Request,
    /// This method at this endpoint.
    Method,
    /// The account the limit belongs to.
    Account,
    /// The sender of the transaction.
    Sender,
    /// Our address: every endpoint on that host.
    Address,
    /// The endpoint.
    Endpoint,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Scope; 6] =
        [Scope::Request, Scope::Method, Scope::Account, Scope::Sender, Scope::Address, Scope::Endpoint];

    /// The name used in rules, metrics and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Request => "request",
            Scope::Method => "method",
            Scope::Account => "account",
            Scope::Sender => "sender",
            Scope::Address => "address",
            Scope::Endpoint => "endpoint",
        }
    }
}

/// What within a verdict changes the reaction to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Nothing more is known.
    None,
    /// The method is not served here.
    MethodUnsupported,
    /// The block, state or receipt asked for is not here.
    StateMissing,
    /// The block range asked for is wider than this endpoint allows.
    RangeTooWide,
    /// The request or the response is larger than this endpoint allows.
    TooLarge,
    /// The batch has more calls than this endpoint allows, or batches are not served at all.
    BatchTooLarge,
    /// The query matches more results than anyone returns.
    ResultCap,
    /// The transaction is in the pool already.
    AlreadyKnown,
    /// The transaction's nonce is used already.
    NonceTooLow,
    /// The endpoint ran out of time.
    Timeout,
    /// The quota is one per day.
    QuotaDaily,
    /// The limit is one on connections or subscriptions.
    Connections,
    /// The body decided nothing, only the status or the default did.
    Undecided,
}

impl Detail {
    /// All details.
    pub const ALL: [Detail; 13] = [
        Detail::None,
        Detail::MethodUnsupported,
        Detail::StateMissing,
        Detail::RangeTooWide,
        Detail::TooLarge,
        Detail::BatchTooLarge,
        Detail::ResultCap,
        Detail::AlreadyKnown,
        Detail::NonceTooLow,
        Detail::Timeout,
        Detail::QuotaDaily,
        Detail::Connections,
        Detail::Undecided,
    ];

    /// The name used in rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Detail::None => "none",
            Detail::MethodUnsupported => "method_unsupported",
            Detail::StateMissing => "state_missing",
            Detail::RangeTooWide => "range_too_wide",
            Detail::TooLarge => "too_large",
            Detail::BatchTooLarge => "batch_too_large",
            Detail::ResultCap => "result_cap",
            Detail::AlreadyKnown => "already_known",
            Detail::NonceTooLow => "nonce_too_low",
            Detail::Timeout => "timeout",
            Detail::QuotaDaily => "quota_daily",
            Detail::Connections => "connections",
            Detail::Undecided => "undecided",
        }
    }
}

/// The window a refusal states: "25 requests per second".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NamedWindow {
    /// The window's length in seconds, at least 1.
    pub seconds: u32,
    /// Requests allowed in it; `None` when the refusal counts something else, or says no number.
    pub limit: Option<u64>,
}

/// Which rule decided. [`crate::Rules::name`] knows its name; ids are dense, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(pub(crate) u16);

impl RuleId {
    /// A usable answer; nothing was looked for.
    pub const SUCCESS: RuleId = RuleId(0);
    /// A message the server sent on its own.
    pub const NOTIFICATION: RuleId = RuleId(1);
    /// No body where there should be one.
    pub const EMPTY: RuleId = RuleId(2);
    /// The body ends inside its JSON.
    pub const TRUNCATED: RuleId = RuleId(3);
    /// JSON with neither a result nor an error.
    pub const NO_RESULT: RuleId = RuleId(4);
    /// No rule knew the answer. Count these: new texts surface here.
    pub const UNKNOWN: RuleId = RuleId(5);

    pub(crate) const FIXED: [&'static str; 6] =
        ["success", "notification", "empty", "truncated", "no_result", "unknown"];

    /// The id as an index, below [`crate::Rules::len`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// What it says.
    pub verdict: Verdict,
    /// What it is about.
    pub scope: Scope,
    /// How long the provider asks to wait: raw, not clamped. Only with a limit.
    pub wait: Option<Duration>,
    /// The rule that decided.
    pub rule: RuleId,
    /// What changes the reaction.
    pub detail: Detail,
    /// The window a limit states.
    pub window: Option<NamedWindow>,
}

impl Judgement {
    pub(crate) const SUCCESS: Judgement = Judgement::fixed(Verdict::Ok, RuleId::SUCCESS, Detail::None);

    pub(crate) const fn fixed(verdict: Verdict, rule: RuleId, detail: Detail) -> Judgement {
        Judgement { verdict, scope: verdict.usual_scope(), wait: None, rule, detail, window: None }
    }

    /// A call of a batch that got no answer.
    pub const fn missing() -> Judgement {
        Judgement::fixed(Verdict::UpstreamFault, RuleId::NO_RESULT, Detail::None)
    }

    /// The worse of two; the first of equals.
    pub fn worse(self, other: Judgement) -> Judgement {
        if other.verdict > self.verdict { other } else { self }
    }
}
