//! Limits of a run, in the names and units of the configuration.

use std::fmt;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Limits of one run. What is not given is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitRequest {
    #[serde(default, deserialize_with = "whole_number", skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole_number", skip_serializing_if = "Option::is_none")]
    pub wall_ms: Option<u64>,
    #[serde(default, deserialize_with = "whole_number", skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
}

/// JSON has one kind of number: `1e3` and `1000.0` are 1000.
fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    /// Every whole number up to here is exact in a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let whole = number.as_f64().filter(|value| value.fract() == 0.0 && (0.0..=EXACT).contains(value));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number in range")]
    let value = number.as_u64().or_else(|| whole.map(|value| value as u64));
    let expected = || D::Error::custom(format!("a limit is a whole number such as 1000, not {number}"));
    value.map(Some).ok_or_else(expected)
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
