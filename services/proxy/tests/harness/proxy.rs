//! The running process: started, asked where it listens, looked into, ended.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::Value;
use tokio::sync::oneshot;

use super::command::wait;
use super::{GLANCE, soon};

/// The name of the endpoints file in a process's folder.
pub(super) const ENDPOINTS: &str = "endpoints.json";

/// How much of a process's log is kept.
const LOG_LINES: usize = 50_000;

/// How much of it is printed after a failure.
const LOG_END: usize = 200;

/// A `headgate-proxy` process. Dropped, it is killed; after a failure its log is printed.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) dir: PathBuf,
    log: Arc<Mutex<VecDeque<String>>>,
}

impl Proxy {
    /// Starts the binary in `dir` and waits until it says where it listens.
    pub(crate) async fn start(dir: PathBuf, args: &[&str], env: &[(String, String)]) -> Self {
        Self::launch(Path::new(env!("CARGO_BIN_EXE_headgate-proxy")), dir, args, env).await
    }

    /// Starts a health checker in `dir` in the same way.
    pub(crate) async fn checker(dir: PathBuf, env: &[(String, String)]) -> Self {
        let binary = tokio::task::spawn_blocking(checker_binary).await.expect("no panic");
        Self::launch(binary, dir, &[], env).await
    }

    async fn launch(binary: &Path, dir: PathBuf, args: &[&str], env: &[(String, String)]) -> Self {
        let mut child = Command::new(binary)
            .args(args)
            .current_dir(&dir)
            .env_clear()
            .envs([
                ("SERVER_PORT", "0"),
                ("HEALTH_CHECKER_SERVER_PORT", "0"),
                ("METRICS_PORT", "0"),
                ("LOG_FORMAT", "json"),
                ("LOG_LEVEL", "info"),
            ])
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let log = Arc::default();
        let listening = follow(child.stderr.take().expect("piped"), Arc::clone(&log));
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut proxy = Self { child, address: nowhere, metrics: nowhere, dir, log };
        let told = soon(listening).await;
        let Ok(told) = told else { panic!("ended before it listened: {:?}", proxy.child.wait()) };
        proxy.address = local(&told["addr"]);
        proxy.metrics = local(&told["metrics_addr"]);
        proxy
    }

    /// Starts a process that reads this endpoints file. Whether anything is ready is left to who asks.
    pub(crate) async fn before(file: &Value, env: &[(&str, &str)]) -> Self {
        let dir = fresh_dir();
        let path = dir.join(ENDPOINTS);
        fs::write(&path, file.to_string()).expect("a file");
        let own = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let named = ("CONFIG_FILE".to_owned(), path.display().to_string());
        Self::start(dir, &[], &own.chain([named]).collect::<Vec<_>>()).await
    }

    /// The endpoints file of a process that was started with one of ours.
    pub(crate) fn file(&self) -> PathBuf {
        self.dir.join(ENDPOINTS)
    }

    /// What the process has logged, as far as it is kept.
    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("no panic").make_contiguous().join("\n")
    }

    /// Waits until the log has this text so often.
    pub(crate) async fn logged(&self, text: &str, times: usize) {
        let told = async {
            while self.log().matches(text).count() < times {
                tokio::time::sleep(GLANCE).await;
            }
        };
        soon(told).await;
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("/bin/sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Waits until the process ends; its exit code. One that does not end is killed, and has none.
    pub(crate) async fn ended(mut self) -> Option<i32> {
        tokio::task::spawn_blocking(move || wait(&mut self.child)).await.expect("no panic")
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.proc_status("VmRSS:")
    }

    /// The most memory in use since the last [`Proxy::forget_peak`], in bytes.
    pub(crate) fn peak(&self) -> u64 {
        self.proc_status("VmHWM:")
    }

    pub(crate) fn forget_peak(&self) {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5").expect("our own process");
    }

    fn proc_status(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a live process");
        let line = status.lines().find(|line| line.starts_with(name)).expect("a known line");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|field| field.parse().ok()).expect("a number");
        kib * 1024
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let last = |lines: &VecDeque<String>| {
                let skipped = lines.len().saturating_sub(LOG_END);
                lines.iter().skip(skipped).cloned().collect::<Vec<_>>().join("\n")
            };
            let log = self.log.lock().map(|lines| last(&lines)).unwrap_or_default();
            eprintln!("--- end of the proxy's log\n{log}\n---");
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The health checker beside our own binary. It is another package's, so that nobody but us builds it for us.
pub(crate) fn checker_binary() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let ours = Path::new(env!("CARGO_BIN_EXE_headgate-proxy"));
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--package", "headgate-health-checker"]);
        let profile = ours.parent().and_then(Path::file_name).expect("a profile's folder");
        if profile == "release" {
            cargo.arg("--release");
        }
        let target = ours.parent().and_then(Path::parent).expect("a target folder");
        let status = cargo.arg("--target-dir").arg(target).status().expect("cargo runs");
        assert!(status.success(), "the health checker was built");
        ours.with_file_name("headgate-health-checker")
    })
}

/// A new empty directory.
pub(crate) fn fresh_dir() -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// Keeps the log, and tells of the line that says where the process listens.
fn follow(stderr: ChildStderr, log: Arc<Mutex<VecDeque<String>>>) -> oneshot::Receiver<Value> {
    let (told, listening) = oneshot::channel();
    std::thread::spawn(move || {
        let mut told = Some(told);
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let fields: Value = serde_json::from_str(&line).unwrap_or_default();
            if fields["message"] == "listening"
                && let Some(told) = told.take()
            {
                // Nobody waits any longer when the start took too long.
                let _ = told.send(fields);
            }
            let mut log = log.lock().expect("no panic");
            if log.len() == LOG_LINES {
                log.pop_front();
            }
            log.push_back(line);
        }
    });
    listening
}

fn local(address: &Value) -> SocketAddr {
    let text = address.as_str().unwrap_or_default();
    let address: SocketAddr = text.parse().unwrap_or_else(|err| panic!("{text}: {err}"));
    SocketAddr::from((Ipv4Addr::LOCALHOST, address.port()))
}
