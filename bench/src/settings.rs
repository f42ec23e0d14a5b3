//! How much of everything is measured, and whether missing peers are installed.

use crate::peers::Peers;

/// The sizes that a section chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Every code path once. No number counts.
    Smoke,
    /// The sizes of the budgets; minutes in all.
    Usual,
    /// The largest sizes of `growth`, which take most of an hour.
    Long,
}

/// What every section is given.
#[derive(Clone, Copy, Debug)]
pub struct BenchSettings {
    pub scale: Scale,
    /// Calls of each contender.
    pub runs: usize,
    /// Processes of each contender.
    pub processes: usize,
    pub peers: Peers,
}

impl BenchSettings {
    /// The usual value, or the one for a smoke test.
    pub fn or_smoke<T>(&self, usual: T, smoke: T) -> T {
        if self.is_smoke() { smoke } else { usual }
    }

    pub fn is_smoke(&self) -> bool {
        self.scale == Scale::Smoke
    }
}
