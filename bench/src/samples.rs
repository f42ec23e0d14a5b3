//! Times of many runs, and what to say about them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The middle of many runs and the range that nine of ten are in.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub p5: f64,
    pub p50: f64,
    pub p95: f64,
}

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

    /// Where most of the runs were, for a chart.
    pub fn spread(&self) -> Spread {
        Spread { p5: self.percentile(5), p50: self.median(), p95: self.percentile(95) }
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
    use std::time::Duration;

    use super::{Samples, Spread};

    #[test]
    fn percentiles_are_nearest_rank() {
        let samples: Samples = (1..=200).rev().map(f64::from).collect();
        assert_eq!(
            [50, 95, 99, 100].map(|percent| samples.percentile(percent)),
            [100.0, 190.0, 198.0, 200.0]
        );
        assert!(Samples::default().median().is_nan());
    }

    #[test]
    fn a_spread_holds_nine_of_ten_runs() {
        let samples: Samples = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(samples.spread(), Spread { p5: 5.0, p50: 50.0, p95: 95.0 });
        let one: Samples = [7.0].into_iter().collect();
        assert_eq!(one.spread(), Spread { p5: 7.0, p50: 7.0, p95: 7.0 });
        assert_eq!(one.tail(), "p95 7.000, p99 7.000 ms");
    }
}
