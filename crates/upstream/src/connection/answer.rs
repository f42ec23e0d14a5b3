//! What a server has answered, as a value for the tool that called.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};

use super::{CallEnd, quoted};
use crate::variables::ServerValues;

pub(super) async fn end_of(
    server: &str,
    tool: &str,
    response: CallToolResponse,
    values: &ServerValues,
) -> CallEnd {
    let result = match response {
        CallToolResponse::Complete(result) => result,
        CallToolResponse::InputRequired(_) => {
            return refused(server, tool, "it asks for input, which a call of a tool cannot give");
        }
        _ => return refused(server, tool, "it answers later, which a call of a tool cannot wait for"),
    };
    let is_error = result.is_error == Some(true);
    let Some(value) = values.clean_value(value_of(result)).await else {
        return refused(server, tool, "its answer holds a secret in a form that cannot be removed");
    };
    if !is_error {
        return CallEnd::Answered(value);
    }
    let said = match &value {
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    };
    let message = format!("`mcp:{server}/{tool}` failed: the server says {said}");
    CallEnd::Refused(ToolError::new(Code::Upstream, message).detail("answer", value))
}

fn refused(server: &str, tool: &str, why: &str) -> CallEnd {
    CallEnd::Refused(ToolError::new(Code::Upstream, format!("`mcp:{server}/{tool}` cannot be used: {why}")))
}

/// The structured result; else the text where the answer is nothing but one text; else its parts.
fn value_of(result: CallToolResult) -> Value {
    if let Some(structured) = result.structured_content {
        return structured;
    }
    match result.content.as_slice() {
        [ContentBlock::Text(text)] => json!(text.text),
        parts => serde_json::to_value(parts).unwrap_or_default(),
    }
}
