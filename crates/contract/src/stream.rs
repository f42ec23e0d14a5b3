//! What a model says, event by event.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ToolError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// One event of a model's stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum StreamEvent {
    Text { value: String },
    ToolCall { tool_name: String, call_id: String, arguments: Value },
    ToolResult { call_id: String, result: Value },
    Usage(Usage),
    Error { error: ToolError },
    End,
}
