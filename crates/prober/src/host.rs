//! What the prober needs of the process that it runs in.

use fleet::Fleet;
use std::future::Future;
use std::sync::Arc;
use store::{Memory, Valkey};
use telemetry::histograms::Histograms;

/// A process with a fleet. All methods but [`Host::woken`] return at once.
pub trait Host: Send + Sync + 'static {
    /// The fleet of now.
    fn fleet(&self) -> Arc<Fleet>;

    fn settings(&self) -> &config::Settings;

    fn memory(&self) -> &Memory;

    fn histograms(&self) -> &Histograms;

    /// What it shares with other processes over, if it does.
    fn valkey(&self) -> Option<&Valkey>;

    /// Something was changed here that the prober and other processes should know at once.
    fn wake(&self);

    /// Waits for the next [`Host::wake`]; one that came before is not lost. Only the prober waits.
    fn woken(&self) -> impl Future<Output = ()>;

    /// A checker is at work: here, where everything was probed once, or elsewhere, as its findings show. Said again and
    /// again while it is so.
    fn checked(&self);
}
