//! What a model says, event by event.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// The tokens that a request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// All that the model has read, from the provider's cache or not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// The part of the input that was read from the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// The part of the input that was written to the provider's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }

    /// What is left without an earlier count.
    #[must_use]
    pub fn saturating_sub(self, earlier: Self) -> Self {
        self.each(earlier, u64::saturating_sub)
    }

    fn each(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: combine(self.input_tokens, other.input_tokens),
            output_tokens: combine(self.output_tokens, other.output_tokens),
            cached_input_tokens: combine(self.cached_input_tokens, other.cached_input_tokens),
            cache_write_tokens: combine(self.cache_write_tokens, other.cache_write_tokens),
        }
    }
}

/// The detail of an `error` event that says that the turn may be asked for again, as long as nothing of it has taken effect.
pub const REPEATABLE_DETAIL: &str = "repeatable";

/// Why a model stopped, where it is not simply because it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Its answer reached the limit of output tokens; what it said is not complete.
    Length,
    /// It, or a filter behind it, did not want to answer.
    Refusal,
}

/// One event of a model's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StreamEvent {
    Text {
        value: String,
    },
    /// The arguments are complete. Those that are not JSON are one string, as the model wrote them.
    ToolCall {
        tool_name: String,
        call_id: String,
        arguments: Value,
    },
    ToolResult {
        call_id: String,
        result: Value,
    },
    /// What the provider wants back unchanged with the next request.
    Opaque {
        provider: String,
        value: Value,
    },
    /// What the turn has cost so far; a later one replaces it.
    Usage(Usage),
    Error {
        error: ToolError,
    },
    End {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<StopReason>,
    },
}
