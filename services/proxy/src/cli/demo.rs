//! `--demo`: simulated providers inside the process, and what to try.

use crate::app::Bound;
use config::{Env, Options};
use std::path::PathBuf;
use std::process::ExitCode;

/// Serves `/demo`.
pub(super) fn run(options: Options, env: Env) -> ExitCode {
    let (ready, started) = std::sync::mpsc::channel();
    // The providers live on a thread of their own until the process ends.
    let providers = std::thread::Builder::new().name("providers".into()).spawn(move || provide(&ready));
    if let Err(error) = providers {
        eprintln!("headgate-proxy --demo: {error}");
        return ExitCode::FAILURE;
    }
    let file = match started
        .recv()
        .map_err(std::io::Error::other)
        .flatten()
        .and_then(|text| Scratch::write(&text))
    {
        Ok(file) => file,
        Err(error) => {
            eprintln!("headgate-proxy --demo: {error}");
            return ExitCode::FAILURE;
        }
    };
    let options = options.with("CONFIG_FILE", file.path.display().to_string());
    crate::start::serve(&options, env, false, Some(tell))
}

fn provide(ready: &std::sync::mpsc::Sender<std::io::Result<String>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let run = runtime.map(|runtime| {
        runtime.block_on(async {
            let demo = simulator::demo::demo().await;
            let told = ready.send(demo.as_ref().map(|demo| demo.endpoints_json.clone()).map_err(copy));
            if told.is_ok() && demo.is_ok() {
                std::future::pending::<()>().await;
            }
        });
    });
    if let Err(error) = run {
        let _ = ready.send(Err(error));
    }
}

fn copy(error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), error.to_string())
}

/// The demo's endpoints file; gone when dropped.
struct Scratch {
    folder: PathBuf,
    path: PathBuf,
}

impl Scratch {
    fn write(text: &str) -> std::io::Result<Scratch> {
        let folder = std::env::temp_dir().join(format!("headgate-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let path = folder.join("endpoints.json");
        std::fs::write(&path, text)?;
        Ok(Scratch { folder, path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's own tidying of its temporary folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn tell(bound: &Bound) {
    let port = bound.port();
    println!("Headgate serves four simulated providers on http://localhost:{port}/demo:");
    println!("  steady   answers everything        limited  takes 5 requests a second, then says 429");
    println!("  failing  always says 500           slow     thinks for 300 ms");
    println!("\nTry:");
    println!(
        "  curl -i localhost:{port}/demo -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_blockNumber\",\"params\":[]}}'"
    );
    if let Some(metrics) = bound.operators_port() {
        println!(
            "  http://localhost:{metrics}/                  what Headgate knows of each provider, in a browser"
        );
        println!("  curl -s localhost:{metrics}/status        the same as JSON");
        println!("  curl -s localhost:{metrics}/metrics       its history, for Prometheus");
        let url = if metrics == 9090 { String::new() } else { format!(" --url http://localhost:{metrics}") };
        println!("  headgate-proxy why <X-Request-Id>{url}     what happened to one request");
    }
    println!("\nCtrl-C ends it.");
}
