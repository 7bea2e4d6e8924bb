//! The process's one metrics registry in Prometheus' text format.

use crate::histograms::Histograms;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

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
        let prometheus = PrometheusBuilder::new().install_recorder()?;
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

    /// All histograms there are. The exporter's own would keep every sample until somebody tidies them.
    pub fn histograms(&self) -> &Histograms {
        &self.histograms
    }
}
