//! How long and how hard a soak is.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// A load up to this length is the bounded one.
const BOUNDED: Duration = Duration::from_secs(60);

/// Everything that is decided before a soak starts.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long the load lasts; recovery and checks come after it.
    pub length: Duration,
    /// What all choices of the actors follow from.
    pub seed: u64,
    /// The size of the small disk.
    pub disk_bytes: u64,
    /// Milliseconds between two signals.
    pub kill_pause: RangeInclusive<u64>,
    /// Milliseconds between two phases in which the disk is full.
    pub disk_pause: RangeInclusive<u64>,
    /// Milliseconds for which the disk stays full.
    pub disk_hold: RangeInclusive<u64>,
}

impl Plan {
    /// The plan of a load of this length.
    #[must_use]
    pub fn of(length: Duration, seed: u64) -> Self {
        let is_bounded = length <= BOUNDED;
        let minutes = length.as_secs().div_ceil(60);
        Self {
            length,
            seed,
            // What the load itself needs grows with its length.
            disk_bytes: (128 << 20) + minutes * (96 << 20),
            kill_pause: if is_bounded { 200..=700 } else { 300..=1500 },
            disk_pause: if is_bounded { 3000..=5000 } else { 8000..=20000 },
            disk_hold: if is_bounded { 500..=1500 } else { 500..=4000 },
        }
    }

    /// The words that run the same plan again.
    #[must_use]
    pub fn command(&self) -> String {
        format!("cargo xtask soak --seconds {} --seed {}", self.length.as_secs(), self.seed)
    }

    /// When everything must be over, checks included; a soak that takes longer hangs.
    #[must_use]
    pub fn watchdog(&self, start: Instant) -> Instant {
        start + self.length * 2 + Duration::from_secs(240)
    }
}
