//! Flags from a file: an object of values by flag, JSON, or YAML where the name says so. Read again each time, so a file
//! that is away or broken is an outage like any other.

use super::Values;
use std::path::Path;

/// # Errors
/// Says what is wrong with the file.
pub(super) fn read(path: &Path) -> Result<Values, String> {
    let text = config::read_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(path, &text).map_err(|error| format!("{}: {error}", path.display()))
}

fn parse(path: &Path, text: &str) -> Result<Values, String> {
    let yaml = path
        .extension()
        .is_some_and(|name| name.eq_ignore_ascii_case("yaml") || name.eq_ignore_ascii_case("yml"));
    match yaml {
        true => yaml_serde::from_str(text).map_err(|error| error.to_string()),
        false => serde_json::from_str(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Kills: a format chosen by anything but the name, and a file of another shape that is taken for one without flags.
    #[test]
    fn both_formats_say_the_same() {
        let flag = "headgate.concurrency.upstream";
        for (name, text) in [
            ("flags.json", r#"{"headgate.concurrency.upstream": 40}"#),
            ("flags", r#"{"headgate.concurrency.upstream": 40}"#),
            ("flags.yaml", "headgate.concurrency.upstream: 40\n"),
            ("flags.YML", "# tightened on Monday\nheadgate.concurrency.upstream: 40\n"),
        ] {
            let expected = Ok(Values::from([(flag.to_owned(), json!(40))]));
            assert_eq!(parse(Path::new(name), text), expected, "{name}");
        }
        for (name, text) in [
            ("flags.json", "headgate.concurrency.upstream: 40"),
            ("flags.json", "[]"),
            ("flags.json", ""),
            ("flags.yaml", "- 40"),
            ("flags.yaml", "a: b: c"),
        ] {
            assert!(parse(Path::new(name), text).is_err(), "{name}: {text}");
        }
    }
}
