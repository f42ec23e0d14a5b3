//! `sandbox`: the caps of every run.

use std::time::Duration;

use tgp_sandbox::RunLimits;

use super::fields::Fields;

/// The section `sandbox`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SandboxConfig {
    pub limits: RunLimits,
    /// Warm workers kept ready.
    pub pool: usize,
    pub seed: Option<u64>,
    /// Stops the clock of every run, in milliseconds since the epoch.
    pub clock_ms: Option<f64>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { limits: RunLimits::default(), pool: 2, seed: None, clock_ms: None }
    }
}

pub(super) fn read(mut sandbox: Fields<'_>) -> SandboxConfig {
    let defaults = SandboxConfig::default();
    let mut limits = defaults.limits;
    if let Some(megabytes) =
        sandbox.number("memoryMb", (RunLimits::HEAP_BYTES.0 >> 20, RunLimits::HEAP_BYTES.1 >> 20))
    {
        limits.heap_bytes = megabytes << 20;
    }
    if let Some(milliseconds) = sandbox.number("cpuMs", RunLimits::CPU_MS) {
        limits.cpu = Duration::from_millis(milliseconds);
    }
    if let Some(milliseconds) = sandbox.number("wallMs", RunLimits::WALL_MS) {
        limits.wall = Duration::from_millis(milliseconds);
    }
    for (name, slot, bounds) in [
        ("outputBytes", &mut limits.output_bytes, RunLimits::OUTPUT_BYTES),
        ("logLines", &mut limits.log_lines, RunLimits::LOG_LINES),
        ("logBytes", &mut limits.log_bytes, RunLimits::LOG_BYTES),
        ("bridgeCalls", &mut limits.bridge_calls, RunLimits::BRIDGE_CALLS),
    ] {
        if let Some(number) = sandbox.number(name, bounds) {
            *slot = number;
        }
    }
    let pool =
        sandbox.number("pool", (1, 64)).and_then(|size| usize::try_from(size).ok()).unwrap_or(defaults.pool);
    let seed = sandbox.number("seed", (0, 1 << 53));
    let clock_ms = sandbox.moment("clock");
    sandbox.done();
    SandboxConfig { limits, pool, seed, clock_ms }
}
