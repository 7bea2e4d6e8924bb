//! The clients file: what is accepted, and what is said of the rest.

use clients::{Client, Definition, KeyHash};
use config::parse_clients;

const NOW: u64 = 1_796_000_000_000;

fn key(plain: &str) -> String {
    KeyHash::of(plain.as_bytes()).to_string()
}

fn parsed(text: &str) -> Definition {
    let (definition, findings) = parse_clients(text, NOW);
    assert_eq!(findings, [], "{text}");
    definition
}

fn said(text: &str) -> Vec<String> {
    let (_, findings) = parse_clients(text, NOW);
    findings.iter().map(|finding| format!("{:?} {finding}", finding.severity)).collect()
}

fn client(fields: &str) -> String {
    format!(
        r#"{{"plans":{{"basic":{{"limits":{{"rpm":600}}}},"team":{{"shared":true,"limits":{{"rps":9}}}}}},"clients":[{{"id":"acme",{fields}}}]}}"#
    )
}

/// The example of the reference. Kills: a plan whose limits are lost, own limits that do not rule over it.
#[test]
fn the_reference_example_is_understood() {
    let text = format!(
        r#"{{"anonymous": {{"allowed": true, "limits": {{"rps": 50}}}},
            "plans": {{"basic": {{"shared": false, "limits": {{"rpm": 600, "concurrency": 20}}}}}},
            "clients": [{{"id": "acme", "keys": ["{}"], "plan": "basic", "limits": {{"rps": 5}},
              "chains": ["main"], "methods": {{"allow": ["*"], "deny": ["debug_*"]}}, "expires": "2027-01-31T00:00:00Z"}}]}}"#,
        key("k")
    );
    let file = parsed(&text);
    assert_eq!(file.anonymous.as_ref().and_then(|access| access.limits.windows[0]), Some(50));
    let Client { id, keys, shared_plan, access } = &file.clients[0];
    assert_eq!((&**id, keys.len(), shared_plan.is_none()), ("acme", 1, true));
    let limits = access.limits;
    assert_eq!((limits.windows[0], limits.windows[1], limits.concurrency), (Some(5), Some(600), Some(20)));
    assert!(access.allows_chain("main") && !access.allows_chain("other"));
    assert!(access.methods.allow("eth_call") && !access.methods.allow("debug_traceCall"));
    assert_eq!(access.expires, Some(1_801_353_600_000));
}

/// Kills: findings without a place, one at a time, or that quote a key.
#[test]
fn all_mistakes_are_named_at_once() {
    let text = format!(
        r#"{{"anonymos": {{}}, "plans": {{"basic": {{"shered": true, "limits": {{"rpx": 1, "rps": 0, "rpm": 1.5}}}}}},
            "clients": [
              {{"id": "a", "keys": ["hunter2hunter2hunter2hunter2hunter2"], "plan": "basc"}},
              {{"id": "b", "keys": ["{k}", "{k}"], "chains": "main"}},
              {{"id": "b", "keys": ["{k}"], "expires": "soon"}},
              {{"keys": []}}, 7]}}"#,
        k = key("same")
    );
    let all = said(&text).join("\n");
    for part in [
        "Error clients file: unknown field \"anonymos\", did you mean \"anonymous\"?",
        "Error clients file: plans.basic: unknown field \"shered\", did you mean \"shared\"?",
        "Error clients file: plans.basic.limits: unknown field \"rpx\", did you mean",
        "Error clients file: plans.basic.limits.rps: 0 would refuse everything",
        "Error clients file: plans.basic.limits.rpm: must be a whole number",
        "Error clients file: clients.a.keys[0]: not sha256:<64 hexadecimal digits>: a key itself must not stand here",
        "Error clients file: clients.a.plan: there is no plan \"basc\", did you mean \"basic\"?",
        "clients.b.keys: the same key twice",
        "clients.b.chains: must be a list of strings, not a string",
        "clients[1] and clients[2] have the same id",
        "clients.b.expires: \"soon\" is no date such as",
        "Error clients file: clients[3]: has no id",
        "Error clients file: clients[4]: must be an object, not a number",
    ] {
        assert!(all.contains(part), "{part}\nis not in\n{all}");
    }
    assert!(!all.contains("hunter2"), "{all}");
}

/// Kills: two clients with one key, of whom the last would be whoever comes.
#[test]
fn a_key_belongs_to_one_client() {
    let two = format!(
        r#"{{"clients":[{{"id":"a","keys":["{k}"]}},{{"id":"b","keys":["{k}"]}}]}}"#,
        k = key("same")
    );
    assert_eq!(said(&two), ["Error clients file: clients.b.keys: a has the same key: each needs its own"]);
}

/// Kills: a key that stands where a name belongs and is printed.
#[test]
fn a_key_in_the_wrong_place_is_refused_and_not_quoted() {
    let secret = "0123456789abcdef0123456789abcdef0123";
    for text in [
        format!(r#"{{"clients":[{{"id":"a","keys":["{secret}"]}}]}}"#),
        format!(r#"{{"clients":[{{"id":"a","{secret}":["x"]}}]}}"#),
        format!(r#"{{"clients":[{{"id":"a","key":"{secret}"}}]}}"#),
        format!(r#"{{"clients":{{"{secret}":{{}}}}}}"#),
        format!(r#"{{"{secret}":{{}}}}"#),
    ] {
        let (_, findings) = parse_clients(&text, NOW);
        assert!(findings.iter().any(config::Finding::is_error), "{text}");
        findings.iter().for_each(|finding| assert!(!finding.to_string().contains(secret), "{finding}"));
    }
}

#[test]
fn what_is_over_is_said_and_ends() {
    let expired = client(&format!(r#""keys":["{}"],"expires":"2020-01-01T00:00:00Z""#, key("k")));
    assert_eq!(
        said(&expired),
        ["Warning clients file: clients.acme.expires: \"2020-01-01T00:00:00Z\" is over: keys are refused"]
    );
    let plan = format!(
        r#"{{"plans":{{"old":{{"expires":"2020-01-01","limits":{{"rps":1}}}}}},"clients":[{{"id":"a","plan":"old","keys":["{}"],"expires":"2030-01-01"}}]}}"#,
        key("k")
    );
    let (file, findings) = parse_clients(&plan, NOW);
    assert_eq!(findings.len(), 1);
    assert!(file.clients[0].access.has_expired(NOW), "kills: a client that outlives its plan");
}

/// Kills: names that are cut, cleaned or refused.
#[test]
fn odd_ids_are_taken_as_they_are() {
    let long = "x".repeat(10_240);
    for id in ["{a}:b", "a b", "ä\u{1f511}", long.as_str()] {
        let text = serde_json::json!({"clients": [{"id": id, "keys": [key(id)]}]}).to_string();
        assert_eq!(&*parsed(&text).clients[0].id, id);
    }
    assert!(said(r#"{"clients":[{"id":"  "}]}"#)[0].contains("id: must not be blank"));
}

#[test]
fn shared_plans_and_closed_doors() {
    let shared = parsed(&client(&format!(r#""plan":"team","keys":["{}"]"#, key("k"))));
    assert_eq!(shared.clients[0].shared_plan.as_deref(), Some("team"));
    assert_eq!(shared.anonymous, None, "kills: open because nothing was said");
    let closed =
        format!(r#"{{"anonymous":{{"allowed":false}},"clients":[{{"id":"a","keys":["{}"]}}]}}"#, key("k"));
    assert_eq!(parsed(&closed).anonymous, None);
    assert_eq!(said("{}").len(), 1, "nobody can ask");
    assert!(said("[]")[0].contains("must be an object"));
    assert!(said("{")[0].contains("not JSON"));
}
