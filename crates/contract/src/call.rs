//! A call, who makes it, and its result.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CapabilityToken, RelativePath, ToolError};

/// A request to run one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub id: String,
    pub tool: String,
    #[serde(default)]
    pub arguments: Value,
}

/// What a call gives back: `{"ok":true,"data":…}` or `{"ok":false,"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "WireResult", try_from = "WireResult")]
pub enum ToolResult {
    Done(Value),
    Failed(ToolError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireResult {
    ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
}

impl From<ToolResult> for WireResult {
    fn from(result: ToolResult) -> Self {
        match result {
            ToolResult::Done(data) => Self { ok: true, data: Some(data), error: None },
            ToolResult::Failed(error) => Self { ok: false, data: None, error: Some(error) },
        }
    }
}

impl TryFrom<WireResult> for ToolResult {
    type Error = &'static str;
    fn try_from(wire: WireResult) -> Result<Self, Self::Error> {
        match wire {
            WireResult { ok: true, data, error: None } => Ok(Self::Done(data.unwrap_or(Value::Null))),
            WireResult { ok: false, data: None, error: Some(error) } => Ok(Self::Failed(error)),
            _ => Err("a result has either `ok: true` with `data` or `ok: false` with `error`"),
        }
    }
}

impl ToolResult {
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    #[must_use]
    pub fn data(&self) -> Option<&Value> {
        match self {
            Self::Done(data) => Some(data),
            Self::Failed(_) => None,
        }
    }

    #[must_use]
    pub fn error(&self) -> Option<&ToolError> {
        match self {
            Self::Done(_) => None,
            Self::Failed(error) => Some(error),
        }
    }

    /// # Errors
    /// The error of a failed call.
    pub fn into_result(self) -> Result<Value, ToolError> {
        match self {
            Self::Done(data) => Ok(data),
            Self::Failed(error) => Err(error),
        }
    }
}

impl From<Result<Value, ToolError>> for ToolResult {
    fn from(result: Result<Value, ToolError>) -> Self {
        match result {
            Ok(data) => Self::Done(data),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "id")]
pub enum Actor {
    /// A person at the command line.
    Person(String),
    /// A program or an agent.
    Agent(String),
    /// A forged tool that calls another through the bridge; the id is its path.
    Tool(RelativePath),
}

/// Which approvals of a call are settled before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// A person typed this very command: every approval of this call is settled. Of the calls it makes while it runs only
    /// the default approvals are.
    Given,
    /// A person passed `--yes`: every approval of this call and of the calls it makes is settled.
    Everything,
    /// A running tool makes the call, and the tool itself was let through: the default approvals are settled. A rule that
    /// asks is asked for this call.
    Outer,
    /// Everything but a read needs an approval.
    Ask,
}

impl Consent {
    /// What holds for a call that a running tool makes.
    #[must_use]
    pub fn for_inner_calls(self) -> Self {
        match self {
            Self::Everything => Self::Everything,
            Self::Given | Self::Outer | Self::Ask => Self::Outer,
        }
    }
}

/// Everything a call carries in addition to its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallContext {
    pub actor: Actor,
    pub session: String,
    pub consent: Consent,
    /// Show what would happen and change nothing.
    pub dry_run: bool,
    /// How many tool runs are above this call; a person's or agent's own call is at 0.
    pub depth: u32,
    /// What narrows the caller further than its rules. It is a secret, so it is in no record.
    #[serde(skip)]
    pub token: Option<CapabilityToken>,
}
