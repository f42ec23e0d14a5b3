//! Events of the append-only chronicle.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical::{self, CanonicalError};
use crate::{RelativePath, ToolError};

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventActor {
    pub agent: String,
    pub id: String,
}

/// One event. Fields that a type of event adds are kept in `fields` and are beside the others on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChronicleEvent {
    /// Computed; leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Such as DECISION.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub kind: String,
    /// RFC 3339, such as 2026-11-15T12:00:00Z.
    pub timestamp: String,
    pub actor: EventActor,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_path: Option<String>,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

impl ChronicleEvent {
    /// Lower-case hex SHA-256 of the canonical JSON of this event without its `eventId`.
    ///
    /// # Errors
    /// When a number in it has no canonical form.
    pub fn compute_id(&self) -> Result<String, CanonicalError> {
        let bare = Self { event_id: None, ..self.clone() };
        let value = serde_json::to_value(&bare).map_err(CanonicalError::from)?;
        canonical::hash(&value)
    }
}

/// The result of an event that was given to a chronicle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppendResult {
    pub event_id: String,
    /// False when the chronicle had this very event already, and nothing was written.
    pub appended: bool,
}

/// One content of a chronicle: as long as it is the same, so is what was read of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChronicleRevision {
    /// The chronicle does not exist.
    Absent,
    Content {
        size: u64,
        device: u64,
        inode: u64,
        changed_ns: i64,
    },
}

/// Where events are kept: files that only ever grow. `file` is the chronicle's name, such as `src/a.ts.sage`, wherever its
/// file is.
#[async_trait]
pub trait Chronicle: Send + Sync {
    /// Keeps an event once, however often it is given.
    ///
    /// # Errors
    /// `EPERMISSION` outside the chronicle's scope, `EVALIDATION` for an event whose `eventId` is not its own.
    async fn append(&self, file: &RelativePath, event: ChronicleEvent) -> Result<AppendResult, ToolError>;

    /// The last `most` events, oldest first; none where there is no such chronicle.
    ///
    /// # Errors
    /// `EINTEGRITY` when the chronicle cannot be understood.
    async fn tail(&self, file: &RelativePath, most: usize) -> Result<Vec<ChronicleEvent>, ToolError>;

    /// The content that a chronicle has now, without reading it. None when that is not certain.
    fn revision(&self, _file: &RelativePath) -> Option<ChronicleRevision> {
        None
    }

    /// Every chronicle of the project, sorted.
    ///
    /// # Errors
    /// When the project cannot be read.
    async fn files(&self) -> Result<Vec<RelativePath>, ToolError>;
}
