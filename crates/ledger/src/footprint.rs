//! What a process tells the others of an account with a learned ceiling, and what it hears of them. Decides nothing.

/// How much one process, or several together, ask of an account and use of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Requests in a thousand seconds that want it, whether or not there is room.
    pub wanted: u64,
    /// What is in use without refused requests and probes, in thousandths of a request, by window in milliseconds. Empty
    /// where the law takes its own use for a sample of all.
    pub used: Vec<(u64, u64)>,
}
