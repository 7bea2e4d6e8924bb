//! The process's one metrics registry in Prometheus' text format.

use crate::histograms::{BOUNDS, Histograms};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// The registry could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("installing the metrics registry: {0}")]
pub struct Error(#[from] metrics_exporter_prometheus::BuildError);

/// A handle to the installed registry.
#[derive(Clone)]
pub struct Registry {
    prometheus: PrometheusHandle,
    histograms: Histograms,
    process: metrics_process::Collector,
}

impl Registry {
    /// Installs the registry for the whole process; at most once.
    pub fn install() -> Result<Registry, Error> {
        let seconds = BOUNDS.map(|bound| bound.as_secs_f64());
        let prometheus = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &seconds)?
            .install_recorder()?;
        let process = metrics_process::Collector::default();
        process.describe();
        Ok(Registry { prometheus, histograms: Histograms::default(), process })
    }

    /// Everything that was counted so far, as Prometheus reads it.
    pub fn render(&self) -> String {
        self.process.collect();
        let mut text = self.prometheus.render();
        self.histograms.render(&mut text);
        text
    }

    /// Histograms that are added up, not sampled.
    pub fn histograms(&self) -> &Histograms {
        &self.histograms
    }

    /// Folds recorded samples into their buckets. Without a call every few seconds memory grows with each sample.
    pub fn upkeep(&self) {
        self.prometheus.run_upkeep();
    }
}
