//! Logs, the metrics registry and the operator routes.
