//! What a model says, event by event.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

/// The tokens that a request used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

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
