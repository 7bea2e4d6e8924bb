//! Runs the binary to its end.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::PATIENCE;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `headgate-proxy` with these arguments in `dir`, in an environment of its own.
pub(crate) async fn run(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    run_binary(Path::new(env!("CARGO_BIN_EXE_headgate-proxy")), dir, args, env).await
}

/// Runs another program of ours in the same way.
pub(crate) async fn run_binary(binary: &Path, dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Ran {
    let child = Command::new(binary)
        .args(args)
        .current_dir(dir)
        .env_clear()
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    tokio::task::spawn_blocking(move || output(child)).await.expect("no panic")
}

fn output(mut child: Child) -> Ran {
    let stdout = drain(child.stdout.take().expect("piped"));
    let stderr = drain(child.stderr.take().expect("piped"));
    let code = wait(&mut child);
    let text = |pipe: JoinHandle<String>| pipe.join().expect("no panic");
    Ran { code, stdout: text(stdout), stderr: text(stderr) }
}

fn drain(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe can be read");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The exit code, if the process ends in time; it is killed otherwise.
pub(super) fn wait(child: &mut Child) -> Option<i32> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().expect("our own child") {
            return status.code();
        }
        if Instant::now() > deadline {
            child.kill().expect("our own child");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
