//! What an agent's loop reports to its listener, in order and without loss.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{CallVerdict, FileEffect, TddMode, TddState, ToolError, ToolResult, Usage};

use crate::Summary;

/// One event of a session. `text`, `tool_call`, `tool_result`, `usage` and `error` have the fields of the stream
/// contract, and some more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    /// The first event.
    Session {
        id: String,
        task: String,
        provider: String,
        model: String,
        mode: TddMode,
        state: TddState,
        /// True when an earlier run of this session is resumed.
        resumed: bool,
    },
    /// The model is asked for its next turn; `tokens` is what the session has used so far.
    Step {
        step: u64,
        tokens: u64,
    },
    /// A piece of what the model says.
    Text {
        value: String,
    },
    /// The model wants a call.
    ToolCall {
        step: u64,
        /// Names the call within the session, such as `r3.1`; what was shortened can be read again by it.
        id: String,
        tool_name: String,
        call_id: String,
        arguments: Value,
    },
    /// What came of it. Results come in the order of their calls.
    ToolResult {
        step: u64,
        id: String,
        tool_name: String,
        call_id: String,
        result: ToolResult,
        /// One of the audit's words: `allowed`, `approved`, `denied`, `refused`, `invalid`, `cancelled`, and `recovered`
        /// for a call of an interrupted run that is not made again.
        verdict: CallVerdict,
        duration_ms: f64,
        files: Vec<FileEffect>,
        /// The state of test-driven work after it.
        state: TddState,
    },
    Usage(Usage),
    /// The model's answer broke off. Every `text` since the last `step` is void: the turn is asked for again, and begins with
    /// another `step` of the same number.
    Discarded {
        step: u64,
        /// Why, and when it is asked for again.
        message: String,
    },
    /// Something a person should know that is not an error: a context that was shortened, a cut turn.
    Notice {
        message: String,
    },
    Error {
        error: ToolError,
    },
    /// The last event. The loop returns its summary, and its caller sends this when the session is closed.
    End {
        summary: Box<Summary>,
    },
}
