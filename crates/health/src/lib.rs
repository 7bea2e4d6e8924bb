//! Probes, their schedule, and what their results mean.
