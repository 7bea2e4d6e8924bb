//! The two clocks, as types that do not mix. Decides nothing.

/// Milliseconds of the store's clock, the one all replicas agree on. It may step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct StoreMs(pub u64);

/// Milliseconds of the process's own monotonic clock. It never goes back and means nothing to anybody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LocalMs(pub u64);

impl LocalMs {
    /// Later by `ms`.
    #[must_use]
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Earlier by `ms`, at least 0.
    #[must_use]
    pub fn minus(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// Milliseconds since `earlier`, 0 if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl StoreMs {
    /// Milliseconds since `earlier`, 0 if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
