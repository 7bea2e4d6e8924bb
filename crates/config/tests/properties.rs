//! Whatever is read, nothing panics and no secret shows.

use std::io;
use std::path::Path;

use config::{Env, MethodCosts, Options, SETTINGS, Settings};
use proptest::prelude::*;

const SECRET: &str = "s3cr3t-t0k3n";

fn no_files(_: &Path) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

/// JSON that looks like an endpoints file, wrong in places.
fn fleets() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<u64>().prop_map(|n| n.to_string()),
        (-1e300..1e300).prop_map(|n: f64| n.to_string()),
        "[a-z$\\{\\}:/-]{0,12}".prop_map(|text| format!("{text:?}")),
        prop::sample::select(vec![
            "\"primary\"",
            "\"PUBLIC\"",
            "\"http://h\"",
            "\"ws://h\"",
            "\"${file:/x}\"",
            "\"${A:-b}\"",
            "{}",
            "[]",
            "0.5",
        ])
        .prop_map(str::to_owned),
    ];
    let name = prop::sample::select(vec![
        "role",
        "ROLE",
        "type",
        "provider",
        "http_url",
        "ws_url",
        "account",
        "weight",
        "headers",
        "private",
        "max_block_range",
        "capacity",
        "capacity_learning",
        "rate_limit_recovery",
        "max_requests",
        "window_seconds",
        "decrease_factor",
        "min_estimate",
        "mode",
        "max_backoff",
        "backoff_multiplier",
        "smooth",
        "x",
    ]);
    scalar.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|members| {
                let members: Vec<String> = members.iter().map(|(k, v)| format!("{k:?}:{v}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_endpoints_file_panics(text in fleets()) {
        let env = Env::new([("A", "a")], "");
        config::parse_fleet(&text, &env, &no_files);
        config::parse_fleet(&format!("{{\"c\":{{\"e\":{text}}}}}"), &env, &no_files);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,80}", value in "[$\\{\\}a-z:\\-=\"'\\\\#\n ]{0,40}") {
        let env = Env::new([("A", "a")], &value);
        config::parse_fleet(&text, &env, &no_files);
        let url = format!(r#"{{"c":{{"e":{{"role":"primary","http_url":{value:?}}}}}}}"#);
        config::parse_fleet(&url, &env, &no_files);
        MethodCosts::parse(&text, "f");
    }

    // Usable endpoints keep what their documentation promises, whatever the file says.
    #[test]
    fn what_is_usable_is_in_range(text in fleets()) {
        let env = Env::new([("A", "a")], "");
        let file = format!(r#"{{"c":{{"e":{{"role":"primary","http_url":"http://h","capacity":{text},"capacity_learning":{text},"rate_limit_recovery":{text},"weight":{text}}}}}}}"#);
        let (fleet, _) = config::parse_fleet(&file, &env, &no_files);
        for (_, e) in fleet.endpoints().filter(|(_, e)| e.disabled.is_none()) {
            prop_assert!(e.http_url.is_some() || e.ws_url.is_some());
            prop_assert!(e.weight > 0.0 && e.weight.is_finite());
            prop_assert!(e.learning.decrease_factor > 0.0 && e.learning.decrease_factor < 1.0);
            prop_assert!(e.learning.increase_interval.as_secs() >= 1 && e.learning.min_estimate >= 1);
            prop_assert!(e.capacity.iter().all(|c| c.window.as_secs() >= 1
                && c.max_requests != Some(0) && c.max_compute_units != Some(0)
                && (c.max_requests.is_some() || c.max_compute_units.is_some())));
            prop_assert!(e.capacity.is_sorted_by(|a, b| a.window < b.window));
            prop_assert!(e.recovery.is_none_or(|r| r.backoff_multiplier >= 1.0 && r.required_successes >= 1
                && r.max_retries >= 1 && r.initial_backoff.as_secs() >= 1));
        }
    }

    #[test]
    fn no_setting_panics(name in 0..SETTINGS.len(), value in "\\PC{0,30}|-?[0-9]{1,40}(ms|s|m|h|KiB|GiB)?") {
        let options = Options::default().with(SETTINGS[name].name, value.clone());
        config::load_settings(&options, &Env::default());
        config::load_settings(&Options::default(), &Env::new([(SETTINGS[name].name, value)], ""));
    }

    // Wherever a secret stands in a value, it is in nothing that can be printed.
    #[test]
    fn no_url_or_header_value_shows(
        before in "(https?|wss?|ftp|)(://|:|)(user:|)", after in "(@h|\\.example|)(:8545|:x|)[/?&#%{}$a-z]{0,8}",
    ) {
        let value = format!("{before}{SECRET}{after}");
        // As a host name it is printed by design.
        let authority = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#', '\\']).next());
        let host = authority.and_then(|authority| authority.rsplit('@').next()).is_some_and(|h| h.starts_with(SECRET));
        prop_assume!(!host);
        let file = format!(
            r#"{{"c":{{"e":{{"role":"primary","http_url":{value:?},"ws_url":{value:?},"headers":{{"x":{value:?}}}}}}}}}"#
        );
        let (fleet, findings) = config::parse_fleet(&file, &Env::default(), &no_files);
        let printed = format!("{fleet:?} {findings:?}");
        prop_assert!(!printed.contains(SECRET), "{printed}");
    }
}

#[test]
fn no_secret_of_the_settings_shows() {
    let secrets = [
        "VALKEY_PASS",
        "VALKEY_URL",
        "HEADGATE_LAUNCHDARKLY_SDK_KEY",
        "HEADGATE_OFREP_URL",
        "HEALTH_CHECKER_SERVICE_URL",
    ];
    for form in [format!("redis://user:{SECRET}@h/{SECRET}"), format!("http://h/{SECRET}"), SECRET.to_owned()]
    {
        for name in secrets {
            let options = Options::default().with(name, form.clone());
            let env = Env::new([(name, form.clone())], &format!("DOT={SECRET}"));
            for (settings, findings) in [
                config::load_settings(&options, &Env::default()),
                config::load_settings(&Options::default(), &env),
            ] {
                let printed =
                    format!("{settings:?} {findings:?} {:?} {options:?} {env:?}", Settings::shown(&settings));
                assert!(!printed.contains(SECRET), "{name}={form}: {printed}");
            }
        }
    }
}

#[test]
fn a_broken_settings_file_is_not_quoted() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken.toml");
    std::fs::write(&path, format!("server_port = 1\nvalkey_pass = \"{SECRET}\nx")).unwrap();
    let options = Options::default().with_settings_file(&path);
    let (_, findings) = config::load_settings(&options, &Env::default());
    let printed: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(printed.len(), 1);
    assert!(printed[0].contains("at line 2 column ") && !printed[0].contains(SECRET), "{printed:?}");
}
