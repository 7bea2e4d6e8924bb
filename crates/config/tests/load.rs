//! `load` and `reload_fleet` on real files.

use std::path::{Path, PathBuf};

use config::{Config, Env, Finding, Options, Settings};

/// A file of this test's own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn options(fleet: &Path) -> Options {
    Options::default().with("CONFIG_FILE", fleet.display().to_string())
}

fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{:?} {finding}", finding.severity)).collect()
}

fn refused(result: Result<Config, Vec<Finding>>) -> Vec<String> {
    lines(&result.map(|config| config.warnings).expect_err("refused"))
}

const GOOD: &str = r#"{"main": {"a": {"role": "primary", "http_url": "http://h:${SERVER_PORT}/${KEY}"}}}"#;
const ODD: &str = r#"{"main": {"a": {"role": "primary", "http_url": "http://h", "rol": 1}}}"#;

#[test]
fn a_start_says_everything_at_once() {
    let fleet = file("start.json", r#"{"main": {"a": {"role": "prim", "http_url": "http://h"}}}"#);
    let name = fleet.display();
    let options = options(&fleet).with("SERVER_PORT", "x").with("CLIENTS_FILE", "/none.json");
    let env = Env::new([("PROXY_TIMEOUT", "0")], "no line");
    assert_eq!(
        refused(config::load(options, &env, false)),
        [
            "Warning .env line 1: expected NAME=value".to_owned(),
            "Error --server-port: not an integer".to_owned(),
            "Warning PROXY_TIMEOUT (environment): below the least value, 1ms; the default, 15, is used"
                .to_owned(),
            "Warning main.a.role: unknown role \"prim\"; the endpoint is left out".to_owned(),
            "Warning main: the chain has no endpoint that can be used".to_owned(),
            format!("Error {name}: no endpoint in it can be used"),
            "Error CLIENTS_FILE: /none.json: there is no such file".to_owned(),
        ]
    );
}

#[test]
fn warnings_start_unless_strict() {
    let fleet = file("odd.json", ODD);
    let config = config::load(options(&fleet), &Env::default(), false).expect("starts");
    let expected = "main.a: unknown field \"rol\", did you mean \"role\"?";
    assert_eq!(lines(&config.warnings), [format!("Warning {expected}")]);
    assert_eq!(refused(config::load(options(&fleet), &Env::default(), true)), [format!("Error {expected}")]);
}

// The predecessor wrote the defaults it fell back to into its environment.
#[test]
fn urls_may_refer_to_settings() {
    let fleet = file("settings-in-urls.json", GOOD);
    let env = Env::new([("KEY", "k")], "");
    let url = |options: Options| {
        let config = config::load(options, &env, true).expect("starts");
        config.fleet.chains["main"].endpoints[0].http_url.clone().unwrap().expose().to_string()
    };
    assert_eq!(url(options(&fleet)), "http://h:8080/k");
    assert_eq!(url(options(&fleet).with("SERVER_PORT", "7000")), "http://h:7000/k");
}

#[test]
fn a_reload_reads_files_again_and_a_bad_file_changes_nothing() {
    let key = file("reload.key", "one\n");
    let text = format!(
        r#"{{"main": {{"a": {{"role": "primary", "http_url": "http://h/${{file:{}}}"}}}}}}"#,
        key.display()
    );
    let mut settings = Settings { config_file: file("reload.json", &text), ..Settings::default() };
    let path = |settings: &Settings| {
        let (fleet, _) = config::reload_fleet(settings, &Env::default()).expect("usable");
        fleet.chains["main"].endpoints[0].http_url.clone().unwrap().path_and_query().expose().to_owned()
    };
    assert_eq!(path(&settings), "/one");
    file("reload.key", "two");
    assert_eq!(path(&settings), "/two");
    file("reload.json", "{");
    let findings = config::reload_fleet(&settings, &Env::default()).unwrap_err();
    let name = settings.config_file.display();
    assert_eq!(
        lines(&findings),
        [format!("Error {name}: not JSON: EOF while parsing an object at line 1 column 1")]
    );
    settings.config_file = "/none.json".into();
    let findings = config::reload_fleet(&settings, &Env::default()).unwrap_err();
    assert_eq!(
        lines(&findings),
        ["Error /none.json: there is no such file; configs/endpoints-example.json is one to begin with"]
    );
}

#[test]
fn files_that_settings_name_are_read() {
    let fleet = file("costs-fleet.json", ODD);
    let costs = file("costs.json", r#"{"eth_call": 99, "x": -1}"#);
    let settings =
        file("settings.toml", &format!("config_file = {:?}\nmethod_costs_file = {costs:?}\n", fleet));
    let config = config::load(Options::default().with_settings_file(settings), &Env::default(), false)
        .expect("starts");
    assert_eq!((config.method_costs.cost("eth_call"), config.warnings.len()), (99, 2));

    let options = options(&fleet).with("METHOD_COSTS_FILE", "/none").with("RULES_FILE", "/none");
    let said = refused(config::load(options.with_settings_file("/none.toml"), &Env::default(), false));
    for expected in ["/none.toml: there is", "METHOD_COSTS_FILE: /none: there", "RULES_FILE: /none: there"] {
        assert!(
            said.iter().any(|line| line.starts_with(&format!("Error {expected}"))),
            "{expected}: {said:?}"
        );
    }
}

#[test]
fn what_is_no_text_is_refused() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("binary.json");
    std::fs::write(&path, [0xff, 0xfe]).unwrap();
    let said = refused(config::load(options(&path), &Env::default(), false));
    assert_eq!(said, [format!("Error {}: cannot be read: not UTF-8 text", path.display())]);
    let directory = refused(config::load(options(Path::new("/")), &Env::default(), false));
    assert!(directory.len() == 1 && directory[0].starts_with("Error /: cannot be read: "), "{directory:?}");
}
