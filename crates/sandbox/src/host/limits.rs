//! The caps of a run. They are always on; a setting moves them within bounds.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tgp_contract::LimitRequest;

/// Caps of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    pub heap_bytes: u64,
    pub cpu: Duration,
    pub wall: Duration,
    /// Bytes of stack: about 700 for each call of a small function.
    pub stack_bytes: u64,
    /// Bytes of the JSON result, and of the arguments of one bridge call.
    pub output_bytes: u64,
    pub log_lines: u64,
    pub log_bytes: u64,
    pub bridge_calls: u64,
}

impl Default for RunLimits {
    fn default() -> Self {
        Self {
            heap_bytes: 64 * MIB,
            cpu: Duration::from_secs(1),
            wall: Duration::from_secs(10),
            stack_bytes: 8 * MIB,
            output_bytes: 4 * MIB,
            log_lines: 1_000,
            log_bytes: 256 * 1024,
            bridge_calls: 1_000,
        }
    }
}

const MIB: u64 = 1024 * 1024;

impl RunLimits {
    /// The smallest and largest values a setting may take.
    pub const MEMORY_MB: (u64, u64) = (4, 1024);
    pub const CPU_MS: (u64, u64) = (1, 60_000);
    pub const WALL_MS: (u64, u64) = (10, 600_000);
    pub const OUTPUT_BYTES: (u64, u64) = (1024, 16 * MIB);
    pub const LOG_LINES: (u64, u64) = (0, 100_000);
    pub const LOG_BYTES: (u64, u64) = (0, 16 * MIB);
    pub const BRIDGE_CALLS: (u64, u64) = (0, 100_000);

    /// The limits that a call may ask for, in the units that it asks in.
    #[must_use]
    pub fn as_request(&self) -> LimitRequest {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).ok();
        LimitRequest {
            cpu_ms: milliseconds(self.cpu),
            wall_ms: milliseconds(self.wall),
            memory_mb: Some(self.heap_bytes / MIB),
        }
    }

    /// These limits, and those that `asked` gives instead.
    #[must_use]
    pub fn with(self, asked: &LimitRequest) -> Self {
        Self {
            heap_bytes: asked.memory_mb.map_or(self.heap_bytes, |megabytes| megabytes.saturating_mul(MIB)),
            cpu: asked.cpu_ms.map_or(self.cpu, Duration::from_millis),
            wall: asked.wall_ms.map_or(self.wall, Duration::from_millis),
            ..self
        }
    }

    /// These limits, or those of `ceiling` where they are larger.
    #[must_use]
    pub fn or_above(self, ceiling: &LimitRequest) -> Self {
        let high = self.with(ceiling);
        Self {
            heap_bytes: self.heap_bytes.max(high.heap_bytes),
            cpu: self.cpu.max(high.cpu),
            wall: self.wall.max(high.wall),
            ..self
        }
    }

    /// These limits, none larger than `ceiling`'s.
    #[must_use]
    pub fn within(self, ceiling: &RunLimits) -> Self {
        Self {
            heap_bytes: self.heap_bytes.min(ceiling.heap_bytes),
            cpu: self.cpu.min(ceiling.cpu),
            wall: self.wall.min(ceiling.wall),
            stack_bytes: self.stack_bytes.min(ceiling.stack_bytes),
            output_bytes: self.output_bytes.min(ceiling.output_bytes),
            log_lines: self.log_lines.min(ceiling.log_lines),
            log_bytes: self.log_bytes.min(ceiling.log_bytes),
            bridge_calls: self.bridge_calls.min(ceiling.bridge_calls),
        }
    }
}
