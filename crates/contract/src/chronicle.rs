//! Events of the append-only chronicle.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::canonical::{self, CanonicalError};

/// Who caused an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventActor {
    pub agent: String,
    pub id: String,
}

/// One event. Fields that a type of event adds are kept in `fields` and stand beside the others on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChronicleEvent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
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
