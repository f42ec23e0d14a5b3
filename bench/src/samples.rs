//! Times of many runs, and what to say about them.

use std::time::Duration;

/// Milliseconds, sorted.
#[derive(Clone, Debug, Default)]
pub struct Samples(Vec<f64>);

impl Samples {
    pub fn percentile(&self, percent: usize) -> f64 {
        // Nearest rank: the smallest value that at least so many percent of the runs stayed within.
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).or(self.0.last()).copied().unwrap_or(f64::NAN)
    }

    pub fn median(&self) -> f64 {
        self.percentile(50)
    }

    pub fn fastest(&self) -> f64 {
        self.0.first().copied().unwrap_or(f64::NAN)
    }

    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// `p95 0.412, p99 0.530 ms`, for the line below a median.
    pub fn tail(&self) -> String {
        format!("p95 {:.3}, p99 {:.3} ms", self.percentile(95), self.percentile(99))
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(milliseconds: I) -> Self {
        let mut sorted: Vec<f64> = milliseconds.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self(sorted)
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        times.into_iter().map(|time| time.as_secs_f64() * 1000.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;

    #[test]
    fn percentiles_are_nearest_rank() {
        let samples: Samples = (1..=200).rev().map(f64::from).collect();
        assert_eq!(
            [50, 95, 99, 100].map(|percent| samples.percentile(percent)),
            [100.0, 190.0, 198.0, 200.0]
        );
        assert!(Samples::default().median().is_nan());
    }
}
