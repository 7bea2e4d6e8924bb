//! `healthcheck`: whether a process says it is ready, as an exit code. For images without a shell.

use super::ask;
use config::{Env, Options};
use std::process::ExitCode;

pub(super) fn check(options: &Options, env: &Env, url: Option<String>) -> ExitCode {
    let (settings, _) = config::load_settings(options, env);
    let url = url.unwrap_or_else(|| format!("http://127.0.0.1:{}/ready", settings.server_port));
    match ask::get(&url) {
        Ok((200, _)) => ExitCode::SUCCESS,
        Ok((status, body)) => {
            println!("{status} {}", String::from_utf8_lossy(&body).trim_end());
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{url}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
