//! The operator's own rules: asked first, and checked with line and field.

use detect::{Detail, Head, Protocol, Rules, Scope, Verdict};
use http::HeaderMap;

fn verdict(rules: &Rules, status: u16, body: &str) -> (Verdict, Scope, Detail, String) {
    let headers = HeaderMap::new();
    let head =
        Head { status: Some(status), provider: Some("Acme-paid"), ..Head::new(Protocol::Http, &headers, 0) };
    let judgement = rules.judge(&head, body.as_bytes());
    (judgement.verdict, judgement.scope, judgement.detail, rules.name(judgement.rule).to_owned())
}

#[test]
fn the_operators_rules_come_first() {
    let file = r##"{
      "groups": {"song": ["please hum*", "la la"]},
      "rules": [
        {"name": "mine.song", "provider": ["acme"], "text": ["@song"], "not": ["loudly"], "verdict": "rate_limited", "scope": "method", "detail": "connections"},
        {"name": "mine.limits-are-fine", "why": "as they say", "text": ["@limit words"], "verdict": "client_fault"},
        {"name": "mine.teapot", "status": [418, "550-559"], "code": [7], "verdict": "auth"},
        {"name": "mine.numbers", "regex": "^9[0-9]{2}$", "verdict": "syncing"}
      ]
    }"##;
    let rules = Rules::with_user(file, "rules.json").expect("valid rules");
    let check = |status, body, expected: (Verdict, Scope, Detail, &str)| {
        let found = verdict(&rules, status, body);
        assert_eq!((found.0, found.1, found.2, found.3.as_str()), expected, "{body}");
    };
    let song = r#"{"error":{"code":1,"message":"Please humming along"}}"#;
    check(200, song, (Verdict::RateLimited, Scope::Method, Detail::Connections, "mine.song"));
    check(429, "la la", (Verdict::RateLimited, Scope::Method, Detail::Connections, "mine.song"));
    check(429, "la la, loudly", (Verdict::RateLimited, Scope::Account, Detail::Undecided, "status.limit"));
    check(
        200,
        "rate limit exceeded",
        (Verdict::ClientFault, Scope::Request, Detail::None, "mine.limits-are-fine"),
    );
    check(555, r#"{"error":{"code":7}}"#, (Verdict::Auth, Scope::Account, Detail::None, "mine.teapot"));
    check(200, "901", (Verdict::Syncing, Scope::Endpoint, Detail::None, "mine.numbers"));
    check(200, "9011", (Verdict::UpstreamFault, Scope::Endpoint, Detail::Undecided, "unknown"));
    assert_eq!(rules.len(), Rules::builtin().len() + 4);
}

#[test]
fn errors_name_the_line_and_the_field() {
    let check = |file: &str, line: usize, field: &str, says: &str| {
        let error = Rules::with_user(file, "r.json").expect_err(file);
        assert_eq!(
            (error.file.as_str(), error.line, error.field.as_str()),
            ("r.json", line, field),
            "{error}"
        );
        assert!(error.message.contains(says), "{error}");
    };
    check("{\n\"rules\": [\n", 3, "file", "EOF");
    check("[{\"name\": \"a\"}]", 1, "file", "must be an object");
    check("{\"rules\": [], \"x\": 1}", 1, "file", "unknown field");
    check(
        "{\"rules\": [\n{\"name\": \"a\",\n \"verdict\": \"limited\", \"status\": [1]}]}",
        3,
        "verdict",
        "rate_limited",
    );
    check("{\"rules\": [\n\n{\"verdict\": \"ok\", \"status\": [1]}]}", 3, "name", "missing");
    check("{\"rules\": [{\"name\": \"a\", \"status\": [1]}]}", 1, "verdict", "missing");
    check("{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\"}]}", 1, "rules", "without conditions");
    check(
        "{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\",\n \"texts\": [\"a\"]}]}",
        2,
        "texts",
        "of conditions text, and",
    );
    check(
        "{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\",\n \"text\": [\"a\",\n 1]}]}",
        3,
        "text",
        "expected a string",
    );
    check(
        "{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"text\": [\"- *\"]}]}",
        1,
        "text",
        "without words",
    );
    check(
        "{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"not\": [\"@nobody\"]}]}",
        1,
        "not",
        "nobody",
    );
    check("{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"regex\": \"(\"}]}", 1, "regex", "unclosed");
    check("{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"status\": [\"5xx\"]}]}", 1, "status", "429");
    check(
        "{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"header\": [\"a b\"]}]}",
        1,
        "header",
        "name",
    );
    check(
        "{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"protocol\": \"tcp\"}]}",
        1,
        "protocol",
        "http, ws",
    );
    check("{\"rules\": [{\"name\": \"a\", \"verdict\": \"ok\", \"code\": [ ]}]}", 1, "code", "empty");
    check("{\"rules\": [7]}", 1, "rules", "expected a map");
    check("{\"groups\": {\"g\": 1}, \"rules\": []}", 1, "g", "expected a sequence");
}
