//! One line of a chronicle, back to its event. What is not exactly the canonical JSON of an event with its own id is none.

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::ChronicleEvent;
use crate::canonical::{self, CanonicalError};

/// The longest line of a chronicle, its end included. An event says what happened; what it happened to is named by a
/// hash.
pub const MAX_CHRONICLE_LINE_BYTES: usize = 1 << 20;
/// How deep the values of an event may be nested. Parsers of JSON give up somewhere above a hundred.
const MAX_DEPTH: usize = 64;
/// Names that an event has by itself, and that its other fields cannot take.
const OWN_NAMES: [&str; 5] = ["eventId", "type", "timestamp", "actor", "filePath"];

/// Why an event cannot be a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventFormError {
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("the timestamp `{0}` is not one of RFC 3339, such as `2026-01-31T12:00:00.000Z`")]
    Timestamp(String),
    #[error("the field `{0}` is one that every event has, and cannot be given twice")]
    OwnName(&'static str),
    #[error("its values are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
}

/// Why a line is not an event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("the line is longer than {MAX_CHRONICLE_LINE_BYTES} bytes")]
    TooLong,
    #[error("the line is not JSON: {0}")]
    NotJson(String),
    #[error("the line is not an event: {0}")]
    NotEvent(String),
    #[error("the event has no `eventId`")]
    NoId,
    #[error("the `eventId` is `{given}`, but the hash of the event is `{own}`")]
    WrongId { given: String, own: String },
    #[error("the line is not the canonical JSON of its event")]
    NotCanonical,
}

/// The event of a line, given without its end.
///
/// # Errors
/// See [`LineError`].
pub fn decode_line(line: &[u8]) -> Result<ChronicleEvent, LineError> {
    if line.len() >= MAX_CHRONICLE_LINE_BYTES {
        return Err(LineError::TooLong);
    }
    let event: ChronicleEvent = serde_json::from_slice(line).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => LineError::NotEvent(error.to_string()),
        _ => LineError::NotJson(error.to_string()),
    })?;
    let given = event.event_id.clone().ok_or(LineError::NoId)?;
    event.check_form().map_err(|error| LineError::NotEvent(error.to_string()))?;
    let own = event.compute_id().map_err(|error| LineError::NotEvent(error.to_string()))?;
    if given != own {
        return Err(LineError::WrongId { given, own });
    }
    match event.to_canonical() {
        Ok(text) if text.as_bytes() == line => Ok(event),
        _ => Err(LineError::NotCanonical),
    }
}

impl ChronicleEvent {
    /// The canonical JSON of the event as it is, which is its line when it has its id.
    ///
    /// # Errors
    /// When a number in it has no canonical form.
    pub fn to_canonical(&self) -> Result<String, CanonicalError> {
        canonical::to_string(&serde_json::to_value(self)?)
    }

    /// Checks what a type cannot say of an event.
    ///
    /// # Errors
    /// See [`EventFormError`].
    pub fn check_form(&self) -> Result<(), EventFormError> {
        let words = [("type", &self.kind), ("actor.agent", &self.actor.agent), ("actor.id", &self.actor.id)];
        if let Some((name, _)) = words.iter().find(|(_, word)| word.is_empty()) {
            return Err(EventFormError::Empty(name));
        }
        if OffsetDateTime::parse(&self.timestamp, &Rfc3339).is_err() {
            return Err(EventFormError::Timestamp(self.timestamp.chars().take(64).collect()));
        }
        if let Some(name) = OWN_NAMES.iter().find(|name| self.fields.contains_key(**name)) {
            return Err(EventFormError::OwnName(name));
        }
        if is_deeper(&self.fields, MAX_DEPTH) {
            return Err(EventFormError::TooDeep);
        }
        Ok(())
    }
}

fn is_deeper(fields: &Map<String, Value>, levels: usize) -> bool {
    fields.values().any(|value| is_value_deeper(value, levels))
}

/// Goes no further down than `levels`, so that no event can exhaust the stack.
fn is_value_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_value_deeper(item, levels - 1)),
        Value::Object(fields) => is_deeper(fields, levels - 1),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
