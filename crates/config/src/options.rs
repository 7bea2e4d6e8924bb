//! The command line's part of the configuration: one flag per setting, each kept as the text that was
//! given. Decides nothing: a flag's text is read and judged where all the layers are.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::settings::{Kind, SETTINGS, Setting};

/// The flags that were given; `#[command(flatten)]` it into a service's own command line.
#[derive(Clone, Default)]
pub struct Options {
    settings_file: Option<PathBuf>,
    given: BTreeMap<&'static str, String>,
}

impl Options {
    /// As if `--<flag of name>=<value>` had been given; `name` is a variable's. Names that no setting has
    /// are left out.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) {
            self.given.insert(setting.name, value.into());
        }
        self
    }

    /// As if `--settings=<path>` had been given.
    pub fn with_settings_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings_file = Some(path.into());
        self
    }

    /// The arguments with a second dash before every flag of ours that has one: Go's `flag`, which the
    /// predecessor read its command line with, takes both.
    pub fn double_dashed(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
        let ours = |arg: &str| {
            let name = arg.strip_prefix('-')?.split('=').next()?;
            SETTINGS.iter().any(|setting| setting.flag == name).then(|| format!("-{arg}").into())
        };
        args.into_iter().map(|arg| arg.to_str().and_then(ours).unwrap_or(arg)).collect()
    }

    /// The file named by `--settings`.
    pub fn settings_file(&self) -> Option<&Path> {
        self.settings_file.as_deref()
    }

    pub(crate) fn given(&self, setting: &Setting) -> Option<&str> {
        self.given.get(setting.name).map(String::as_str)
    }
}

/// Names without values: a password may be among them.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("settings_file", &self.settings_file)
            .field("given", &self.given.keys())
            .finish()
    }
}

impl Args for Options {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("settings")
            .long("settings")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Settings as TOML, keys named as the variables in lower case [default: headgate.toml, if there is one]")
            .help_heading("Files");
        SETTINGS.iter().fold(command.arg(file), |command, setting| command.arg(flag(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// A setting's flag. A boolean's value may be left out (and, as in Go, must follow a `=`).
fn flag(setting: &Setting) -> Arg {
    let mut arg = Arg::new(setting.name)
        .long(setting.flag)
        .action(ArgAction::Set)
        .overrides_with(setting.name)
        .value_name(value_name(setting.kind))
        .help(help(setting))
        .help_heading(setting.section);
    if setting.name == "PROXY_MAX_RETRIES" {
        arg = arg.alias("proxy-max-retries");
    }
    if setting.kind == Kind::Bool {
        return arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    arg.allow_hyphen_values(true)
}

fn help(setting: &Setting) -> String {
    let mut chars = setting.meaning.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let default = match setting.default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    format!("{first}{} [env: {}]{default}", chars.as_str(), setting.name)
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Bool => "BOOL",
        Kind::Int { .. } => "N",
        Kind::Seconds { .. } => "SECONDS",
        Kind::Millis { .. } => "MILLISECONDS",
        Kind::Bytes => "BYTES",
        Kind::Text | Kind::Header | Kind::Name => "TEXT",
        Kind::Choice(_) => "WORD",
        Kind::Path => "FILE",
        Kind::Secret => "SECRET",
        Kind::Url(_) => "URL",
        Kind::Networks => "NETWORKS",
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if let Some(path) = matches.get_one::<PathBuf>("settings") {
            self.settings_file = Some(path.clone());
        }
        for setting in SETTINGS {
            if let Some(text) = matches.get_one::<String>(setting.name) {
                self.given.insert(setting.name, text.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Options, clap::Error> {
        let command = Options::augment_args(Command::new("headgate-proxy"));
        let args = ["headgate-proxy"].iter().chain(args);
        Options::from_arg_matches(&command.try_get_matches_from(args)?)
    }

    #[test]
    fn the_command_is_well_formed() {
        Options::augment_args(Command::new("headgate-proxy")).debug_assert();
    }

    #[test]
    fn flags_are_kept_as_they_were_given() {
        let check = |args: &[&str], name: &str, expected: Option<&str>| {
            let options = parse(args).unwrap_or_else(|error| panic!("{args:?}: {error}"));
            assert_eq!(options.given.get(name).map(String::as_str), expected, "{args:?}");
        };
        check(&["--server-port=9000"], "SERVER_PORT", Some("9000"));
        check(&["--server-port", "9000"], "SERVER_PORT", Some("9000"));
        check(&["--server-port=1", "--server-port=2"], "SERVER_PORT", Some("2"));
        check(&["--proxy-retries=-1"], "PROXY_MAX_RETRIES", Some("-1"));
        check(&["--proxy-retries", "-1"], "PROXY_MAX_RETRIES", Some("-1"));
        check(&["--proxy-max-retries=4"], "PROXY_MAX_RETRIES", Some("4"));
        check(&["--metrics-enabled"], "METRICS_ENABLED", Some("true"));
        check(&["--metrics-enabled=false"], "METRICS_ENABLED", Some("false"));
        check(&["--valkey-pass=007"], "VALKEY_PASS", Some("007"));
        check(&["--valkey-pass=-x=y"], "VALKEY_PASS", Some("-x=y"));
        check(&[], "SERVER_PORT", None);
    }

    #[test]
    fn one_dash_is_as_good_as_two() {
        let args = ["x", "-server-port=1", "-metrics-enabled", "--log-level", "-v", "-", "-server-prt=1"];
        let expected =
            ["x", "--server-port=1", "--metrics-enabled", "--log-level", "-v", "-", "-server-prt=1"];
        assert_eq!(Options::double_dashed(args.map(OsString::from)), expected.map(OsString::from));
    }

    #[test]
    fn unknown_flags_are_refused_with_the_nearest() {
        let error = parse(&["--sever-port=1"]).unwrap_err().to_string();
        assert!(error.contains("--server-port"), "{error}");
    }

    #[test]
    fn every_setting_has_a_flag_and_help_names_its_variable() {
        let help = Options::augment_args(Command::new("x")).render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for setting in SETTINGS {
            assert!(help.contains(&format!("--{}", setting.flag)), "{}", setting.flag);
            assert!(help.contains(&format!("[env: {}]", setting.name)), "{}", setting.name);
        }
    }

    #[test]
    fn values_are_not_printed() {
        let options = Options::default().with("VALKEY_PASS", "hunter2");
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
