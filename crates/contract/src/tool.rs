//! What a tool says of itself.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a tool can do to the world. Gates decide by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Read,
    Write,
    Execute,
    Network,
}

impl Effect {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Execute => "execute",
            Effect::Network => "network",
        }
    }
}

/// Where a tool runs: inside the kernel, or in a locked worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPath {
    Fast,
    Sandbox,
}

/// The longest name that every model provider accepts.
const MAX_TOOL_NAME: usize = 64;

/// A name that fits `[a-zA-Z0-9_-]{1,64}`, as every model provider accepts it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolName(String);

/// Why a text is not a tool name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tool name `{0}` does not fit [a-zA-Z0-9_-]{{1,64}}")]
pub struct ToolNameError(String);

impl ToolName {
    /// # Errors
    /// When the name is empty, too long or has another character.
    pub fn new(name: impl Into<String>) -> Result<Self, ToolNameError> {
        let name = name.into();
        let fits = (1..=MAX_TOOL_NAME).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if fits { Ok(Self(name)) } else { Err(ToolNameError(name)) }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ToolName {
    type Error = ToolNameError;
    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<ToolName> for String {
    fn from(name: ToolName) -> Self {
        name.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A tool as the router, a model provider and a person see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    pub name: ToolName,
    /// Other names callers may use, such as `fs.read` or `Read`.
    #[serde(default)]
    pub aliases: Vec<String>,
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    pub effect: Effect,
    pub path: ExecutionPath,
    /// True when the tool can return an exact preview and change nothing.
    pub dry_run: bool,
}
