//! What an endpoints file becomes, and what is said about it. Each row is one file.

use std::io;
use std::path::Path;
use std::time::Duration;

use config::{
    Capacity, EndpointConfig, Env, FleetConfig, LearningConfig, LearningMode, RecoveryConfig, Role,
};

fn parse(text: &str) -> (FleetConfig, Vec<String>) {
    let env = Env::new([("KEY", "k3y"), ("BLANK", "")], "");
    let files = |path: &Path| match path.to_str() {
        Some("/run/key") => Ok(" f1le\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let (fleet, findings) = config::parse_fleet(text, &env, &files);
    (fleet, findings.iter().map(|finding| format!("{:?} {finding}", finding.severity)).collect())
}

/// A file with one healthy endpoint `c.ok`, and `c.e` with these members.
fn with(members: &str) -> String {
    format!(r#"{{"c": {{"ok": {{"role": "primary", "http_url": "http://ok"}}, "e": {{{members}}}}}}}"#)
}

/// `c.e` of a file, and what is said about the file.
fn endpoint(members: &str) -> (EndpointConfig, Vec<String>) {
    let (fleet, findings) = parse(&with(members));
    (fleet.chains["c"].endpoints[1].clone(), findings)
}

const GOOD: &str = r#""role": "primary", "http_url": "http://h""#;

fn says(members: &str, expected: &[&str]) {
    let (_, findings) = endpoint(members);
    assert_eq!(findings, expected, "{members}");
}

#[test]
fn a_file_that_uses_every_field_loads_without_a_word() {
    let (fleet, findings) = parse(
        r#"{"mainnet": {"a": {
            "provider": "alchemy", "role": "primary", "type": "archive",
            "http_url": "https://a.example/v2/${KEY}?x=$KEY", "ws_url": "wss://a.example/${file:/run/key}",
            "skip_sync_check": true, "account": "alchemy-1", "weight": 2.5, "headers": {"X-Key": "${KEY}"},
            "private": true, "max_block_range": 10000.0,
            "rate_limit_recovery": {"backoff_multiplier": 1.5, "initial_backoff": 30, "max_backoff": 600,
                "max_retries": 5, "required_successes": 3, "reset_after": 3600},
            "capacity": [{"max_requests": 25, "window_seconds": 1, "smooth": true},
                {"max_compute_units": 1000000, "window_seconds": 86400}],
            "capacity_learning": {"decrease_factor": 0.7, "increase_interval": 30, "min_estimate": 5,
                "window_seconds": 10, "mode": "steady"}}}}"#,
    );
    assert_eq!(findings, [] as [String; 0]);
    let a = &fleet.chains["mainnet"].endpoints[0];
    assert_eq!(a.http_url.as_ref().unwrap().expose().as_str(), "https://a.example/v2/k3y?x=k3y");
    assert_eq!(a.ws_url.as_ref().unwrap().expose().as_str(), "wss://a.example/f1le");
    assert_eq!(
        (a.provider.as_str(), a.role, a.archive, a.skip_sync_check),
        ("alchemy", Role::Primary, true, true)
    );
    assert_eq!(
        (a.account.as_str(), a.weight, a.private, a.max_block_range),
        ("alchemy-1", 2.5, true, Some(10_000))
    );
    assert_eq!((a.headers[0].0.as_str(), a.headers[0].1.expose()), ("x-key", "k3y"));
    let secs = Duration::from_secs;
    let recovery = RecoveryConfig {
        backoff_multiplier: 1.5,
        initial_backoff: secs(30),
        max_backoff: secs(600),
        max_retries: 5,
        required_successes: 3,
        reset_after: secs(3600),
    };
    assert_eq!(a.recovery, Some(recovery));
    let per_second =
        Capacity { max_requests: Some(25), max_compute_units: None, window: secs(1), smooth: true };
    let per_day = Capacity {
        max_requests: None,
        max_compute_units: Some(1_000_000),
        window: secs(86_400),
        smooth: false,
    };
    assert_eq!(a.capacity, [per_second, per_day]);
    let learning = LearningConfig {
        decrease_factor: 0.7,
        increase_interval: secs(30),
        min_estimate: 5,
        window: Some(secs(10)),
        mode: LearningMode::Steady,
        given: true,
    };
    assert_eq!(a.learning, learning);
    assert_eq!((&a.disabled, a.shared_account), (&None, false));
}

#[test]
fn a_bare_endpoint_has_the_defaults() {
    let (e, findings) = endpoint(GOOD);
    assert_eq!(findings, [] as [String; 0]);
    assert_eq!((e.account.as_str(), e.weight, e.archive, e.private), ("c/e", 1.0, false, false));
    assert_eq!((e.recovery, e.capacity.len(), e.learning), (None, 0, LearningConfig::default()));
    assert!(
        e.headers.is_empty() && e.ws_url.is_none() && e.max_block_range.is_none() && e.disabled.is_none()
    );
}

#[test]
fn keys_roles_and_types_are_taken_in_any_case() {
    let (e, findings) = endpoint(
        r#""ROLE": "Fallback", "HTTP_URL": "http://h", "Type": "ARCHIVE", "Capacity": {"Max_Requests": 1, "WINDOW_SECONDS": 2}"#,
    );
    assert_eq!(findings, [] as [String; 0]);
    assert_eq!((e.role, e.archive, e.capacity.len()), (Role::Fallback, true, 1));
}

#[test]
fn nulls_are_as_good_as_absent() {
    let (e, findings) = endpoint(
        r#""role": "public", "http_url": "http://h", "ws_url": null, "capacity": null, "capacity_learning": null,
           "rate_limit_recovery": null, "headers": null, "weight": null, "account": null, "private": null"#,
    );
    assert_eq!((findings.len(), e.recovery, e.learning.given, e.account.as_str()), (0, None, false, "c/e"));
}

#[test]
fn endpoints_keep_the_files_order_and_the_last_duplicate_counts() {
    let (fleet, findings) = parse(
        r#"{"c": {"z": {"role": "primary", "http_url": "http://1"}, "a": {"role": "public", "http_url": "http://2"},
                  "z": {"role": "fallback", "role": "public", "http_url": "http://3", "HTTP_url": "http://4"}}}"#,
    );
    let got: Vec<(&str, Role, &str)> = fleet.chains["c"]
        .endpoints
        .iter()
        .map(|e| (e.id.as_str(), e.role, e.http_url.as_ref().unwrap().host()))
        .collect();
    assert_eq!(
        got,
        [("z", Role::Public, "4"), ("a", Role::Public, "2")].map(|(i, r, h)| (
            i,
            r,
            if h == "4" { "0.0.0.4" } else { "0.0.0.2" }
        ))
    );
    assert_eq!(
        findings,
        [
            "Warning c: the endpoint \"z\" is there twice; the last one counts",
            "Warning c.z: the field \"role\" is there twice; the last one counts",
            "Warning c.z: the field \"HTTP_url\" is there twice; the last one counts",
        ]
    );
}

#[test]
fn what_disables_an_endpoint_is_named_and_the_others_stay() {
    let check = |members: &str, expected: &str| {
        let (e, findings) = endpoint(members);
        assert_eq!(findings, [format!("Warning {expected}; the endpoint is left out")], "{members}");
        let reason = expected.split_once(": ").unwrap().1;
        assert_eq!(e.disabled.as_deref(), Some(reason), "{members}");
    };
    check(
        r#""role": "primry", "http_url": "http://h""#,
        "c.e.role: unknown role \"primry\", did you mean \"primary\"?",
    );
    check(r#""role": "backup", "http_url": "http://h""#, "c.e.role: unknown role \"backup\"");
    check(r#""http_url": "http://h""#, "c.e.role: the role is missing (one of primary, fallback, public)");
    check(r#""role": "primary""#, "c.e: has neither http_url nor ws_url");
    check(r#""role": "primary", "http_url": "$BLANK""#, "c.e: has neither http_url nor ws_url");
    let url = |url: &str| format!(r#""role": "primary", "http_url": "{url}""#);
    check(&url("http://h/${NONE}"), "c.e.http_url: the variable NONE is not set");
    check(&url("http://h/$BLANK"), "c.e.http_url: the variable BLANK is blank");
    check(&url("http://h/${file:/none}"), "c.e.http_url: the file /none cannot be read: entity not found");
    check(&url("h/v2/KEY"), "c.e.http_url: not a URL: relative URL without a base");
    check(&url("ftp://h"), "c.e.http_url: must start with http:// or https://");
    check(&url("wss://h"), "c.e.http_url: must start with http:// or https://");
    check(&url("http://h:x"), "c.e.http_url: not a URL: invalid port number");
    check(&format!(r#"{GOOD}, "ws_url": "http://h""#), "c.e.ws_url: must start with ws:// or wss://");
    check(&format!(r#"{GOOD}, "ws_url": "wss://h/$NONE""#), "c.e.ws_url: the variable NONE is not set");
    check(
        &format!(r#"{GOOD}, "headers": {{"X-Key": "$NONE"}}"#),
        "c.e.headers.X-Key: the variable NONE is not set",
    );
    check(
        &format!(r#"{GOOD}, "headers": {{"X-Key": "a\nb"}}"#),
        "c.e.headers.X-Key: has characters that no header may have",
    );
}

#[test]
fn the_first_reason_stays_and_every_reason_is_said() {
    let (e, findings) = endpoint(r#""role": "backup", "http_url": "http://h/$NONE""#);
    assert_eq!(e.disabled.as_deref(), Some("unknown role \"backup\""));
    assert_eq!(
        findings,
        [
            "Warning c.e.role: unknown role \"backup\"; the endpoint is left out",
            "Warning c.e.http_url: the variable NONE is not set; the endpoint is left out",
        ]
    );
}

#[test]
fn of_two_headers_of_one_name_the_last_is_sent() {
    let (e, findings) = endpoint(&format!(r#"{GOOD}, "headers": {{"X-Key": "a", "Y": "b", "x-key": "c"}}"#));
    let sent: Vec<(&str, &str)> =
        e.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(sent, [("y", "b"), ("x-key", "c")]);
    assert_eq!(findings, ["Warning c.e.headers: the header \"x-key\" is there twice; the last one counts"]);
}

#[test]
fn defaults_and_blank_urls_leave_an_endpoint_in_service() {
    let (e, findings) =
        endpoint(r#""role": "primary", "http_url": "http://h/${NONE:-d}", "ws_url": "${BLANK}""#);
    assert_eq!((findings.len(), e.disabled, e.ws_url), (0, None, None));
    assert_eq!(e.http_url.unwrap().path_and_query().expose(), "/d");
    let (e, findings) = endpoint(r#""role": "primary", "ws_url": "ws://h""#);
    assert_eq!((findings.len(), e.disabled, e.http_url), (0, None, None));
}

#[test]
fn what_is_odd_is_said_once_and_does_no_harm() {
    says(
        &format!(r#"{GOOD}, "prvider": "x""#),
        &["Warning c.e: unknown field \"prvider\", did you mean \"provider\"?"],
    );
    says(&format!(r#"{GOOD}, "chain_type": "evm""#), &["Warning c.e: unknown field \"chain_type\""]);
    says(
        &format!(r#"{GOOD}, "type": "archiv""#),
        &["Warning c.e.type: unknown type \"archiv\", did you mean \"archive\"?; taken as full"],
    );
    says(
        &format!(r#"{GOOD}, "weight": 0"#),
        &["Warning c.e.weight: must be a number above 0, at most 1000000; 1 is used"],
    );
    says(
        &format!(r#"{GOOD}, "max_block_range": 2.5"#),
        &["Warning c.e.max_block_range: must be a whole number, at least 1; no bound is used"],
    );
    says(
        &format!(r#"{GOOD}, "headers": {{"Host": "x"}}"#),
        &["Warning c.e.headers.Host: belongs to the connection and is set by the proxy; it is not sent"],
    );
    says(
        &format!(r#"{GOOD}, "headers": {{"a b": "x"}}"#),
        &["Warning c.e.headers: \"a b\" is no header's name; it is not sent"],
    );
    says(
        r#""role": "primary", "http_url": "http://h/a$$b""#,
        &["Warning c.e.http_url: \"$$\" stands for nothing and is taken out"],
    );
}

#[test]
fn fields_of_the_wrong_type_are_errors() {
    says(
        r#""role": 5, "http_url": "http://h""#,
        &[
            "Error c.e.role: must be a string, not a number",
            "Warning c.e.role: the role is missing (one of primary, fallback, public); the endpoint is left out",
        ],
    );
    says(
        &format!(r#"{GOOD}, "private": "yes""#),
        &["Error c.e.private: must be true or false, not a string"],
    );
    says(
        &format!(r#"{GOOD}, "headers": ["x"]"#),
        &["Error c.e.headers: must be an object of strings, not a list"],
    );
    says(
        &format!(r#"{GOOD}, "headers": {{"X-A": 1}}"#),
        &["Error c.e.headers.X-A: must be a string, not a number"],
    );
}

/// Kills: an end at the first thing wrong in a block, so that each run of `--check` shows one more.
#[test]
fn all_that_is_wrong_in_a_block_is_told() {
    says(
        &format!(
            r#"{GOOD}, "capacity": {{"max_requests": 0, "window_seconds": -5, "smooth": 1}},
               "capacity_learning": {{"decrease_factor": 2, "min_estimate": -1, "mode": "stedy"}},
               "rate_limit_recovery": {{"backoff_multiplier": 0.5, "max_retries": -1}}"#
        ),
        &[
            "Warning c.e.rate_limit_recovery.backoff_multiplier: 0.5 is not between 1 and 1000; the whole block is dropped",
            "Warning c.e.rate_limit_recovery.max_retries: -1 is below the least value, 1; the whole block is dropped",
            "Warning c.e.capacity.max_requests: 0 is below the least value, 1; the whole block is dropped",
            "Warning c.e.capacity.window_seconds: -5 is below the least value, 1; the whole block is dropped",
            "Warning c.e.capacity.smooth: must be true or false, not a number; the whole block is dropped",
            "Warning c.e.capacity_learning.decrease_factor: 2 is not between 0 and 1; the whole block is dropped",
            "Warning c.e.capacity_learning.min_estimate: -1 is below the least value, 1; the whole block is dropped",
            "Warning c.e.capacity_learning.mode: unknown mode \"stedy\", did you mean \"steady\"?; the whole block is dropped",
        ],
    );
}

#[test]
fn a_bad_block_is_dropped_and_the_field_named() {
    let check = |block: &str, expected: &str| {
        let (e, findings) = endpoint(&format!("{GOOD}, {block}"));
        assert_eq!(findings, [format!("Warning c.e.{expected}; the whole block is dropped")], "{block}");
        assert_eq!(
            (e.capacity.len(), e.learning, e.recovery),
            (0, LearningConfig::default(), None),
            "{block}"
        );
        assert_eq!(e.disabled, None);
    };
    let below = |number: &str| format!("{number} is below the least value, 1");
    check(
        r#""capacity": {"max_requests": 0, "window_seconds": 1}"#,
        &format!("capacity.max_requests: {}", below("0")),
    );
    check(
        r#""capacity": {"max_requests": 5, "window_seconds": 0}"#,
        &format!("capacity.window_seconds: {}", below("0")),
    );
    check(
        r#""capacity": {"max_requests": -5, "window_seconds": 1}"#,
        &format!("capacity.max_requests: {}", below("-5")),
    );
    check(
        r#""capacity": {"max_requests": 5.5, "window_seconds": 1}"#,
        "capacity.max_requests: must be a whole number, not 5.5",
    );
    check(
        r#""capacity": {"max_requests": "5", "window_seconds": 1}"#,
        "capacity.max_requests: must be a whole number, not a string",
    );
    check(
        r#""capacity": {"window_seconds": 1}"#,
        "capacity.max_requests: is missing, and so is max_compute_units",
    );
    check(r#""capacity": {"max_requests": 5}"#, "capacity.window_seconds: is missing");
    check(
        r#""capacity": {"max_requests": 5, "window_seconds": 31622401}"#,
        "capacity.window_seconds: 31622401 is above the largest value, 31622400",
    );
    check(
        r#""capacity": {"max_requests": 5, "window_seconds": 1, "smooth": 1}"#,
        "capacity.smooth: must be true or false, not a number",
    );
    check(r#""capacity": 5"#, "capacity: must be an object, not a number");
    check(r#""capacity": [7]"#, "capacity[0]: must be an object, not a number");
    check(
        r#""capacity_learning": {"decrease_factor": 2.0}"#,
        "capacity_learning.decrease_factor: 2 is not between 0 and 1",
    );
    check(
        r#""capacity_learning": {"decrease_factor": 0}"#,
        "capacity_learning.decrease_factor: 0 is not between 0 and 1",
    );
    check(
        r#""capacity_learning": {"decrease_factor": 1}"#,
        "capacity_learning.decrease_factor: 1 is not between 0 and 1",
    );
    check(
        r#""capacity_learning": {"decrease_factor": "x"}"#,
        "capacity_learning.decrease_factor: must be a number, not a string",
    );
    check(
        r#""capacity_learning": {"increase_interval": 0}"#,
        &format!("capacity_learning.increase_interval: {}", below("0")),
    );
    check(
        r#""capacity_learning": {"window_seconds": -5}"#,
        &format!("capacity_learning.window_seconds: {}", below("-5")),
    );
    check(
        r#""capacity_learning": {"min_estimate": -1}"#,
        &format!("capacity_learning.min_estimate: {}", below("-1")),
    );
    check(
        r#""capacity_learning": {"mode": "stedy"}"#,
        "capacity_learning.mode: unknown mode \"stedy\", did you mean \"steady\"?",
    );
    check(
        r#""rate_limit_recovery": {"max_retries": -1}"#,
        &format!("rate_limit_recovery.max_retries: {}", below("-1")),
    );
    check(
        r#""rate_limit_recovery": {"backoff_multiplier": 0.5}"#,
        "rate_limit_recovery.backoff_multiplier: 0.5 is not between 1 and 1000",
    );
    check(
        r#""rate_limit_recovery": {"initial_backoff": "5m"}"#,
        "rate_limit_recovery.initial_backoff: must be a whole number, not a string",
    );
    check(r#""rate_limit_recovery": []"#, "rate_limit_recovery: must be an object, not a list");
}

#[test]
fn blocks_fill_up_with_the_predecessors_defaults() {
    let (e, findings) = endpoint(&format!(
        r#"{GOOD}, "rate_limit_recovery": {{"max_retries": 3, "initial_backoff": 0}}, "capacity_learning": {{}}"#
    ));
    assert_eq!(findings, ["Warning c.e.rate_limit_recovery.initial_backoff: 0 keeps the default"]);
    assert_eq!(e.recovery, Some(RecoveryConfig { max_retries: 3, ..RecoveryConfig::default() }));
    assert_eq!(e.learning, LearningConfig { given: true, ..LearningConfig::default() });
    let (e, _) = endpoint(&format!(r#"{GOOD}, "rate_limit_recovery": {{}}"#));
    assert_eq!(e.recovery, Some(RecoveryConfig::default()));
    says(
        &format!(
            r#"{GOOD}, "rate_limit_recovery": {{"max_backoff": 5}}, "capacity": {{"max_request": 5, "max_requests": 5, "window_seconds": 1}}"#
        ),
        &[
            "Warning c.e.rate_limit_recovery: max_backoff is below initial_backoff, which therefore never applies",
            "Warning c.e.capacity: unknown field \"max_request\", did you mean \"max_requests\"?",
        ],
    );
}

#[test]
fn ceilings_of_one_window_become_one() {
    let (e, findings) = endpoint(&format!(
        r#"{GOOD}, "capacity": [{{"max_requests": 9, "window_seconds": 60}}, {{"max_requests": 5, "window_seconds": 1}},
            {{"max_requests": 7, "max_compute_units": 3, "window_seconds": 60.0}}, {{"max_requests": 0, "window_seconds": 2}}]"#
    ));
    let secs = Duration::from_secs;
    let expected = [
        Capacity { max_requests: Some(5), max_compute_units: None, window: secs(1), smooth: false },
        Capacity { max_requests: Some(7), max_compute_units: Some(3), window: secs(60), smooth: false },
    ];
    assert_eq!(e.capacity, expected);
    assert_eq!(
        findings,
        [
            "Warning c.e.capacity[2]: a second ceiling for the same window; the lower numbers count",
            "Warning c.e.capacity[3].max_requests: 0 is below the least value, 1; the whole block is dropped",
        ]
    );
}

#[test]
fn endpoints_of_one_account_share_its_limits() {
    let file = |a: &str, b: &str| {
        format!(
            r#"{{"c": {{"a": {{"role": "primary", "http_url": "http://a", "account": "x" {a}}}}},
                "d": {{"b": {{"role": "primary", "http_url": "http://b", "account": "x" {b}}}}}}}"#
        )
    };
    let five = r#", "capacity": {"max_requests": 5, "window_seconds": 1}"#;
    let six = r#", "capacity": {"max_requests": 6, "window_seconds": 1}"#;
    let (fleet, findings) = parse(&file(five, ""));
    assert_eq!(findings, [] as [String; 0]);
    for (_, endpoint) in fleet.endpoints() {
        assert!(endpoint.shared_account && endpoint.capacity.len() == 1, "{endpoint:?}");
    }
    assert!(parse(&file(five, five)).1.is_empty());
    assert_eq!(
        parse(&file(five, six)).1,
        ["Error d.b.capacity: differs from c.a's, of the same account \"x\""]
    );
    let (fleet, findings) = parse(&file(
        r#", "capacity_learning": {"min_estimate": 2}, "rate_limit_recovery": {"max_retries": 1}"#,
        r#", "capacity_learning": {"min_estimate": 3}, "rate_limit_recovery": {"max_retries": 2}"#,
    ));
    assert_eq!(
        findings,
        [
            "Warning d.b.capacity_learning: differs from c.a's, of the same account \"x\"; that one counts",
            "Warning d.b.rate_limit_recovery: differs from c.a's, of the same account \"x\"; that one counts",
        ]
    );
    for (_, endpoint) in fleet.endpoints() {
        assert_eq!((endpoint.learning.min_estimate, endpoint.recovery.unwrap().max_retries), (2, 1));
    }
}

// A disabled endpoint dispatches nothing: neither shares its account nor contradicts it.
#[test]
fn disabled_endpoints_have_no_part_in_an_account() {
    let (fleet, findings) = parse(
        r#"{"c": {"a": {"role": "primary", "http_url": "http://a", "account": "x", "capacity": {"max_requests": 5, "window_seconds": 1}},
                  "b": {"role": "no", "http_url": "http://b", "account": "x", "capacity": {"max_requests": 6, "window_seconds": 1}}}}"#,
    );
    assert_eq!(findings.len(), 1);
    assert!(!fleet.chains["c"].endpoints[0].shared_account);
}

#[test]
fn chains_and_whole_files() {
    let check = |text: &str, expected: &[&str]| assert_eq!(parse(text).1, expected, "{text}");
    let ok = r#""ok": {"e": {"role": "primary", "http_url": "http://h"}}"#;
    check(
        &format!("{{{ok}, \"a\": null, \"b\": {{}}}}"),
        &[
            "Warning a: the chain has no endpoint that can be used",
            "Warning b: the chain has no endpoint that can be used",
        ],
    );
    for name in ["health", "ready", "metrics", "status"] {
        check(
            &format!("{{{ok}, \"{name}\": {{}}}}"),
            &[&format!("Error {name}: the name is reserved for a route of our own")],
        );
    }
    check(
        &format!("{{{ok}, \"\": {{}}}}"),
        &["Warning endpoints file: a chain without a name is left out: no path leads to it"],
    );
    check(
        &format!("{{{ok}, \"a\": 5}}"),
        &[
            "Error a: must be an object of endpoints, not a number",
            "Warning a: the chain has no endpoint that can be used",
        ],
    );
    check(
        &format!("{{{ok}, \"a\": {{\"x\": []}}}}"),
        &[
            "Error a.x: must be an object, not a list",
            "Warning a.x.role: the role is missing (one of primary, fallback, public); the endpoint is left out",
            "Warning a: the chain has no endpoint that can be used",
        ],
    );
    check(
        &format!("{{{ok}, {ok}}}"),
        &["Warning endpoints file: the chain \"ok\" is there twice; the last one counts"],
    );
    for odd in ["a/b", "a b", "{x}", "..", "ä"] {
        let chain = format!(r#"{{"{odd}": {{"e": {{"role": "primary", "http_url": "http://h"}}}}}}"#);
        check(
            &chain,
            &[&format!(
                "Warning {odd}: the chain's name {odd:?} has other characters than letters, digits, '-', '_' and '.'; clients must percent-encode them"
            )],
        );
    }
    check("{}", &["Error endpoints file: no endpoint in it can be used"]);
    check("null", &["Error endpoints file: no endpoint in it can be used"]);
    check("[]", &["Error endpoints file: must be an object of chains, not a list"]);
    check("{\n \"c\": {,}}", &["Error endpoints file: not JSON: key must be a string at line 2 column 8"]);
    check(
        r#"{"c": {"e": {"role": "primary", "http_url": "http://h/$NONE"}}}"#,
        &[
            "Warning c.e.http_url: the variable NONE is not set; the endpoint is left out",
            "Warning c: the chain has no endpoint that can be used",
            "Error endpoints file: no endpoint in it can be used",
        ],
    );
}

// Kills: parsing that is quadratic in chains or endpoints.
#[test]
fn a_thousand_chains_load() {
    let chains: Vec<String> = (0..1000)
        .map(|c| {
            let endpoints: Vec<String> = (0..3)
                .map(|e| format!(r#""e{e}": {{"role": "primary", "http_url": "http://h{c}-{e}"}}"#))
                .collect();
            format!(r#""chain-{c}": {{{}}}"#, endpoints.join(","))
        })
        .collect();
    let (fleet, findings) = parse(&format!("{{{}}}", chains.join(",")));
    assert_eq!((fleet.endpoints().count(), findings.len()), (3000, 0));
}
