//! `sandbox`: the caps of every run.

use tgp_contract::LimitRequest;
use tgp_sandbox::{RunLimits, SandboxOptions, WorkerCommand};
use tgp_tool_runtime::ToolRuntime;

use super::fields::Fields;

/// The section `sandbox`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SandboxConfig {
    pub limits: RunLimits,
    /// `sandbox.ceiling`: what a call may ask for. It counts where it is above `limits`.
    pub ceiling: LimitRequest,
    /// Warm workers kept ready.
    pub pool: usize,
    pub seed: Option<u64>,
    /// Stops the clock of every run, in milliseconds since the epoch.
    pub clock_ms: Option<f64>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        let ceiling = LimitRequest { cpu_ms: Some(10_000), wall_ms: Some(60_000), memory_mb: Some(512) };
        Self { limits: RunLimits::default(), ceiling, pool: 2, seed: None, clock_ms: None }
    }
}

impl SandboxConfig {
    /// The most that any run may have. The limits of every run are below it, whatever the configuration says.
    #[must_use]
    pub fn highest_limits(&self) -> RunLimits {
        self.limits.or_above(&self.ceiling)
    }

    /// Whether a call may ask for more than it may where the configuration has no ceiling.
    pub(crate) fn raises_ceiling(&self) -> bool {
        let usual = Self::default().ceiling;
        self.ceiling.cpu_ms > usual.cpu_ms
            || self.ceiling.wall_ms > usual.wall_ms
            || self.ceiling.memory_mb > usual.memory_mb
    }

    /// Whether every run gets more than a call may ask for where the configuration says nothing.
    pub(crate) fn raises_limits(&self) -> bool {
        self.limits != self.limits_at_most(&Self::default().ceiling)
    }

    /// The limits, with memory and times of at most `most`.
    pub(crate) fn limits_at_most(&self, most: &LimitRequest) -> RunLimits {
        let most = RunLimits::default().or_above(most);
        RunLimits {
            heap_bytes: self.limits.heap_bytes.min(most.heap_bytes),
            cpu: self.limits.cpu.min(most.cpu),
            wall: self.limits.wall.min(most.wall),
            ..self.limits
        }
    }

    /// How the workers are started.
    pub(crate) fn options(&self, worker: &WorkerCommand) -> SandboxOptions {
        let limits = ToolRuntime::test_limits(self.limits);
        let ceiling = ToolRuntime::test_limits(self.highest_limits());
        SandboxOptions { worker: worker.clone(), pool_size: self.pool, limits, ceiling }
    }
}

/// The limits that a call may ask for, too.
fn read_limits(fields: &mut Fields<'_>) -> LimitRequest {
    LimitRequest {
        memory_mb: fields.number("memoryMb", RunLimits::MEMORY_MB),
        cpu_ms: fields.number("cpuMs", RunLimits::CPU_MS),
        wall_ms: fields.number("wallMs", RunLimits::WALL_MS),
    }
}

pub(super) fn read(mut sandbox: Fields<'_>) -> SandboxConfig {
    let defaults = SandboxConfig::default();
    let mut limits = defaults.limits.with(&read_limits(&mut sandbox));
    let mut ceiling = defaults.ceiling;
    if let Some(mut fields) = sandbox.section("ceiling") {
        ceiling = read_limits(&mut fields).or(&ceiling);
        fields.done();
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
    SandboxConfig { limits, ceiling, pool, seed, clock_ms }
}
