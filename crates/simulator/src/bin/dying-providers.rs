//! `dying-providers PORT...`: providers of one chain on these ports of the loopback address, one of which is always down.
//! The chain has four blocks a second, and another one dies every two seconds. Ends with the first signal.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use simulator::mortals::Mortals;
use tokio::signal::unix::{SignalKind, signal};

const BLOCK_TIME: Duration = Duration::from_millis(250);
const DOWN: Duration = Duration::from_secs(2);

fn main() -> ExitCode {
    let ports: Result<Vec<u16>, _> = std::env::args().skip(1).map(|port| port.parse()).collect();
    let ports = match ports {
        Ok(ports) if ports.len() > 1 => ports,
        _ => {
            eprintln!("usage: dying-providers PORT PORT...");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.and_then(|runtime| runtime.block_on(serve(&ports))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dying-providers: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve(ports: &[u16]) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let addresses: Vec<_> = ports.iter().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).collect();
    let mortals = Mortals::open(&addresses, BLOCK_TIME).await?;
    tokio::select! {
        played = mortals.play(DOWN) => played,
        _ = terminate.recv() => Ok(()),
    }
}
