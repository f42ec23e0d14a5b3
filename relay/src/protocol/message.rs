//! The contents of a line.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{CallContext, Change, Code, FileEffect, RelativePath, ToolCall, ToolError, ToolResult};

/// What a program can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    Llm,
    Tools,
    Chronicle,
    Graph,
}

impl PartKind {
    pub const ALL: [Self; 4] = [Self::Llm, Self::Tools, Self::Chronicle, Self::Graph];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Tools => "tools",
            Self::Chronicle => "chronicle",
            Self::Graph => "graph",
        }
    }
}

/// A request, or a notification when it has no id.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<u64>,
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Value,
}

/// What a program answers: one result or error, or events of which the last is an end.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Result(Value),
    Error(ToolError),
    Event(Value),
}

impl Reply {
    /// Whether nothing may follow for the same request.
    pub(super) fn is_last(&self) -> bool {
        match self {
            Self::Result(_) | Self::Error(_) => true,
            Self::Event(event) => {
                matches!(event.get("type").and_then(Value::as_str), Some("end" | "error"))
            }
        }
    }

    /// Reads a line; the id is that of the request it answers.
    pub(super) fn parse(line: &str) -> Result<(u64, Self), String> {
        let mut fields: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| format!("no JSON object ({error})"))?;
        let Some(id) = fields.get("id").and_then(Value::as_u64) else {
            return Err("an object whose `id` is not the number of a request".to_owned());
        };
        match (fields.remove("result"), fields.remove("error"), fields.remove("event")) {
            (Some(result), None, None) => Ok((id, Self::Result(result))),
            (None, None, Some(event)) => Ok((id, Self::Event(event))),
            (None, Some(error), None) => serde_json::from_value(error)
                .map(|error| (id, Self::Error(error)))
                .map_err(|error| format!("an `error` that has not code, message and details ({error})")),
            _ => Err("an object with not exactly one of `result`, `error` and `event`".to_owned()),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u64,
    pub(super) part: PartKind,
    pub(super) directory: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Introduced {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CallParams {
    pub(super) call: ToolCall,
    pub(super) context: CallContext,
}

/// What a call answers. Only the result must be there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Called {
    pub(super) result: ToolResult,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<FileEffect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
}

/// A change of a proposal: new content, or none for a file that would be gone.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireChange {
    pub(super) path: RelativePath,
    pub(super) content: Option<String>,
}

impl WireChange {
    pub(super) fn of(change: &Change) -> Result<Self, ToolError> {
        let content = match change {
            Change::Remove { .. } => None,
            Change::Write { path, content } => Some(String::from_utf8(content.to_vec()).map_err(|_| {
                ToolError::new(Code::Validation, format!("the new content of `{path}` is not UTF-8"))
                    .help("only text can be proposed over this protocol")
            })?),
        };
        Ok(Self { path: change.path().clone(), content })
    }
}

impl From<WireChange> for Change {
    fn from(wire: WireChange) -> Self {
        match wire.content {
            Some(content) => Self::Write { path: wire.path, content: content.into_bytes().into() },
            None => Self::Remove { path: wire.path },
        }
    }
}
