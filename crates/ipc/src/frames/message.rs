//! The contents of a frame.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tgp_contract::{ToolDefinition, ToolError, ToolResult};

/// The first frame of a client.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `token`")]
pub struct Hello {
    /// A capability token of this kernel.
    pub token: String,
    /// What the client calls itself, for the record. Who it is follows from its token.
    #[serde(default)]
    pub actor: Option<String>,
    /// What it calls its work, for the record.
    #[serde(default)]
    pub session: Option<String>,
}

impl std::fmt::Debug for Hello {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // A token is a secret.
        formatter.debug_struct("Hello").field("actor", &self.actor).finish_non_exhaustive()
    }
}

/// Every other frame of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "snake_case", try_from = "WireRequest")]
pub enum SocketRequest {
    /// Take a call through the router.
    Call {
        id: String,
        tool: String,
        /// Without them, a call has none.
        #[serde(default)]
        arguments: Value,
        #[serde(default)]
        dry_run: bool,
    },
    /// List what can be called.
    Tools { id: String },
}

/// A request as it is read: all fields at once, since an enum with a tag is read into a copy of the whole frame first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `method` and `id`")]
struct WireRequest {
    method: Method,
    id: String,
    tool: Option<String>,
    arguments: Option<Value>,
    dry_run: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    Call,
    Tools,
}

impl TryFrom<WireRequest> for SocketRequest {
    type Error = &'static str;

    fn try_from(wire: WireRequest) -> Result<Self, Self::Error> {
        let WireRequest { method, id, tool, arguments, dry_run } = wire;
        match (method, tool, arguments, dry_run) {
            (Method::Call, Some(tool), arguments, dry_run) => Ok(Self::Call {
                id,
                tool,
                arguments: arguments.unwrap_or_else(|| Value::Object(Map::new())),
                dry_run: dry_run.unwrap_or_default(),
            }),
            (Method::Call, None, ..) => Err("missing field `tool`"),
            (Method::Tools, None, None, None) => Ok(Self::Tools { id }),
            (Method::Tools, ..) => Err("`tools` has no field but `id`"),
        }
    }
}

/// The part of an invalid frame that can still be read.
#[derive(Deserialize)]
struct OnlyId {
    id: String,
}

/// The id of an invalid frame, so that its client learns which request was refused.
pub(crate) fn id_of(frame: &[u8]) -> Option<String> {
    serde_json::from_slice::<OnlyId>(frame).ok().map(|frame| frame.id)
}

impl SocketRequest {
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::Call { id, .. } | Self::Tools { id } => id,
        }
    }
}

/// What the kernel answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SocketAnswer {
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
    /// To an invalid frame, with its id where that can be read; the connection ends after one that broke the
    /// protocol.
    Refused {
        id: Option<String>,
        error: ToolError,
    },
}
