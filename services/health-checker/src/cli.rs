//! The command line: what the program can be asked to do.

pub(crate) use config::print_findings;

use clap::{Parser, Subcommand};
use config::{Env, Options, SecretUrl};
use std::process::ExitCode;
use std::time::Duration;
use upstream::{Connector, Target, get_status};

/// The configuration cannot be used (`EX_USAGE`).
pub(crate) const BAD_CONFIGURATION: u8 = 64;
/// A checker that is alive answers well within this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Checks the health of JSON-RPC endpoints once for any number of proxies.
#[derive(Parser)]
#[command(name = "headgate-health-checker", version, about, max_term_width = 110)]
struct Cli {
    #[command(flatten)]
    options: Options,
    /// Validate everything strictly, print what was found, and exit with 0 or 64
    #[arg(long)]
    check: bool,
    /// Take every warning for an error
    #[arg(long)]
    strict: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Ask the checker that runs on this machine whether it is alive, and exit with 0 or 1
    Healthcheck,
}

/// Does what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse_from(Options::double_dashed(std::env::args_os()));
    let env = Env::of_process();
    match cli.command {
        Some(Command::Healthcheck) => healthcheck(&cli.options, &env),
        None if cli.check => check(cli.options, &env),
        None => crate::start::serve(cli.options, env, cli.strict),
    }
}

fn check(options: Options, env: &Env) -> ExitCode {
    let problems = match config::load(options, env, true) {
        Ok(config) => match crate::start::sound(&config.settings) {
            Ok(_) => return ExitCode::SUCCESS,
            Err(finding) => vec![finding],
        },
        Err(findings) => findings,
    };
    print_findings(&problems);
    eprintln!("{} problem(s) found", problems.len());
    ExitCode::from(BAD_CONFIGURATION)
}

fn healthcheck(options: &Options, env: &Env) -> ExitCode {
    let (settings, _) = config::load_settings(options, env);
    let page = format!("http://127.0.0.1:{}/health", settings.health_checker_server_port);
    let asked = async {
        let url = SecretUrl::parse(&page, &["http"])?;
        let target = Target::new(&url, &[]).map_err(|error| error.to_string())?;
        let connector = Connector::new();
        let asking = get_status(&connector, &target);
        tokio::time::timeout(PATIENCE, asking).await.map_err(|_| "no answer in time".to_owned())?
    };
    let answer = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(asked),
        Err(error) => Err(error.to_string()),
    };
    match answer {
        Ok(200) => ExitCode::SUCCESS,
        Ok(status) => unwell(&page, &format!("status {status}")),
        Err(why) => unwell(&page, &why),
    }
}

fn unwell(page: &str, why: &str) -> ExitCode {
    eprintln!("headgate-health-checker healthcheck: asking {page}: {why}");
    ExitCode::FAILURE
}
