//! The process's one metrics registry in Prometheus' text format.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of every `*_seconds` histogram, in seconds: from one loopback hop to a slow trace call.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 30.0];

/// The registry could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("installing the metrics registry: {0}")]
pub struct Error(#[from] metrics_exporter_prometheus::BuildError);

/// A handle to the installed registry.
#[derive(Clone)]
pub struct Registry {
    prometheus: PrometheusHandle,
    process: metrics_process::Collector,
}

impl Registry {
    /// Installs the registry for the whole process; at most once.
    pub fn install() -> Result<Registry, Error> {
        let prometheus = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
            .install_recorder()?;
        let process = metrics_process::Collector::default();
        process.describe();
        Ok(Registry { prometheus, process })
    }

    /// Everything that was counted so far, as Prometheus reads it.
    pub fn render(&self) -> String {
        self.process.collect();
        self.prometheus.render()
    }

    /// Folds recorded samples into their buckets. Without a call every few seconds memory grows with each sample.
    pub fn upkeep(&self) {
        self.prometheus.run_upkeep();
    }
}
