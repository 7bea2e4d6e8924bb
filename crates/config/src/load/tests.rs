//! Which setting wins, and what is said about it. Pure: no file is read.

use super::*;
use crate::settings::LogLevel;

/// The settings of an environment, flags and a `headgate.toml`, and what is said.
fn resolved(flags: &[(&str, &str)], env: &[(&str, &str)], file: &str) -> (Settings, Vec<String>) {
    let options = flags.iter().fold(Options::default(), |options, (name, text)| options.with(name, *text));
    let env = Env::new(env.iter().copied(), "");
    let (settings, findings) = resolve(&options, &env, Some((Path::new("headgate.toml"), file)));
    (settings, findings.iter().map(|finding| format!("{:?} {finding}", finding.severity)).collect())
}

#[test]
fn flag_over_environment_over_file_over_default() {
    let check = |flag: Option<&str>, env: Option<&str>, file: &str, expected: u16| {
        let name = "SERVER_PORT";
        let flags: Vec<_> = flag.into_iter().map(|text| (name, text)).collect();
        let env: Vec<_> = env.into_iter().map(|text| (name, text)).collect();
        let (settings, findings) = resolved(&flags, &env, file);
        assert_eq!((settings.server_port, findings.len()), (expected, 0), "{flag:?} {env:?} {file:?}");
    };
    check(None, None, "", 8080);
    check(None, None, "server_port = 1", 1);
    check(None, Some("2"), "server_port = 1", 2);
    check(Some("3"), Some("2"), "server_port = 1", 3);
    // Kills: comparing a flag with its default to see whether it was given.
    check(Some("8080"), Some("2"), "server_port = 1", 8080);
    check(None, Some(""), "server_port = 1", 1);
    check(None, Some(" "), "", 8080);
    check(None, Some(" 7 "), "", 7);
    check(None, Some("tcp://10.0.0.1:80"), "", 8080);
    check(None, None, "Server-Port = \"5\"", 5);
}

#[test]
fn the_predecessors_booleans_lose_to_a_flag_that_is_given() {
    let (settings, _) = resolved(&[("METRICS_ENABLED", "true")], &[("METRICS_ENABLED", "false")], "");
    assert!(settings.metrics_enabled);
}

#[test]
fn what_an_environment_gets_wrong_is_said_and_the_default_taken() {
    let check = |name: &str, text: &str, expected: &str| {
        let (settings, findings) = resolved(&[], &[(name, text)], "");
        assert_eq!(findings, [format!("Warning {name} (environment): {expected}")], "{name}={text}");
        assert_eq!(settings.shown(), Settings::default().shown(), "{name}={text}");
    };
    check("SERVER_PORT", "abc", "not an integer; the default, 8080, is used");
    check("SERVER_PORT", "-1", "-1 is below the least value, 0; the default, 8080, is used");
    check("SERVER_PORT", "70000", "70000 is above the largest value, 65535; the default, 8080, is used");
    check("PROXY_MAX_RETRIES", "2.5", "not an integer; the default, 3, is used");
    check("PUBLIC_FIRST", "yes", "not a boolean (true or false); the default, false, is used");
    check(
        "LOG_LEVEL",
        "loud",
        "unknown word \"loud\" (one of trace, debug, info, warn, error, disabled); the default, info, is used",
    );
    check("MAX_WEBSOCKETS", "many", "not an integer; left unset");
    check(
        "HEALTH_CHECKER_SERVICE_URL",
        "aetherlay-hc:8080",
        "must start with http:// or https://; the default, http://aetherlay-hc:8080, is used",
    );
    // The zeros that stopped the predecessor.
    check("HEALTH_CHECK_CONCURRENCY", "0", "0 is below the least value, 1; the default, 20, is used");
    check("EPHEMERAL_CHECKS_INTERVAL", "0", "below the least value, 1ms; the default, 30, is used");
    check("PROXY_TIMEOUT", "0", "below the least value, 1ms; the default, 15, is used");
    check("PROXY_TIMEOUT_PER_TRY", "0", "below the least value, 1ms; the default, 5, is used");
    check("PROXY_MAX_RETRIES", "0", "0 is below the least value, 1; the default, 3, is used");
    check("ENDPOINT_FAILURE_THRESHOLD", "0", "0 is below the least value, 1; the default, 2, is used");
}

#[test]
fn zeros_with_a_meaning_are_kept() {
    for name in [
        "HEALTH_CHECK_INTERVAL",
        "SHUTDOWN_DELAY",
        "PUBLIC_FIRST_ATTEMPTS",
        "SATURATION_WAIT_MS",
        "METRICS_PORT",
    ] {
        let (settings, findings) = resolved(&[], &[(name, "0")], "");
        assert_eq!(findings, [] as [String; 0], "{name}");
        assert!(settings.shown().iter().any(|(n, text)| *n == name && text.starts_with('0')), "{name}");
    }
}

// Kills: a poll without a pause, from a setting that switched the predecessor's cache off.
#[test]
fn no_health_cache_means_every_second() {
    let (settings, findings) = resolved(&[], &[("HEALTH_CACHE_TTL", "0")], "");
    assert_eq!((settings.health_cache_ttl, findings.len()), (Duration::from_secs(1), 0));
}

#[test]
fn what_no_predecessor_knew_must_be_right() {
    let check = |name: &str, text: &str, expected: &str| {
        let (_, findings) = resolved(&[], &[(name, text)], "");
        assert_eq!(findings, [format!("Error {name} (environment): {expected}")], "{name}={text}");
    };
    check(
        "STORE_BACKEND",
        "valky",
        "unknown word \"valky\", did you mean \"valkey\"? (one of memory, valkey)",
    );
    check("LIMITS_SLOT_TTL", "0", "below the least value, 1ms");
    check("TRUSTED_PROXIES", "10.0.0.0/99", "\"10.0.0.0/99\" is no address or network");
    check("HEADGATE_OFREP_URL", "flagd:8016", "must start with http:// or https://");
    check(
        "HEADGATE_FLAGS_PROVIDER",
        "flagd",
        "unknown word \"flagd\" (one of static, environment, file, valkey, launchdarkly, ofrep)",
    );
}

#[test]
fn flags_are_judged_by_what_the_predecessor_started_with() {
    let check = |name: &str, text: &str, expected: &str| {
        assert_eq!(resolved(&[(name, text)], &[], "").1, [expected], "{name}={text}");
    };
    check(
        "PROXY_MAX_RETRIES",
        "-1",
        "Warning --proxy-retries: -1 is below the least value, 1; the default, 3, is used",
    );
    check(
        "HEALTH_CHECK_CONCURRENCY",
        "0",
        "Warning --health-check-concurrency: 0 is below the least value, 1; the default, 20, is used",
    );
    check("PROXY_MAX_RETRIES", "x", "Error --proxy-retries: not an integer");
    check("METRICS_ENABLED", "yes", "Error --metrics-enabled: not a boolean (true or false)");
    check(
        "LOG_LEVEL",
        "loud",
        "Warning --log-level: unknown word \"loud\" (one of trace, debug, info, warn, error, disabled); the default, info, is used",
    );
}

#[test]
fn the_settings_file_is_read_key_by_key() {
    let file = "proxy_retries = 5\nproxy-timeout = \"500ms\"\npublic_first = true\nvalkey_pass = 7\n\
                trusted_proxies = [\"10.0.0.0/8\", \"::1\"]\nsever_port = 1\n[valkey]\nhost = \"h\"\n";
    let (settings, findings) = resolved(&[], &[], file);
    assert_eq!((settings.proxy_max_retries, settings.proxy_timeout), (5, Duration::from_millis(500)));
    assert_eq!((settings.public_first, settings.trusted_proxies.len()), (true, 2));
    assert_eq!(settings.valkey_pass.unwrap().expose(), "7");
    assert_eq!(
        findings,
        [
            "Warning headgate.toml: unknown setting \"sever_port\", did you mean \"server_port\"?",
            "Warning headgate.toml: unknown setting \"valkey\"",
        ]
    );
    let check = |file: &str, expected: &str| assert_eq!(resolved(&[], &[], file).1, [expected], "{file}");
    check(
        "server_port = \"x\"",
        "Warning headgate.toml: server_port: not an integer; the default, 8080, is used",
    );
    check(
        "selection = \"x\"",
        "Error headgate.toml: selection: unknown word \"x\" (one of least_used, latency)",
    );
    check("[server_port]\nx = 1", "Error headgate.toml: server_port: must be one plain value");
    let broken = resolved(&[], &[], "a = 1\nb = = 2").1;
    assert!(broken.len() == 1 && broken[0].ends_with("at line 2 column 5"), "{broken:?}");
}

#[test]
fn passwords_are_taken_as_they_are() {
    for password in ["007", "1.50", "true", "[ab]", " spaced ", "0x1F", "a$b"] {
        let (settings, findings) = resolved(&[], &[("VALKEY_PASS", password)], "");
        assert_eq!((settings.valkey_pass.unwrap().expose(), findings.len()), (password, 0));
    }
}

#[test]
fn valkey_is_used_where_it_is_named() {
    let check = |env: &[(&str, &str)], expected: StoreBackend| {
        assert_eq!(resolved(&[], env, "").0.store_backend, expected, "{env:?}");
    };
    check(&[], StoreBackend::Memory);
    check(&[("VALKEY_HOST", "v")], StoreBackend::Valkey);
    check(&[("VALKEY_URL", "redis-cluster://v:1")], StoreBackend::Valkey);
    check(&[("VALKEY_PORT", "tcp://10.0.0.1:6379")], StoreBackend::Memory);
    check(&[("VALKEY_PORT", "6379"), ("VALKEY_PASS", "x")], StoreBackend::Memory);
    check(&[("VALKEY_HOST", " ")], StoreBackend::Memory);
    check(&[("VALKEY_HOST", "v"), ("STORE_BACKEND", "memory")], StoreBackend::Memory);
    check(&[("STORE_BACKEND", "VALKEY")], StoreBackend::Valkey);
    assert_eq!(resolved(&[], &[], "valkey_host = \"v\"").0.store_backend, StoreBackend::Valkey);
    assert_eq!(resolved(&[("VALKEY_HOST", "localhost")], &[], "").0.store_backend, StoreBackend::Valkey);
}

#[test]
fn contradictions_are_errors() {
    let check = |env: &[(&str, &str)], expected: &[&str]| {
        assert_eq!(resolved(&[], env, "").1, expected, "{env:?}");
    };
    check(&[("SERVER_PORT", "9090")], &["Error METRICS_PORT (default): the same port as SERVER_PORT"]);
    check(&[("SERVER_PORT", "9090"), ("METRICS_ENABLED", "0")], &[]);
    check(&[("SERVER_PORT", "0"), ("METRICS_PORT", "0")], &[]);
    let provider = "Error HEADGATE_FLAGS_PROVIDER (environment):";
    check(&[("HEADGATE_FLAGS_PROVIDER", "ofrep")], &[&format!("{provider} ofrep needs HEADGATE_OFREP_URL")]);
    check(
        &[("HEADGATE_FLAGS_PROVIDER", "valkey")],
        &[&format!("{provider} valkey needs STORE_BACKEND=valkey")],
    );
    check(&[("HEADGATE_FLAGS_PROVIDER", "file")], &[&format!("{provider} file needs HEADGATE_FLAGS_FILE")]);
    check(
        &[("HEADGATE_FLAGS_PROVIDER", "launchdarkly")],
        &[&format!("{provider} launchdarkly needs HEADGATE_LAUNCHDARKLY_SDK_KEY")],
    );
}

// A service called `headgate` makes Kubernetes inject HEADGATE_SERVICE_HOST and the like.
#[test]
fn misspelt_variables_of_ours_are_named() {
    let check = |name: &str, value: &str, expected: &[&str]| {
        assert_eq!(resolved(&[], &[(name, value)], "").1, expected, "{name}");
    };
    check(
        "HEADGATE_OFREP_ULR",
        "x",
        &[
            "Warning HEADGATE_OFREP_ULR (environment): no setting has this name, did you mean \"HEADGATE_OFREP_URL\"?",
        ],
    );
    check(
        "HEADGATE_LOG_LEVEL",
        "x",
        &["Warning HEADGATE_LOG_LEVEL (environment): no setting has this name, did you mean \"LOG_LEVEL\"?"],
    );
    check("HEADGATE_FLAG_HEADGATE_CONCURRENCY_UPSTREAM", "5", &[]);
    check("HEADGATE_SERVICE_HOST", "10.0.0.1", &[]);
    check("HEADGATE_PORT_8080_TCP_ADDR", "10.0.0.1", &[]);
    check("HEADGATE_SERVER_PORT", "tcp://10.0.0.1:80", &[]);
    check("SERVER_PROT", "1", &[]);
}

#[test]
fn an_environment_of_the_predecessor_starts_without_a_word() {
    let env = [
        ("CONFIG_FILE", "configs/endpoints.json"),
        ("CORS_HEADERS", "Accept, Authorization, Content-Type, Origin, X-Requested-With"),
        ("CORS_METHODS", "GET, POST, OPTIONS"),
        ("CORS_ORIGIN", "*"),
        ("EPHEMERAL_CHECKS_ENABLED", "T"),
        ("EPHEMERAL_CHECKS_HEALTHY_THRESHOLD", "3"),
        ("EPHEMERAL_CHECKS_INTERVAL", "30"),
        ("HEALTH_CACHE_TTL", "0"),
        ("HEALTH_CHECK_INTERVAL", "0"),
        ("LOG_LEVEL", "DEBUG"),
        ("METRICS_PORT", "9091"),
        ("PROXY_MAX_RETRIES", "5"),
        ("PROXY_TIMEOUT", "20"),
        ("STANDALONE_HEALTH_CHECKS", "f"),
        ("VALKEY_HOST", "valkey"),
        ("VALKEY_PASS", ""),
        ("VALKEY_PORT", "6379"),
        ("VALKEY_USE_TLS", "1"),
        ("VALKEY_SERVICE_HOST", "10.0.0.1"),
    ];
    let (settings, findings) = resolved(&[], &env, "");
    assert_eq!(findings, [] as [String; 0]);
    assert_eq!((settings.log_level, settings.proxy_max_retries), (LogLevel::Debug, 5));
    assert!(settings.valkey_use_tls && settings.valkey_pass.is_none() && settings.checks_inside());
}

#[test]
fn a_broken_settings_file_is_placed_and_not_quoted() {
    let check = |file: &str, expected: &str| {
        assert_eq!(resolved(&[], &[], file).1, [format!("Error headgate.toml: {expected}")], "{file}");
    };
    check("valkey_pass = SECRET", "invalid string: expected `\"`, `'` at line 1 column 15");
    check("\nvalkey_pass = 'SECRET", "invalid literal string at line 2 column 22");
    check("valkey_pass = [SECRET", "invalid array: expected `]` at line 1 column 16");
    check("valkey_pass SECRET", "expected `.`, `=` at line 1 column 13");
    check("valkey_pass = 12SECRET", "expected newline, `#` at line 1 column 17");
}
