//! Histograms of durations that are counted elsewhere and added up here: a fold costs an addition per bucket, however many
//! samples it brings. The exporter's own keep every sample until they are tidied. Names and labels are the caller's.

use metrics_exporter_prometheus::formatting::{sanitize_label_value, write_help_line, write_type_line};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Upper bounds of every `*_seconds` histogram: from one loopback hop to a slow trace call.
pub const BOUNDS: [Duration; 16] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(15),
    Duration::from_secs(30),
];
/// What is above the last bound has a bucket too.
pub(crate) const BUCKETS: usize = BOUNDS.len() + 1;

/// The bucket that a sample belongs to, and what it adds to the sum.
pub(crate) fn sample(elapsed: Duration) -> (usize, u64) {
    let bucket = BOUNDS.partition_point(|bound| *bound < elapsed);
    (bucket, u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
}

/// All histograms of the process. Locked when a series is first counted, and to list them for a scrape.
#[derive(Clone, Debug, Default)]
pub struct Histograms(Arc<Mutex<BTreeMap<&'static str, Family>>>);

#[derive(Clone, Debug, Default)]
struct Family {
    help: &'static str,
    /// By their labels, as they are written.
    series: BTreeMap<Arc<str>, Arc<Histogram>>,
}

/// One series.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

impl Histogram {
    /// One sample, of what is counted too seldom to be added up first.
    pub fn record(&self, elapsed: Duration) {
        let (bucket, nanos) = sample(elapsed);
        self.add(bucket, 1);
        self.add_nanos(nanos);
    }

    /// Adds samples of one bucket.
    pub(crate) fn add(&self, bucket: usize, samples: u64) {
        self.counts[bucket].fetch_add(samples, Relaxed);
    }

    pub(crate) fn add_nanos(&self, nanos: u64) {
        self.nanos.fetch_add(nanos, Relaxed);
    }

    fn render(&self, out: &mut String, name: &str, labels: &str) {
        let mut samples = 0;
        let bounds = BOUNDS.iter().map(|bound| bound.as_secs_f64().to_string()).chain(["+Inf".to_owned()]);
        let comma = if labels.is_empty() { "" } else { "," };
        for (bound, count) in bounds.zip(&self.counts) {
            samples += count.load(Relaxed);
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {samples}");
        }
        let seconds = self.nanos.load(Relaxed) as f64 / 1e9;
        let _ = writeln!(out, "{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {samples}");
    }
}

impl Histograms {
    /// Tells what a histogram means.
    pub fn describe(&self, name: &'static str, help: &'static str) {
        self.families().entry(name).or_default().help = help;
    }

    /// The series with these labels; shown from now on.
    pub fn series(&self, name: &'static str, labels: &[(&str, &str)]) -> Arc<Histogram> {
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", sanitize_label_value(value))).collect();
        let mut families = self.families();
        let series = &mut families.entry(name).or_default().series;
        Arc::clone(series.entry(labels.join(",").into()).or_default())
    }

    /// Appends every series, as Prometheus reads them.
    pub(crate) fn render(&self, out: &mut String) {
        // A copy: who counts a new series must not wait until all of it is written.
        let families = self.families().clone();
        for (name, family) in families.iter().filter(|(_, family)| !family.series.is_empty()) {
            write_help_line(out, name, None, None, family.help);
            write_type_line(out, name, None, None, "histogram");
            family.series.iter().for_each(|(labels, series)| series.render(out, name, labels));
            out.push('\n');
        }
    }

    fn families(&self) -> MutexGuard<'_, BTreeMap<&'static str, Family>> {
        self.0.lock().expect("no holder of this lock can panic")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: buckets that are not cumulative, a sum in another unit, labels that break the line, a family without its type.
    #[test]
    fn a_series_is_written_as_prometheus_reads_it() {
        let histograms = Histograms::default();
        histograms.describe("x_seconds", "How long");
        histograms.describe("unused_seconds", "Never counted");
        let series = histograms.series("x_seconds", &[("chain", "a\"b"), ("endpoint", "e")]);
        series.add(0, 2);
        series.add(3, 1);
        series.add(BUCKETS - 1, 1);
        series.add_nanos(1_500_000_000);
        let mut text = String::new();
        histograms.render(&mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], ["# HELP x_seconds How long", "# TYPE x_seconds histogram"]);
        let labels = r#"chain="a\"b",endpoint="e""#;
        assert_eq!(lines[2], format!("x_seconds_bucket{{{labels},le=\"0.0005\"}} 2"));
        assert_eq!(lines[4], format!("x_seconds_bucket{{{labels},le=\"0.0025\"}} 2"));
        assert_eq!(lines[5], format!("x_seconds_bucket{{{labels},le=\"0.005\"}} 3"));
        assert_eq!(lines[18], format!("x_seconds_bucket{{{labels},le=\"+Inf\"}} 4"));
        assert_eq!(lines[19], format!("x_seconds_sum{{{labels}}} 1.5"));
        assert_eq!(lines[20], format!("x_seconds_count{{{labels}}} 4"));
        assert!(!text.contains("unused"), "{text}");
    }

    /// Kills: a series that begins anew when another worker counts it too.
    #[test]
    fn workers_share_a_series() {
        let histograms = Histograms::default();
        for samples in [1, 2] {
            histograms.clone().series("x_seconds", &[("chain", "a")]).add(0, samples);
        }
        let mut text = String::new();
        histograms.render(&mut text);
        assert!(text.contains("x_seconds_count{chain=\"a\"} 3"), "{text}");
    }
}
