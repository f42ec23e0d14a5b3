//! The limits of a run: what a call asks for, what it may have, and what is left for the runs inside it.

use std::time::{Duration, Instant};

use tgp_contract::{Code, LimitRequest, ToolError};
use tgp_router::files::CpuSpent;
use tgp_sandbox::RunLimits;

use super::ToolRuntime;

/// The limits that a call gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedLimits {
    pub limits: RunLimits,
    /// Those of them that are above what every run has. The gates decide about them.
    pub above: LimitRequest,
}

impl ToolRuntime {
    /// What a call may have that asks for `asked`; `outer` is what the run around it has left.
    ///
    /// # Errors
    /// `EVALIDATION` when it asks for more than `sandbox.ceiling`, for more than the run around it has left, or for less
    /// than a run needs.
    pub fn grant(
        &self,
        asked: Option<&LimitRequest>,
        outer: Option<&LimitRequest>,
    ) -> Result<GrantedLimits, ToolError> {
        let usual = self.options.limits;
        let outer_limits = outer.map(|outer| usual.with(outer));
        let Some(asked) = asked else {
            let limits = outer_limits.map_or(usual, |outer| usual.within(&outer));
            return Ok(GrantedLimits { limits, above: LimitRequest::default() });
        };
        let ceiling = self.options.ceiling.as_request();
        for (name, value, unit) in asked.given() {
            let Some((least, _)) = bounds(name) else { continue };
            let most = value_of(&ceiling, name);
            if value < least || most.is_some_and(|most| value > most) {
                let most = most.unwrap_or(least);
                let message =
                    format!("`limits.{name}` is {value}: a call can ask for {least} to {most} {unit}");
                let help = format!(
                    "ask for at most {most}, or do the work in smaller pieces; only a person can raise \
                     `sandbox.ceiling.{name}` in the configuration"
                );
                return Err(ToolError::new(Code::Validation, message).help(help).detail("ceiling", most));
            }
            if let Some(left) = outer.and_then(|outer| value_of(outer, name)).filter(|left| value > *left) {
                let message = format!(
                    "`limits.{name}` is {value}, and the run that makes this call has {left} {unit} left"
                );
                let help = "ask for less, or run the outer tool with higher limits";
                return Err(ToolError::new(Code::Validation, message).help(help).detail("left", left));
            }
        }
        let limits = outer_limits.map_or(usual, |outer| usual.within(&outer)).with(asked);
        let usual = usual.as_request();
        let higher = |value: Option<u64>, usual: Option<u64>| value.filter(|value| Some(*value) > usual);
        let above = LimitRequest {
            cpu_ms: higher(asked.cpu_ms, usual.cpu_ms),
            wall_ms: higher(asked.wall_ms, usual.wall_ms),
            memory_mb: higher(asked.memory_mb, usual.memory_mb),
        };
        Ok(GrantedLimits { limits, above })
    }
}

/// The smallest and largest value that a limit can have at all.
fn bounds(name: &str) -> Option<(u64, u64)> {
    match name {
        "cpuMs" => Some(RunLimits::CPU_MS),
        "wallMs" => Some(RunLimits::WALL_MS),
        "memoryMb" => Some(RunLimits::MEMORY_MB),
        _ => None,
    }
}

fn value_of(limits: &LimitRequest, name: &str) -> Option<u64> {
    limits.given().find(|(given, ..)| *given == name).map(|(_, value, _)| value)
}

/// What a run can give to the runs inside it.
pub(super) struct RunAllowance {
    limits: RunLimits,
    started: Instant,
    /// CPU time of the inner runs that asked for limits, and of those inside them: together they get no more than the run
    /// itself has.
    inner_cpu: CpuSpent,
    /// The same of the runs around it.
    around: Vec<CpuSpent>,
}

impl RunAllowance {
    pub(super) fn new(limits: RunLimits, around: Vec<CpuSpent>) -> Self {
        Self { limits, started: Instant::now(), inner_cpu: CpuSpent::default(), around }
    }

    /// What is left now. The time that calls have `waited` for a person is not the run's.
    pub(super) fn left(&self, waited: Duration) -> LimitRequest {
        let elapsed = self.started.elapsed().saturating_sub(waited);
        RunLimits {
            cpu: self.limits.cpu.saturating_sub(self.inner_cpu.get()),
            wall: self.limits.wall.saturating_sub(elapsed),
            ..self.limits
        }
        .as_request()
    }

    /// The limits of the run itself.
    pub(super) fn whole(&self) -> LimitRequest {
        self.limits.as_request()
    }

    /// What counts the CPU time of this run and of those around it, for a run inside it.
    pub(super) fn counters(&self) -> Vec<CpuSpent> {
        self.around.iter().chain([&self.inner_cpu]).cloned().collect()
    }

    /// Takes the CPU time that an inner run asks for while it runs, so that others beside it cannot have it.
    pub(super) fn reserve(&self, cpu: Duration) {
        self.counters().iter().for_each(|spent| spent.add(cpu));
    }

    /// Gives back what an inner run has not used. One that never reports keeps it.
    pub(super) fn settle(&self, reserved: Duration, used: Duration) {
        self.counters().iter().for_each(|spent| spent.give_back(reserved.saturating_sub(used)));
    }
}
