//! What stands in a frame.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tgp_contract::{ToolDefinition, ToolError, ToolResult};

/// The first frame of a client.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// A capability token of this kernel.
    pub token: String,
    /// Who the client says it is, for the record.
    #[serde(default = "unnamed")]
    pub actor: String,
    /// The session its calls belong to; one of its own when it is left out.
    #[serde(default)]
    pub session: Option<String>,
}

impl std::fmt::Debug for Hello {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A token is a secret.
        formatter.debug_struct("Hello").field("actor", &self.actor).finish_non_exhaustive()
    }
}

fn unnamed() -> String {
    "socket".to_owned()
}

/// Every other frame of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Take a call through the router.
    Call {
        id: String,
        tool: String,
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        dry_run: bool,
    },
    /// List what can be called.
    Tools { id: String },
}

impl Request {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Call { id, .. } | Self::Tools { id } => id,
        }
    }
}

/// What the kernel answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// To the first frame.
    Welcome {
        session: String,
    },
    Result {
        id: String,
        result: ToolResult,
    },
    Tools {
        id: String,
        tools: Vec<ToolDefinition>,
    },
    /// To a frame that is no request; the connection ends after one that broke the protocol.
    Refused {
        id: Option<String>,
        error: ToolError,
    },
}
