//! Runs the binary to its end.

use std::path::Path;
use std::process::Command;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `headgate-proxy` with these arguments in `dir`, in an environment of its own.
pub(crate) async fn run(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headgate-proxy"));
    command.args(args).current_dir(dir).env_clear().envs(env.iter().copied());
    let output =
        tokio::task::spawn_blocking(move || command.output()).await.expect("no panic").expect("runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}
