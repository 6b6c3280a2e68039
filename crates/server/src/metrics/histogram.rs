//! Durations by size, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::exposition::Exposition;

/// Upper bounds in seconds: from one sync of a fast disk to a restore of minutes.
pub(crate) const BOUNDS: [f64; 14] =
    [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 600.0];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// The last one is of what is beyond all bounds.
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
}

impl Histogram {
    pub fn record(&self, duration: Duration) {
        let at = BOUNDS.partition_point(|bound| *bound < duration.as_secs_f64());
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(duration.as_micros() as u64, Ordering::Relaxed);
    }

    pub fn write(&self, out: &mut Exposition, labels: &[(&str, &str)]) {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let sum = self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        out.histogram_sample(labels, &BOUNDS, &counts, sum);
    }
}
