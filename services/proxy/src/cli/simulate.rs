//! `simulate`: the simulated providers of the demo with dashboards, as a process that other proxies ask.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until told to stop.
pub(super) fn run(port: u16) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(provide(port))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headgate-proxy simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn provide(port: u16) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stage = simulator::stage::Stage::open(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))).await?;
    for (name, provider) in stage.providers() {
        println!("{name:<8} on port {}", provider.address().port());
    }
    tokio::select! {
        played = stage.play() => played,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}
