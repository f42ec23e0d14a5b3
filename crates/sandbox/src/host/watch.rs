//! The watch over a running worker: how long it may still run before it must be looked at, and why it must die.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Between two looks at a run that has waited for a person.
const PAUSED_LOOK: Duration = Duration::from_millis(10);

/// Why the watch killed a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overrun {
    CpuTime,
    WallTime,
}

/// Watches one run from outside. The engine's own checks come first; this is for loops that never ask them.
#[derive(Debug)]
pub(super) struct Watch {
    clock: Option<ClockId>,
    cpu_start: Duration,
    cpu_limit: Duration,
    deadline: Instant,
}

impl Watch {
    pub(super) fn start(clock: Option<ClockId>, cpu: Duration, wall: Duration) -> Self {
        let cpu_start = clock.and_then(read).unwrap_or_default();
        // The engine stops itself at the limit; half of it more is its time to report.
        Self { clock, cpu_start, cpu_limit: cpu + cpu / 2, deadline: Instant::now() + wall }
    }

    /// A worker has one thread, so its CPU time cannot reach the limit sooner than this. `waited` is how long the run has
    /// waited for a person; it moves the deadline.
    pub(super) fn next_look(&self, waited: Duration) -> Instant {
        let now = Instant::now();
        let left = self.cpu_limit.saturating_sub(self.cpu_used());
        let look = (now + left.max(Duration::from_millis(1))).min(self.deadline + waited);
        // While a person is asked the deadline moves as fast as the clock, and must not be looked at all the time.
        if waited.is_zero() { look } else { look.max(now + PAUSED_LOOK) }
    }

    pub(super) fn overrun(&self, waited: Duration) -> Option<Overrun> {
        if self.cpu_used() >= self.cpu_limit {
            Some(Overrun::CpuTime)
        } else if Instant::now() >= self.deadline + waited {
            Some(Overrun::WallTime)
        } else {
            None
        }
    }

    pub(super) fn cpu_used(&self) -> Duration {
        self.clock.and_then(read).unwrap_or_default().saturating_sub(self.cpu_start)
    }
}

fn read(clock: ClockId) -> Option<Duration> {
    clock_gettime(clock).ok().map(Duration::from)
}
