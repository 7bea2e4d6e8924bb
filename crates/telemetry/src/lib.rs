//! Logs, the metrics registry, and the layers of the operator's port. Used by every service.
//!
//! It names no metric of its own: names and labels belong to the service that counts.

pub mod histograms;
pub mod local;
pub mod logs;
pub mod operator;
pub mod registry;
