//! What a proxy knows of a refusal. Decides nothing but who the witness is.

use aimd::Witness;

/// A refusal, as the proxy knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// When the refused request was sent.
    pub sent_at: u64,
    /// How many requests were refused: 1, or the refused items of a batch.
    pub requests: u32,
    /// The window that the refusal names, in milliseconds.
    pub named_window_ms: Option<u64>,
    /// A health or recovery probe was refused.
    pub probe: bool,
    /// A quota is used up.
    pub quota: bool,
    /// The request was sent above the ceiling.
    pub overflow: bool,
}

impl Evidence {
    /// An ordinary request sent at `sent_at` was refused.
    #[must_use]
    pub fn client(sent_at: u64) -> Self {
        Self { sent_at, requests: 1, named_window_ms: None, probe: false, quota: false, overflow: false }
    }

    pub(crate) fn witness(&self) -> Witness {
        match self {
            Self { overflow: true, .. } => Witness::Overflow,
            Self { probe: true, .. } => Witness::Probe,
            Self { quota: true, .. } => Witness::Quota,
            Self { .. } => Witness::Client,
        }
    }
}
