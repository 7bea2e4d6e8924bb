//! The command line: what the program can be asked to do.

mod ask;
mod check;
mod classify;
mod client;
mod demo;
mod healthcheck;
mod simulate;
mod why;

pub(crate) use config::print_findings;

use clap::{Parser, Subcommand};
use config::{Env, Options};
use std::process::ExitCode;

/// The configuration cannot be used (`EX_USAGE`).
pub(crate) const BAD_CONFIGURATION: u8 = 64;

/// A load balancer for blockchain JSON-RPC that learns what every provider will take.
#[derive(Parser)]
#[command(name = "headgate-proxy", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(flatten)]
    options: Options,
    /// Serve /demo from four simulated providers inside this process; needs no file and no network
    #[arg(long)]
    demo: bool,
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
    /// Read one provider's answer a line (JSON) and print what it means
    Classify,
    /// Print what happened to a request
    Why {
        /// The id, from the answer's X-Request-Id
        id: String,
        /// The running proxy's metrics port [default: http://127.0.0.1:<METRICS_PORT>]
        #[arg(long)]
        url: Option<String>,
    },
    /// Exit with 0 if the running proxy is ready, with 1 if it is not; for a container's health check
    Healthcheck {
        /// What to ask instead; 200 is good [default: http://127.0.0.1:<SERVER_PORT>/ready]
        #[arg(long)]
        url: Option<String>,
    },
    /// Serve simulated providers for proxies to ask, as docker compose's profile demo does
    Simulate {
        /// The first one's port; the others have those after it
        #[arg(long, default_value_t = 8545, value_parser = clap::value_parser!(u16).range(1..=65_000))]
        port: u16,
    },
    /// Keys of clients
    #[command(subcommand)]
    Client(Client),
    /// Print the JSON Schema of the endpoints file
    Schema,
}

#[derive(Subcommand)]
enum Client {
    /// Make a key, and print it once with the entry to paste into CLIENTS_FILE
    New {
        /// What the client is called
        #[arg(long)]
        id: String,
        /// The plan it belongs to
        #[arg(long)]
        plan: Option<String>,
    },
}

/// Does what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse_from(Options::double_dashed(std::env::args_os()));
    let env = Env::of_process();
    match cli.command {
        Some(Command::Classify) => classified(&cli.options, &env),
        Some(Command::Why { id, url }) => why::print(&cli.options, &env, &id, url),
        Some(Command::Healthcheck { url }) => healthcheck::check(&cli.options, &env, url),
        Some(Command::Simulate { port }) => simulate::run(port),
        Some(Command::Client(Client::New { id, plan })) => client::new(&id, plan.as_deref()),
        Some(Command::Schema) => {
            println!("{:#}", config::schema());
            ExitCode::SUCCESS
        }
        None if cli.check => check::check(&cli.options, &env),
        None if cli.demo => demo::run(cli.options, env),
        None => crate::start::serve(&cli.options, env, cli.strict, None),
    }
}

fn classified(options: &Options, env: &Env) -> ExitCode {
    let (settings, findings) = config::load_settings(options, env);
    print_findings(&findings);
    let rules = match crate::tables::rules(&settings) {
        Ok(rules) => rules,
        Err(finding) => {
            print_findings(&[finding]);
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    match classify::run(&rules, std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has had enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headgate-proxy classify: {error}");
            ExitCode::FAILURE
        }
    }
}
