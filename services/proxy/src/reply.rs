//! What the client sees when we answer ourselves: the only place that turns a failure into a status and a
//! JSON-RPC error. It names no URL, key or provider.

use crate::net::Body;
use crate::socket::BadUpgrade;
use crate::why::RequestId;
use ::clients::{Refusal, Standing};
use http::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, SEC_WEBSOCKET_VERSION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use jsonrpc::Malformed;
use rand::Rng;

/// Why a request, or a call of a batch, has no answer from an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    UnknownChain,
    /// A GET on a chain that asks for no WebSocket.
    NeedsPost,
    /// The request wants a WebSocket and does not ask for it rightly.
    BadUpgrade(BadUpgrade),
    /// Without a key where one is needed, or with one that nobody has, or has any more.
    Unauthorized,
    /// The client may not use this chain, or call this method.
    Forbidden,
    /// The client is at a limit of its own.
    ClientLimit(Refusal),
    /// More than a limit of the client ever has: waiting does not help.
    CostExceedsLimit {
        dimension: &'static str,
        limit: u64,
    },
    BodyTooLarge {
        most: u64,
    },
    /// The client sent its body too slowly.
    SlowBody,
    /// The client's connection broke while it sent its body.
    BrokenBody,
    Malformed(Malformed),
    /// All live endpoints are at their limits; the first opens then (Unix milliseconds).
    Saturated {
        at: u64,
    },
    NoLiveEndpoint,
    AllAttemptsFailed,
    Deadline,
    /// We are at a limit of our own; so many seconds later it is worth another try.
    Overloaded {
        after_s: u64,
    },
    FilterNotFound,
    /// The client's socket has as many subscriptions as it may.
    TooManySubscriptions {
        most: usize,
    },
    /// A bug of ours.
    Internal,
}

/// Whole seconds within which those who were turned away come back, not all at once.
const COME_BACK: std::ops::RangeInclusive<u64> = 1..=3;

const GET_NEEDS_UPGRADE: &str = "GET requests to this endpoint are only supported for WebSocket upgrade requests. \
                                 Otherwise, please use POST.";

impl Problem {
    /// We are at a limit of our own.
    pub(crate) fn overloaded(rng: &mut impl Rng) -> Problem {
        Problem::Overloaded { after_s: rng.random_range(COME_BACK) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Problem::UnknownChain => StatusCode::NOT_FOUND,
            Problem::BadUpgrade(bad) => bad.status(),
            Problem::Unauthorized => StatusCode::UNAUTHORIZED,
            Problem::Forbidden => StatusCode::FORBIDDEN,
            Problem::ClientLimit(_) => StatusCode::TOO_MANY_REQUESTS,
            Problem::CostExceedsLimit { .. } => StatusCode::BAD_REQUEST,
            Problem::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Problem::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Problem::NeedsPost | Problem::BrokenBody | Problem::Malformed(_) => StatusCode::BAD_REQUEST,
            Problem::Saturated { .. } | Problem::TooManySubscriptions { .. } => StatusCode::TOO_MANY_REQUESTS,
            Problem::NoLiveEndpoint | Problem::Overloaded { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Problem::AllAttemptsFailed => StatusCode::BAD_GATEWAY,
            Problem::Deadline => StatusCode::GATEWAY_TIMEOUT,
            Problem::FilterNotFound => StatusCode::OK,
            Problem::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The word in `data.reason`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Problem::UnknownChain => "unknown_chain",
            Problem::NeedsPost => "use_post",
            Problem::BadUpgrade(BadUpgrade::Origin) => "origin_not_allowed",
            Problem::BadUpgrade(_) => "bad_upgrade",
            Problem::Unauthorized => "unauthorized",
            Problem::Forbidden => "forbidden",
            Problem::ClientLimit(_) => "client_limit",
            Problem::CostExceedsLimit { .. } => "cost_exceeds_limit",
            Problem::BodyTooLarge { .. } => "body_too_large",
            Problem::SlowBody => "slow_body",
            Problem::BrokenBody => "broken_body",
            Problem::Malformed(Malformed::Empty | Malformed::NotJson(_)) => "not_json",
            Problem::Malformed(Malformed::BatchTooLarge { .. }) => "batch_too_large",
            Problem::Malformed(Malformed::EmptyBatch | Malformed::TooDeep | Malformed::NotACall { .. }) => {
                "invalid_request"
            }
            Problem::Saturated { .. } => "saturated",
            Problem::NoLiveEndpoint => "no_live_endpoint",
            Problem::AllAttemptsFailed => "all_attempts_failed",
            Problem::Deadline => "deadline",
            Problem::Overloaded { .. } => "overloaded",
            Problem::FilterNotFound => "filter_not_found",
            Problem::TooManySubscriptions { .. } => "too_many_subscriptions",
            Problem::Internal => "internal",
        }
    }

    fn code(&self) -> i32 {
        match self {
            Problem::UnknownChain => jsonrpc::METHOD_NOT_FOUND,
            Problem::Unauthorized | Problem::Forbidden => jsonrpc::UNAUTHORIZED,
            Problem::NeedsPost
            | Problem::BadUpgrade(_)
            | Problem::BodyTooLarge { .. }
            | Problem::SlowBody
            | Problem::BrokenBody
            | Problem::CostExceedsLimit { .. } => jsonrpc::INVALID_REQUEST,
            Problem::Malformed(malformed) => malformed.code(),
            Problem::Saturated { .. } | Problem::ClientLimit(_) | Problem::TooManySubscriptions { .. } => {
                jsonrpc::LIMITED
            }
            Problem::FilterNotFound => -32000,
            Problem::NoLiveEndpoint
            | Problem::AllAttemptsFailed
            | Problem::Deadline
            | Problem::Overloaded { .. }
            | Problem::Internal => jsonrpc::INTERNAL,
        }
    }

    fn message(&self) -> String {
        match self {
            Problem::UnknownChain => "no such chain".into(),
            // The predecessor's words, which clients may look for.
            Problem::NeedsPost => GET_NEEDS_UPGRADE.into(),
            Problem::BadUpgrade(bad) => bad.message().into(),
            Problem::Unauthorized => "a valid key is needed".into(),
            Problem::Forbidden => "this client may not make this call on this chain".into(),
            Problem::ClientLimit(_) => "this client is at its own limit".into(),
            Problem::CostExceedsLimit { dimension, limit } => {
                format!("the request costs more than this client's limit of {limit} {dimension} ever allows")
            }
            Problem::BodyTooLarge { most } => format!("the request body is larger than {most} bytes"),
            Problem::SlowBody => "the request body did not arrive in time".into(),
            Problem::BrokenBody => "the request body broke off".into(),
            Problem::Malformed(malformed) => malformed.to_string(),
            Problem::Saturated { .. } => "every endpoint of this chain is at its rate limit".into(),
            Problem::NoLiveEndpoint => "no endpoint of this chain can serve this request".into(),
            Problem::AllAttemptsFailed => "every endpoint that was asked failed".into(),
            Problem::Deadline => "no endpoint answered in time".into(),
            Problem::Overloaded { .. } => "this proxy is at its own limit".into(),
            Problem::FilterNotFound => "filter not found".into(),
            Problem::TooManySubscriptions { most } => {
                format!("this socket has {most} subscriptions, which is the most")
            }
            Problem::Internal => "internal error".into(),
        }
    }

    /// Whether it is about who asked: counted as such.
    pub(crate) fn is_about_the_caller(&self) -> bool {
        matches!(
            self,
            Problem::Unauthorized
                | Problem::Forbidden
                | Problem::ClientLimit(_)
                | Problem::CostExceedsLimit { .. }
        )
    }

    /// Whole seconds from `now` until another try makes sense, at least 1 and never before the opening.
    fn retry_after(&self, now: u64) -> Option<u64> {
        self.retry_in_ms(now).map(|millis| millis.div_ceil(1000).max(1))
    }

    fn retry_in_ms(&self, now: u64) -> Option<u64> {
        match self {
            Problem::Saturated { at } => Some(at.saturating_sub(now)),
            Problem::ClientLimit(refusal) => Some(refusal.retry_in_ms),
            Problem::Overloaded { after_s } => Some(after_s * 1000),
            Problem::UnknownChain
            | Problem::NeedsPost
            | Problem::BadUpgrade(_)
            | Problem::Unauthorized
            | Problem::Forbidden
            | Problem::CostExceedsLimit { .. }
            | Problem::BodyTooLarge { .. }
            | Problem::SlowBody
            | Problem::BrokenBody
            | Problem::Malformed(_)
            | Problem::NoLiveEndpoint
            | Problem::AllAttemptsFailed
            | Problem::Deadline
            | Problem::FilterNotFound
            | Problem::TooManySubscriptions { .. }
            | Problem::Internal => None,
        }
    }

    /// Appends this as the JSON-RPC error of one call.
    pub(crate) fn write(&self, id: Option<&[u8]>, request: RequestId, now: u64, out: &mut Vec<u8>) {
        let mut data = serde_json::json!({ "reason": self.reason(), "request_id": request.to_string() });
        if let Some(seconds) = self.retry_after(now) {
            data["retry_after_s"] = seconds.into();
            data["retry_after_ms"] = self.retry_in_ms(now).into();
        }
        jsonrpc::error(out, id, self.code(), &self.message(), &data);
    }

    /// The whole answer to a single call or to a body that cannot be read.
    pub(crate) fn respond(&self, id: Option<&[u8]>, request: RequestId, now: u64) -> Response<Body> {
        let mut body = Vec::with_capacity(256);
        self.write(id, request, now, &mut body);
        self.respond_with(body, now)
    }

    /// The whole answer with a body that is written already: a batch's errors.
    pub(crate) fn respond_with(&self, body: Vec<u8>, now: u64) -> Response<Body> {
        let mut response = json(self.status(), body);
        if let Some(seconds) = self.retry_after(now) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if *self == Problem::BadUpgrade(BadUpgrade::Version) {
            response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if let Problem::ClientLimit(refusal) = self {
            rate_limit(&refusal.standing, response.headers_mut());
        }
        if *self == Problem::Unauthorized {
            // RFC 9110, 11.6.1: a 401 says how to do better.
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Tells a client how it stands with its tightest limit.
pub(crate) fn rate_limit(standing: &Standing, headers: &mut HeaderMap) {
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let values = [standing.limit, standing.remaining, standing.reset_ms.div_ceil(1000)];
    for (name, value) in names.into_iter().zip(values) {
        headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
    }
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: RequestId = RequestId { process: 1, worker: 0, count: 1 };

    fn refusal(retry_in_ms: u64) -> Refusal {
        let standing = Standing { limit: 5, remaining: 0, reset_ms: 59_001 };
        Refusal { retry_in_ms, standing, requests: true, units: false, concurrency: false }
    }

    /// Kills: a wait that is rounded down, headers of a refusal that are missing or of another limit.
    #[test]
    fn a_client_at_its_limit_is_told_when_to_come_back() {
        let response = Problem::ClientLimit(refusal(59_001)).respond(None, ID, 0);
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("retry-after"), Some("60"));
        assert_eq!(
            ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"].map(header),
            [Some("5"), Some("0"), Some("60")]
        );
        let mut body = Vec::new();
        Problem::ClientLimit(refusal(59_001)).write(None, ID, 0, &mut body);
        let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["error"]["data"]["retry_after_ms"], 59_001);
        assert_eq!(Problem::Unauthorized.respond(None, ID, 0).headers()["www-authenticate"], "Bearer");
    }

    #[test]
    fn each_problem_has_its_status_and_code() {
        for (problem, status, code, reason) in [
            (Problem::Unauthorized, 401, -32001, "unauthorized"),
            (Problem::Forbidden, 403, -32001, "forbidden"),
            (Problem::ClientLimit(refusal(1)), 429, -32005, "client_limit"),
            (Problem::CostExceedsLimit { dimension: "rps", limit: 5 }, 400, -32600, "cost_exceeds_limit"),
            (Problem::UnknownChain, 404, -32601, "unknown_chain"),
            (Problem::NeedsPost, 400, -32600, "use_post"),
            (Problem::BodyTooLarge { most: 1 }, 413, -32600, "body_too_large"),
            (Problem::Malformed(Malformed::Empty), 400, -32700, "not_json"),
            (Problem::Malformed(Malformed::EmptyBatch), 400, -32600, "invalid_request"),
            (Problem::Saturated { at: 0 }, 429, -32005, "saturated"),
            (Problem::NoLiveEndpoint, 503, -32603, "no_live_endpoint"),
            (Problem::AllAttemptsFailed, 502, -32603, "all_attempts_failed"),
            (Problem::Deadline, 504, -32603, "deadline"),
            (Problem::Overloaded { after_s: 2 }, 503, -32603, "overloaded"),
        ] {
            assert_eq!(problem.status().as_u16(), status);
            let mut body = Vec::new();
            problem.write(Some(b"7"), ID, 0, &mut body);
            let body: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
            assert_eq!((&body["error"]["code"], &body["id"]), (&code.into(), &7.into()));
            assert_eq!(body["error"]["data"]["reason"], reason);
            assert_eq!(body["error"]["data"]["request_id"], ID.to_string());
        }
    }

    #[test]
    fn retry_after_is_never_early_and_never_zero() {
        for (at, now, expected) in [(0, 0, 1), (1, 0, 1), (1000, 0, 1), (1001, 0, 2), (5000, 6000, 1)] {
            assert_eq!(Problem::Saturated { at }.retry_after(now), Some(expected), "{at} {now}");
        }
    }
}
