//! Limits of a run, in the names and units of the configuration.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of one run. What is not given is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

impl LimitRequest {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is given, and the rest from `other`.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            cpu_ms: self.cpu_ms.or(other.cpu_ms),
            wall_ms: self.wall_ms.or(other.wall_ms),
            memory_mb: self.memory_mb.or(other.memory_mb),
        }
    }

    /// What is given, and none of it above what `other` gives.
    #[must_use]
    pub fn at_most(self, other: &Self) -> Self {
        let lower = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, _) => one,
        };
        Self {
            cpu_ms: lower(self.cpu_ms, other.cpu_ms),
            wall_ms: lower(self.wall_ms, other.wall_ms),
            memory_mb: lower(self.memory_mb, other.memory_mb),
        }
    }

    /// What is given: the name of the field, its value, and what it limits.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, u64, &'static str)> + use<> {
        let all = [
            ("cpuMs", self.cpu_ms, "ms of CPU time"),
            ("wallMs", self.wall_ms, "ms of wall clock"),
            ("memoryMb", self.memory_mb, "MB of memory"),
        ];
        all.into_iter().filter_map(|(name, value, unit)| value.map(|value| (name, value, unit)))
    }
}

/// Such as `5000 ms of CPU time, 512 MB of memory`.
impl fmt::Display for LimitRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (_, value, unit)) in self.given().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(formatter, "{comma}{value} {unit}")?;
        }
        Ok(())
    }
}
