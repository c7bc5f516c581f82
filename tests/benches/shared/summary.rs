//! The statistics of a benchmark's samples.

use std::fmt;

/// The median of the samples, and half of the distance between their quartiles.
#[derive(Clone, Copy)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) spread: f64,
}

impl Summary {
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Self {
        let mut samples: Vec<_> = samples.into_iter().collect();
        samples.sort_by(f64::total_cmp);
        let quartile = |n| samples[n * (samples.len() - 1) / 4];
        Self { median: quartile(2), spread: (quartile(3) - quartile(1)) / 2.0 }
    }
}

/// Formats both with the wanted number of decimals.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(1);
        write!(f, "{:.decimals$} ± {:.decimals$}", self.median, self.spread)
    }
}
