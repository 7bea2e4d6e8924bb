//! A real Valkey in a container, with nothing on disk, on a free port of this machine.

#[allow(dead_code, reason = "servers are containers here")]
#[path = "../../crates/store/tests/shared/server.rs"]
mod process;

use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use testcontainers::core::{IntoContainerPort, WaitFor};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, GenericImage, ImageExt};
use tokio::runtime::{Builder, Runtime};

pub(crate) use process::free_port;

/// Made by `scripts/base-images.sh`, as compose and Kubernetes have it.
const IMAGE: (&str, &str) = ("valkey/valkey", "8.0");
const INSIDE: u16 = 6379;
/// Longer than a container takes to start, several at once.
const PATIENCE: Duration = Duration::from_secs(60);
/// What speaks to Docker: a test's own runtime may be gone when a container is removed.
static DOCKER: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime"));

/// A container. Dropped, it is removed.
pub(crate) struct Server {
    pub(crate) port: u16,
    container: Option<ContainerAsync<GenericImage>>,
}

impl Server {
    /// Starts one with these arguments besides the usual.
    pub(crate) fn start(args: &[&str]) -> Server {
        let usual = ["valkey-server", "--protected-mode", "no", "--save", "", "--appendonly", "no"];
        let port = free_port();
        let request = GenericImage::new(IMAGE.0, IMAGE.1)
            .with_wait_for(WaitFor::message_on_stdout("Ready to accept connections"))
            .with_startup_timeout(PATIENCE)
            .with_mapped_port(port, INSIDE.tcp())
            .with_cmd(usual.iter().chain(args).map(|arg| (*arg).to_owned()));
        let container = apart(request.start()).expect("a container: tests/containers/run.sh makes its image");
        let server = Server { port, container: Some(container) };
        server.answers();
        server
    }

    /// Ends it, and starts it again: it knows nothing then.
    pub(crate) fn restart(&mut self) {
        self.obeyed(self.container().stop_with_timeout(Some(0)));
        self.obeyed(self.container().start());
        self.answers();
    }

    /// It accepts connections, and answers nothing.
    pub(crate) fn freeze(&self) {
        self.obeyed(self.container().pause());
    }

    pub(crate) fn thaw(&self) {
        self.obeyed(self.container().unpause());
    }

    /// Sends one command and returns what comes back, as it comes.
    pub(crate) fn ask(&self, words: &[&str]) -> String {
        process::ask(self.port, words).expect("a live server")
    }

    fn answers(&self) {
        let deadline = Instant::now() + PATIENCE;
        while process::ask(self.port, &["PING"]).is_none() {
            assert!(Instant::now() < deadline, "Valkey does not answer on port {}", self.port);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn container(&self) -> &ContainerAsync<GenericImage> {
        self.container.as_ref().expect("until it is dropped")
    }

    fn obeyed<E: std::fmt::Debug + Send>(&self, order: impl Future<Output = Result<(), E>> + Send) {
        apart(order).expect("Docker obeys");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let removed = self.container.take().map(|container| apart(container.rm()));
        if let Some(Err(error)) = removed {
            eprintln!("a container is left behind: {error}");
        }
    }
}

/// Waits for something asynchronous on a thread of its own: a test's thread may belong to a runtime already.
fn apart<T: Send>(order: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| DOCKER.block_on(order)).join())
        .expect("Docker is asked without a panic")
}
