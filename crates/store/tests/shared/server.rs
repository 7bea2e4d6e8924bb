//! A real `valkey-server` on a free port, with nothing on disk.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::RangeInclusive;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Longer than a server takes to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// Below the ports that the system gives to those who name none: a connection of another test may take one of these, for
/// good or just while a server is being restarted.
const PORTS: RangeInclusive<u16> = 16_384..=32_767;

/// A server process. Dropped, it is killed.
pub(crate) struct Server {
    pub(crate) port: u16,
    args: Vec<String>,
    child: Child,
}

impl Server {
    /// Starts one with these arguments besides the usual.
    pub(crate) fn start(args: &[&str]) -> Server {
        let memory_only = ["--save", "", "--appendonly", "no", "--repl-diskless-load", "swapdb"];
        Server::start_with(None, &[&memory_only, args].concat())
    }

    /// Starts one with these arguments alone, and a configuration file that it may write to.
    pub(crate) fn start_with(config: Option<&str>, args: &[&str]) -> Server {
        let args: Vec<String> = config.iter().chain(args).map(|arg| (*arg).to_owned()).collect();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let port = free_port();
            if let Some(child) = spawn(port, &args) {
                return Server { port, args, child };
            }
            assert!(Instant::now() < deadline, "valkey-server ends at once, with {args:?}");
        }
    }

    /// Ends it at once.
    pub(crate) fn kill(&mut self) {
        // It may be frozen: only this signal ends it then.
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
    }

    /// Ends it, and starts another one in its place that knows nothing.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = spawn(self.port, &self.args).expect("valkey-server starts again on its port");
    }

    /// It accepts connections, and answers nothing.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("/bin/sh").args(["-c", &kill]).status().expect("a shell").success());
    }

    /// Sends one command and returns what comes back, as it comes.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        ask(self.port, words).expect("a live server")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on, never the same twice. Processes begin at different ones.
pub(crate) fn free_port() -> u16 {
    static NEXT: LazyLock<AtomicU16> = LazyLock::new(|| {
        let process = std::process::id().wrapping_mul(2_654_435_761);
        AtomicU16::new((process >> 16) as u16)
    });
    let ports = PORTS.end() - PORTS.start() + 1;
    loop {
        let port = PORTS.start() + NEXT.fetch_add(1, Relaxed) % ports;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}

/// Starts a server and waits until it answers; `None` if it ends before, since somebody else was quicker to take the port.
fn spawn(port: u16, args: &[String]) -> Option<Child> {
    let mut child = Command::new("valkey-server")
        .args(args)
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("valkey-server is in PATH: scripts/setup.sh installs it");
    let deadline = Instant::now() + PATIENCE;
    // Any answer will do: also that a password is wanted.
    loop {
        let answered = ask(port, &["PING"]).is_some();
        if child.try_wait().expect("our own child").is_some() {
            return None;
        }
        if answered {
            return Some(child);
        }
        assert!(Instant::now() < deadline, "valkey-server does not answer on port {port}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// One command and what comes back; `None`: nobody answers.
pub(crate) fn ask(port: u16, words: &[&str]) -> Option<String> {
    let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = vec![0; 64 * 1024];
    let read = stream.read(&mut answer).ok().filter(|read| *read > 0)?;
    Some(String::from_utf8_lossy(&answer[..read]).into_owned())
}
