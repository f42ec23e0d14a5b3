//! Timers that a tool has set, by due time.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A tool that waits longer than this meets its wall-clock cap first.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Numbers from here on are timers of the platform itself; `40_timers.js` gives them out.
const FIRST_QUIET: u64 = 1 << 40;

#[derive(Default)]
pub(super) struct Timers(RefCell<BTreeSet<(Instant, u64)>>);

impl Timers {
    pub(super) fn arm(&self, id: u64, wait_ms: f64) {
        let wait = Duration::try_from_secs_f64(wait_ms / 1000.0).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        self.0.borrow_mut().insert((Instant::now() + wait, id));
    }

    pub(super) fn disarm(&self, id: u64) {
        self.0.borrow_mut().retain(|(_, armed)| *armed != id);
    }

    /// How many timers of the tool itself have not fired.
    pub(super) fn pending(&self) -> usize {
        self.0.borrow().iter().filter(|(_, id)| *id < FIRST_QUIET).count()
    }

    /// How long until the next timer is due.
    pub(super) fn next_wait(&self) -> Option<Duration> {
        self.0.borrow().first().map(|(due, _)| due.saturating_duration_since(Instant::now()))
    }

    /// Takes the next timer that is due.
    pub(super) fn take_due(&self) -> Option<u64> {
        let mut timers = self.0.borrow_mut();
        let first = *timers.first()?;
        if first.0 > Instant::now() {
            return None;
        }
        timers.remove(&first);
        Some(first.1)
    }
}
