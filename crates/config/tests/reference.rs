//! The page, the example files and the code say the same. Run with `HEADGATE_WRITE_DOCS=1` to write the
//! generated parts anew after a change of the tables.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use config::{Env, FIELDS, Field, FieldKind, Kind, Options, Origin, SETTINGS, Setting};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn section_of_page(page: &str, marker: &str) -> (usize, usize) {
    let (begin, end) = (format!("<!-- begin {marker} -->\n"), format!("<!-- end {marker} -->"));
    let from = page.find(&begin).unwrap_or_else(|| panic!("the page has no {begin}")) + begin.len();
    let to = page[from..].find(&end).unwrap_or_else(|| panic!("the page has no {end}")) + from;
    (from, to)
}

/// Compares a file (or one marked part of it) with what the tables say; with `HEADGATE_WRITE_DOCS`
/// set, writes it first.
fn matches(path: &Path, marker: Option<&str>, generated: &str) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let (from, to) = marker.map_or((0, text.len()), |marker| section_of_page(&text, marker));
    if std::env::var_os("HEADGATE_WRITE_DOCS").is_some() && text[from..to] != *generated {
        std::fs::write(path, format!("{}{generated}{}", &text[..from], &text[to..])).unwrap();
        return;
    }
    let differing = text[from..to].lines().zip(generated.lines()).find(|(is, should)| is != should);
    assert!(
        text[from..to] == *generated,
        "{} is behind the tables; first difference: {differing:?}; run the test with HEADGATE_WRITE_DOCS=1",
        path.display()
    );
}

fn values(kind: Kind) -> String {
    let at_least = |min_ms: u64, unit: &str| match min_ms {
        0 => format!("{unit}, or with a unit (`500ms`, `2s`, `1m`, `1h`)"),
        _ => format!("{unit}, or with a unit (`500ms`, `2s`, `1m`, `1h`); above 0"),
    };
    match kind {
        Kind::Bool => "`true` or `false`".to_owned(),
        Kind::Int { min, max } => format!("{min} to {max}"),
        Kind::Seconds { min_ms } => at_least(min_ms, "seconds"),
        Kind::Millis { min_ms } => at_least(min_ms, "milliseconds"),
        Kind::Bytes => "bytes, or with `KiB`, `MiB`, `GiB`; above 0".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Header => "text, visible ASCII".to_owned(),
        Kind::Name => "letters, digits, `-_.:`".to_owned(),
        Kind::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        Kind::Path => "path".to_owned(),
        Kind::Secret => "text, never printed".to_owned(),
        Kind::Url(_) => "URL, printed as scheme and host".to_owned(),
        Kind::Networks => "networks with commas between, `10.0.0.0/8, ::1`".to_owned(),
    }
}

fn default(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { format!("`{text}`") }
}

fn new(origin: Origin) -> &'static str {
    match origin {
        Origin::Kept => "",
        Origin::New => "new",
    }
}

fn settings_tables() -> String {
    let mut page = String::new();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            let head = "| variable | flag | values | default | meaning | |\n|---|---|---|---|---|---|";
            write!(page, "\n### {section}\n\n{head}\n").unwrap();
        }
        let Setting { name, flag, meaning, kind, origin, .. } = *setting;
        let (values, default) = (values(kind), default(setting.default));
        writeln!(page, "| `{name}` | `--{flag}` | {values} | {default} | {meaning} | {} |", new(origin))
            .unwrap();
    }
    page + "\n"
}

fn field_values(field: &Field) -> String {
    match field.kind {
        FieldKind::Text => "text".to_owned(),
        FieldKind::Url(schemes) => {
            schemes.iter().map(|scheme| format!("`{scheme}://`")).collect::<Vec<_>>().join(", ")
                + ", variables put in"
        }
        FieldKind::Word(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        FieldKind::Bool => "`true` or `false`".to_owned(),
        FieldKind::Count => "whole number, at least 1".to_owned(),
        FieldKind::Seconds => "whole seconds, 1 to 31622400".to_owned(),
        FieldKind::Number { range } => format!("number, {range}"),
        FieldKind::Headers => "object of strings, variables put in".to_owned(),
        FieldKind::Block => "object".to_owned(),
        FieldKind::Blocks => "object, or a list of them".to_owned(),
    }
}

fn fields_table() -> String {
    let mut page = "\n| field | values | default | meaning | |\n|---|---|---|---|---|\n".to_owned();
    for field in FIELDS {
        let (values, default) = (field_values(field), default(field.default));
        writeln!(
            page,
            "| `{}` | {values} | {default} | {} | {} |",
            field.path,
            field.meaning,
            new(field.origin)
        )
        .unwrap();
    }
    page + "\n"
}

fn env_example() -> String {
    let mut text =
        "# Every setting, at its default. Copy to .env in the working directory and take away the # before\n\
                    # what you change; variables that exist already win. A blank value counts as unset.\n\
                    # docs/configuration.md says more.\n"
            .to_owned();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            write!(text, "\n# --- {section} ---\n").unwrap();
        }
        write!(text, "\n# {}\n", setting.meaning).unwrap();
        let quote = if setting.default.contains(' ') { "\"" } else { "" };
        writeln!(text, "#{}={quote}{}{quote}", setting.name, setting.default).unwrap();
    }
    text
}

#[test]
fn the_page_lists_every_setting() {
    matches(&root().join("docs/configuration.md"), Some("settings"), &settings_tables());
}

#[test]
fn the_page_lists_every_field() {
    matches(&root().join("docs/configuration.md"), Some("fields"), &fields_table());
}

#[test]
fn the_environment_example_lists_every_setting() {
    matches(&root().join(".env.example"), None, &env_example());
}

// With every # taken away it is the defaults, word for word.
#[test]
fn the_environment_example_is_the_defaults() {
    let example: String =
        env_example().lines().map(|line| line.strip_prefix('#').unwrap_or(line).to_owned() + "\n").collect();
    let assignments: Vec<&str> =
        example.lines().filter(|line| line.contains('=') && !line.starts_with(' ')).collect();
    assert_eq!(assignments.len(), SETTINGS.len());
    let env = Env::new([("STORE_BACKEND", "memory")], &assignments.join("\n"));
    let (settings, findings) = config::load_settings(&Options::default(), &env);
    assert_eq!(findings, []);
    assert_eq!(settings.shown(), config::Settings::default().shown());
}

#[test]
fn the_endpoints_example_starts_strictly_without_any_variable() {
    let path = root().join("configs/endpoints-example.json");
    let options = Options::default().with("CONFIG_FILE", path.display().to_string());
    let config =
        config::load(options, &Env::default(), true).unwrap_or_else(|findings| panic!("{findings:?}"));
    assert!(config.fleet.chains.len() >= 6, "{:?}", config.fleet.chains.keys());
    for (name, chain) in &config.fleet.chains {
        let roles: std::collections::BTreeSet<&str> =
            chain.endpoints.iter().map(|e| e.role.as_str()).collect();
        assert_eq!(roles.len(), 3, "{name} shows every role");
        assert!(chain.endpoints.iter().any(|e| e.ws_url.is_some()), "{name} has a socket");
    }
}

// Kills: an example that a strict check would refuse, or that is no use as one.
#[test]
fn the_clients_example_is_accepted_as_it_is() {
    let text = std::fs::read_to_string(root().join("configs/clients-example.json")).unwrap();
    let (clients, findings) = config::parse_clients(&text, 1_796_000_000_000);
    assert_eq!(findings, []);
    assert!(clients.anonymous.is_some() && clients.clients.len() >= 3);
    assert!(clients.clients.iter().any(|client| client.shared_plan.is_some()));
}

#[test]
fn the_schema_knows_every_field() {
    let schema = config::schema();
    let endpoint = &schema["$defs"]["endpoint"];
    for field in FIELDS {
        let mut at = endpoint;
        for name in field.path.split('.') {
            let object = if at["anyOf"][0]["properties"].is_object() { &at["anyOf"][0] } else { at };
            at = &object["properties"][name];
        }
        assert_eq!(at["description"], field.meaning, "{}", field.path);
    }
    assert_eq!(endpoint["properties"]["role"]["enum"], serde_json::json!(["primary", "fallback", "public"]));
    assert_eq!(endpoint["properties"]["capacity_learning"]["properties"]["decrease_factor"]["default"], 0.5);
}

// A table's default and the reader's default are two texts: they must agree.
#[test]
fn the_fields_defaults_are_the_readers() {
    let text = r#"{"c": {"e": {"role": "primary", "http_url": "http://h", "capacity_learning": {}, "rate_limit_recovery": {}}}}"#;
    let files = |_: &Path| Err(std::io::ErrorKind::NotFound.into());
    let (fleet, _) = config::parse_fleet(text, &Env::default(), &files);
    let e = &fleet.chains["c"].endpoints[0];
    let (learning, recovery) = (e.learning, e.recovery.unwrap());
    let check = |path: &str, value: f64| {
        let field = FIELDS.iter().find(|field| field.path == path).expect(path);
        assert_eq!(field.default.parse::<f64>().unwrap(), value, "{path}");
    };
    check("weight", e.weight);
    check("capacity_learning.decrease_factor", learning.decrease_factor);
    check("capacity_learning.increase_interval", learning.increase_interval.as_secs_f64());
    check("capacity_learning.min_estimate", learning.min_estimate as f64);
    check("rate_limit_recovery.initial_backoff", recovery.initial_backoff.as_secs_f64());
    check("rate_limit_recovery.backoff_multiplier", recovery.backoff_multiplier);
    check("rate_limit_recovery.max_backoff", recovery.max_backoff.as_secs_f64());
    check("rate_limit_recovery.max_retries", f64::from(recovery.max_retries));
    check("rate_limit_recovery.required_successes", f64::from(recovery.required_successes));
    check("rate_limit_recovery.reset_after", recovery.reset_after.as_secs_f64());
}
