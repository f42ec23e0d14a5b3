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
    /// When the CPU clock is worth reading again. A worker has one thread, so its CPU time cannot reach the limit sooner.
    cpu_look: Instant,
    deadline: Instant,
}

impl Watch {
    pub(super) fn start(clock: Option<ClockId>, cpu: Duration, wall: Duration) -> Self {
        let cpu_start = clock.and_then(read).unwrap_or_default();
        // The engine stops itself at the limit; half of it more is its time to report.
        let cpu_limit = cpu + cpu / 2;
        let now = Instant::now();
        Self { clock, cpu_start, cpu_limit, cpu_look: now + cpu_limit, deadline: now + wall }
    }

    /// When to look again at the latest. `waited` is how long the run has waited for a person; it moves the deadline.
    pub(super) fn next_look(&self, waited: Duration) -> Instant {
        let look = self.cpu_look.min(self.deadline + waited);
        // While a person is asked the deadline moves as fast as the clock, and must not be looked at all the time.
        if waited.is_zero() { look } else { look.max(Instant::now() + PAUSED_LOOK) }
    }

    pub(super) fn overrun(&mut self, waited: Duration) -> Option<Overrun> {
        let now = Instant::now();
        if now >= self.cpu_look {
            let left = self.cpu_limit.saturating_sub(self.cpu_used());
            if left.is_zero() {
                return Some(Overrun::CpuTime);
            }
            self.cpu_look = now + left.max(Duration::from_millis(1));
        }
        (now >= self.deadline + waited).then_some(Overrun::WallTime)
    }

    pub(super) fn cpu_used(&self) -> Duration {
        self.clock.and_then(read).unwrap_or_default().saturating_sub(self.cpu_start)
    }
}

fn read(clock: ClockId) -> Option<Duration> {
    clock_gettime(clock).ok().map(Duration::from)
}
