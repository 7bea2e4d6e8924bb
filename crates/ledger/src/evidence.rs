//! What a proxy knows of a refusal. Decides nothing but who the witness is.

use aimd::Witness;

/// A refusal, as the proxy knows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// When the refused request was sent.
    pub sent_at: u64,
    /// How many requests were refused: 1, or the refused items of a batch.
    pub requests: u32,
    /// The window that the refusal names, in milliseconds.
    pub named_window_ms: Option<u64>,
    /// How many requests the refusal says that window takes.
    pub stated: Option<u64>,
    /// A health or recovery probe was refused.
    pub probe: bool,
    /// A quota is used up.
    pub quota: bool,
    /// The request was sent above the ceiling.
    pub overflow: bool,
    /// Chance, in 0..=1.
    pub chance: f64,
}

impl Evidence {
    /// An ordinary request sent at `sent_at` was refused.
    #[must_use]
    pub fn client(sent_at: u64) -> Self {
        Self {
            sent_at,
            requests: 1,
            named_window_ms: None,
            stated: None,
            probe: false,
            quota: false,
            overflow: false,
            chance: 0.5,
        }
    }

    /// The probe that is to end a park.
    #[must_use]
    pub fn probe(sent_at: u64, chance: f64) -> Self {
        Self { probe: true, chance, ..Self::client(sent_at) }
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

/// A learned ceiling that came down, or its first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lowered {
    /// Its window in milliseconds.
    pub window_ms: u64,
    /// The ceiling in force before; `None` for the first.
    pub from: Option<u64>,
    /// The ceiling now.
    pub to: u64,
}
