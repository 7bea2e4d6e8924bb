//! Every shape an answer may have, and when its verdict is known.

use detect::{Head, Judgement, Protocol, Rules, Verdict, WHOLE};
use http::HeaderMap;

use Verdict::{Auth, ClientFault, Ok, QuotaExhausted, RateLimited, Syncing, UpstreamFault};

fn rules() -> &'static Rules {
    static RULES: std::sync::OnceLock<Rules> = std::sync::OnceLock::new();
    RULES.get_or_init(Rules::builtin)
}

fn judged(
    protocol: Protocol,
    status: Option<u16>,
    close: Option<(u16, &str)>,
    body: &str,
) -> (Verdict, &'static str) {
    let headers = HeaderMap::new();
    let head = Head { status, ws_close: close, ..Head::new(protocol, &headers, 0) };
    let judgement = rules().judge(&head, body.as_bytes());
    (judgement.verdict, rules().name(judgement.rule))
}

fn check(status: u16, body: &str, expected: Verdict, rule: &str) {
    assert_eq!(judged(Protocol::Http, Some(status), None, body), (expected, rule), "{status} {body}");
}

#[test]
fn single_answers() {
    check(200, r#"{"jsonrpc":"2.0","id":1,"result":null}"#, Ok, "success");
    check(200, r#"{"result":[],"error":null}"#, Ok, "success");
    check(200, r#"{"error":false,"result":1}"#, Ok, "success");
    check(200, "\u{feff} \r\n{\"result\":1}\n", Ok, "success");
    check(200, r#"{"r\u0065sult":1}"#, Ok, "success");
    check(200, r#"{"\\":1,"a\"b":2,"result":1}"#, Ok, "success");
    check(200, r#"{"\u0065rror":{"message":"rate limit hit"}}"#, RateLimited, "burst.named");
    check(200, r#"{"result":1,"error":{"code":429}}"#, RateLimited, "code.limit");
    check(200, r#"{"error":{"code":"429"},"result":1}"#, RateLimited, "code.limit");
    check(200, r#"{"error":"daily limit exceeded"}"#, QuotaExhausted, "quota.day-used-up");
    check(200, r#"{"code":401,"message":"invalid api key"}"#, Auth, "access.key");
    check(200, r#"{"ok":false,"result":"Ratelimit exceed"}"#, RateLimited, "burst.named");
    check(200, r#"{"status":"1","message":"OK","result":"Max rate limit reached"}"#, Ok, "success");
    check(
        200,
        r#"{"status":"0","message":"NOTOK","result":"Max rate limit reached"}"#,
        RateLimited,
        "burst.named",
    );
    check(200, r#"{"jsonrpc":"2.0","id":1}"#, UpstreamFault, "no_result");
    check(200, "{}", UpstreamFault, "no_result");
    check(
        200,
        r#"{"id":1,"method":"eth_call","params":["rate limit exceeded"]}"#,
        UpstreamFault,
        "no_result",
    );
    check(200, "", UpstreamFault, "empty");
    check(200, " \n", UpstreamFault, "empty");
    check(429, "", RateLimited, "status.limit");
    check(204, "", UpstreamFault, "empty");
    check(429, r#"{"result":"0x1"}"#, RateLimited, "status.limit");
    check(500, r#"{"result":"0x1"}"#, UpstreamFault, "status.other");
    check(200, "slow down", RateLimited, "burst.named");
    check(200, "{slow down}", RateLimited, "burst.named");
    check(200, "[slow down]", RateLimited, "burst.named");
    check(200, "<p>slow<br>down</p>", RateLimited, "burst.named");
    check(200, "ok", UpstreamFault, "unknown");
    check(200, "please try again later", UpstreamFault, "fault.named");
    check(429, "please try again later", RateLimited, "status.limit");
    check(403, "service unavailable", Auth, "status.auth");
    check(503, "service unavailable", UpstreamFault, "fault.named");
    check(400, r#"{"error":{"code":-32602,"message":"?"}}"#, ClientFault, "code.client");
    check(400, "?", UpstreamFault, "status.other");
}

/// Kills: the name of the status, which every server's page of it says, taken for a word about the client's request.
#[test]
fn a_400_that_only_repeats_its_status_decides_nothing() {
    check(400, "Bad Request", UpstreamFault, "status.other");
    check(400, "<html><head><title>400 Bad Request</title></head></html>", UpstreamFault, "status.other");
    check(400, r#"{"error":"Bad Request"}"#, UpstreamFault, "status.other");
    check(400, "Bad Request: invalid params", ClientFault, "client.params");
    let called = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"bad request"}}"#;
    check(400, called, ClientFault, "client.bad-request");
}

/// An outage knows no end, a limit does; but a text that is clear comes first, and 500 is never a limit.
#[test]
fn statuses_with_a_retry_after() {
    let check = |status: u16, body: &str, expected: Verdict| {
        let headers =
            HeaderMap::from_iter([(http::header::RETRY_AFTER, http::HeaderValue::from_static("120"))]);
        let head = Head { status: Some(status), ..Head::new(Protocol::Http, &headers, 0) };
        let judgement = rules().judge(&head, body.as_bytes());
        assert_eq!(judgement.verdict, expected, "{status} {body}");
        assert_eq!(judgement.wait.is_some(), expected.is_limit(), "a wait comes with a limit only");
    };
    check(503, "<h1>503 Service Temporarily Unavailable</h1>", RateLimited);
    check(503, "node is syncing", Syncing);
    check(500, "", UpstreamFault);
    check(502, "bad gateway", UpstreamFault);
    check(418, "", RateLimited);
    check(436, "", RateLimited);
    check(200, r#"{"result":1}"#, Ok);
    check(402, "", QuotaExhausted);
}

#[test]
fn a_page_s_opening_speaks_for_it() {
    let menu = "<li>docs</li>".repeat(90);
    check(
        200,
        &format!("<html><title>Welcome</title>{menu}<p>rate limits and prices</p></html>"),
        UpstreamFault,
        "unknown",
    );
    check(200, "<html><title>Error</title><p>rate limit exceeded</p></html>", RateLimited, "burst.named");
}

#[test]
fn cut_answers() {
    check(200, r#"{"result":"0x1"#, UpstreamFault, "truncated");
    check(200, r#"{"result":"0x1","#, UpstreamFault, "truncated");
    check(200, r#"{"result":"rate limit exceeded" "x"}"#, UpstreamFault, "truncated");
    check(200, r#"{"error":{"code":429,"message":"slow down"},"id"#, RateLimited, "burst.named");
    check(200, r#"{"error":{"message":"slow down","code":4"#, UpstreamFault, "truncated");
    check(429, r#"{"error":{"message":"daily limit exceeded","code":4"#, QuotaExhausted, "quota.day-used-up");
    check(200, r#"{"error":{"message":"slow down"} oops"#, RateLimited, "burst.named");
    check(200, r#"[{"result":1},{"res"#, UpstreamFault, "truncated");
    check(200, r#"[{"error":{"message":"slow down"}},{"res"#, RateLimited, "burst.named");
    check(200, "[", UpstreamFault, "truncated");
}

#[test]
fn several_documents() {
    let (good, slow) = (r#"{"result":1}"#, r#"{"error":{"message":"slow down"}}"#);
    let behind = r#"{"error":{"message":"node is behind"}}"#;
    check(200, &format!("{good}{good}"), Ok, "success");
    check(200, &format!("{good}\n{slow}"), RateLimited, "burst.named");
    check(200, &format!("{slow}{behind}"), RateLimited, "burst.named");
    check(200, &format!("{slow}{good}"), RateLimited, "burst.named");
    check(200, &format!("{good} trailing"), Ok, "success");
    check(200, &format!("{good}{{"), Ok, "success");
    check(200, &format!(r#"{{"result":{{"a":1}}{behind}"#), Syncing, "behind");
    check(200, &format!(r#"{{"result":{{"a":1}}{good}"#), UpstreamFault, "truncated");
}

#[test]
fn batches() {
    check(200, r#"[{"result":1},{"result":2}]"#, Ok, "success");
    check(
        200,
        r#"[{"result":1},{"error":{"code":3,"message":"rate limit exceeded"}}]"#,
        ClientFault,
        "execution.code-3",
    );
    check(
        200,
        r#"[{"error":{"message":"slow down"}},{"result":1},{"error":{"message":"daily limit exceeded"}}]"#,
        QuotaExhausted,
        "quota.day-used-up",
    );
    check(200, r#"[{"result":1},7,"x",[{"error":1}]]"#, UpstreamFault, "no_result");
    check(200, "[]", UpstreamFault, "no_result");
}

#[test]
fn sockets() {
    let check = |close: Option<(u16, &str)>, body: &str, expected: Verdict, rule: &str| {
        assert_eq!(judged(Protocol::Ws, None, close, body), (expected, rule), "{close:?} {body}");
    };
    check(None, r#"{"method":"eth_subscription","params":{"error":"slow down"}}"#, Ok, "notification");
    check(None, r#"{"id":1,"error":{"message":"slow down"}}"#, RateLimited, "burst.named");
    check(None, "too many requests", RateLimited, "burst.named");
    check(Some((1008, "threshold exceeded")), "", RateLimited, "burst.named");
    check(Some((1008, "")), "", UpstreamFault, "close.cut");
    check(Some((1006, "")), "", UpstreamFault, "close.cut");
    check(Some((1009, "")), "", Verdict::Capability, "close.too-large");
    check(Some((1013, "")), "", RateLimited, "close.try-later");
    check(Some((4001, "")), "", Auth, "close.auth");
    check(Some((4029, "bye")), "", RateLimited, "close.limit");
    check(Some((1008, r#"{"message":"slow down"}"#)), "", RateLimited, "burst.named");
    check(Some((4999, "")), "", UpstreamFault, "unknown");
}

/// What a stream says after all of the body, and in the end.
fn streamed(body: &str) -> (Option<Verdict>, Verdict) {
    let headers = HeaderMap::new();
    let head = Head { status: Some(200), ..Head::new(Protocol::Http, &headers, 0) };
    let mut stream = rules().stream();
    let certain = stream.push(rules(), &head, body.as_bytes()).map(|judgement: Judgement| judgement.verdict);
    (certain, stream.finish(rules(), &head).verdict)
}

/// A body of exactly `len` bytes: a `result` of spaces, then `tail`.
fn padded(len: usize, tail: &str) -> String {
    let head = r#"{"result":""#;
    format!("{head}{}\"{tail}", " ".repeat(len - head.len() - 1 - tail.len()))
}

/// Kills a boundary that is off by one, and an error that is forgotten or preferred on the wrong side.
#[test]
fn whole_up_to_the_bound_and_by_the_first_member_beyond() {
    let late_error = r#","error":{"message":"slow down"}}"#;
    let check = |body: &str, expected| assert_eq!(streamed(body), expected, "{} bytes", body.len());
    check(&padded(WHOLE, "}"), (None, Ok));
    check(&padded(WHOLE + 1, "}"), (Some(Ok), Ok));
    check(&padded(WHOLE, late_error), (None, RateLimited));
    check(&padded(WHOLE + 1, late_error), (Some(Ok), Ok));
    check(&padded(WHOLE + 1, ""), (Some(Ok), UpstreamFault));
    let second = r#"}{"error":{"message":"slow down"}}"#;
    check(&padded(WHOLE, second), (None, RateLimited));
    check(&padded(WHOLE + 1, second), (Some(Ok), Ok));
    let huge = "x".repeat(WHOLE);
    check(
        &format!(r#"{{"error":{{"data":"{huge}","message":"slow down"}},"result":1}}"#),
        (Some(RateLimited), RateLimited),
    );
    check(&format!(r#"{{"error":{{"data":"{huge}","message":"slow down""#), (None, UpstreamFault));
    check(&format!(r#"{{"error":null,"result":null,"x":"{huge}"}}"#), (Some(Ok), Ok));
    check(&format!("slow down {huge}"), (Some(RateLimited), RateLimited));
    check(&format!(r#"[{{"result":"{huge}"}}]"#), (None, Ok));
}

/// A single answer is judged whole by `judge`, however long it is.
#[test]
fn judge_looks_at_all_of_a_long_answer() {
    let late_error = r#","error":{"message":"slow down"}}"#;
    check(200, &padded(WHOLE * 4, late_error), RateLimited, "burst.named");
}

#[test]
fn ids_are_found_in_single_answers_too() {
    let headers = HeaderMap::new();
    let head = Head { status: Some(200), ..Head::new(Protocol::Http, &headers, 0) };
    let body = r#" {"jsonrpc":"2.0","id": "a\"b" ,"result":1}"#;
    let mut stream = rules().stream();
    stream.push(rules(), &head, body.as_bytes());
    stream.finish(rules(), &head);
    let [item] = stream.items() else { panic!("one answer") };
    assert_eq!(
        (&body[item.span.clone()], item.id.clone().map(|id| &body[id])),
        (body.trim(), Some(r#""a\"b""#))
    );
    assert!(!stream.is_batch());
}
