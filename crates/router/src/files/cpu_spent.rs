//! CPU time that the runs inside a run have asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A counter of CPU time that a run shares with the runs inside it.
#[derive(Clone, Debug, Default)]
pub struct CpuSpent(Arc<AtomicU64>);

impl CpuSpent {
    #[must_use]
    pub fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    pub fn add(&self, time: Duration) {
        self.0.fetch_add(microseconds(time), Ordering::Relaxed);
    }

    /// Takes away what was added before.
    pub fn give_back(&self, time: Duration) {
        self.0.fetch_sub(microseconds(time), Ordering::Relaxed);
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 8)
}
