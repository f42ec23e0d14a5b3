//! One event as one line, and back. What is not exactly the line that this module would write is no event.

use serde_json::{Map, Value};
use tgp_contract::ChronicleEvent;
use tgp_contract::canonical::{self, CanonicalError};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The longest line, its end included. An event says what happened; what it happened to is named by a hash.
pub const MAX_LINE_BYTES: usize = 1 << 20;
/// How deep the values of an event may be nested. Parsers of JSON give up somewhere above a hundred.
const MAX_DEPTH: usize = 64;
/// Names that an event has by itself, and that its other fields cannot take.
const OWN_NAMES: [&str; 5] = ["eventId", "type", "timestamp", "actor", "filePath"];

/// Why an event cannot become a line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    #[error("`{0}` is empty")]
    Empty(&'static str),
    #[error("the timestamp `{0}` is not one of RFC 3339, such as `2026-01-31T12:00:00.000Z`")]
    Timestamp(String),
    #[error("the field `{0}` is one that every event has, and cannot be given twice")]
    OwnName(&'static str),
    #[error("its values are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("it needs {0} bytes, at most {MAX_LINE_BYTES}")]
    TooLong(usize),
    #[error("its `eventId` is `{given}`, but its own is `{own}`")]
    WrongId { given: String, own: String },
    #[error("{0}")]
    Canonical(#[from] CanonicalError),
    #[error("it would not be read back as it is: {0}")]
    Unreadable(#[from] LineError),
}

/// Why a line is no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineError {
    #[error("the line is longer than {MAX_LINE_BYTES} bytes")]
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

/// An event that is ready to be written.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub(crate) id: String,
    /// The line with its end.
    pub(crate) line: Vec<u8>,
}

/// The line of `event`, checked so that [`decode`] gives the event back.
pub(crate) fn encode(event: ChronicleEvent) -> Result<Encoded, EventError> {
    check(&event)?;
    let own = event.compute_id()?;
    if let Some(given) = event.event_id.as_ref().filter(|given| **given != own) {
        return Err(EventError::WrongId { given: given.clone(), own });
    }
    let mut line = text(&ChronicleEvent { event_id: Some(own.clone()), ..event })?.into_bytes();
    line.push(b'\n');
    if line.len() > MAX_LINE_BYTES {
        return Err(EventError::TooLong(line.len()));
    }
    decode(line.strip_suffix(b"\n").unwrap_or(&line))?;
    Ok(Encoded { id: own, line })
}

/// The event of a line, given without its end.
pub(crate) fn decode(line: &[u8]) -> Result<ChronicleEvent, LineError> {
    if line.len() >= MAX_LINE_BYTES {
        return Err(LineError::TooLong);
    }
    let event: ChronicleEvent = serde_json::from_slice(line).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => LineError::NotEvent(error.to_string()),
        _ => LineError::NotJson(error.to_string()),
    })?;
    let given = event.event_id.clone().ok_or(LineError::NoId)?;
    check(&event).map_err(|error| LineError::NotEvent(error.to_string()))?;
    let own = event.compute_id().map_err(|error| LineError::NotEvent(error.to_string()))?;
    if given != own {
        return Err(LineError::WrongId { given, own });
    }
    match text(&event) {
        Ok(text) if text.as_bytes() == line => Ok(event),
        _ => Err(LineError::NotCanonical),
    }
}

/// Whether `line` is JSON at all. A line that was cut off, or that the disk lost a part of, is not.
pub(crate) fn is_json(line: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

fn text(event: &ChronicleEvent) -> Result<String, CanonicalError> {
    canonical::to_string(&serde_json::to_value(event)?)
}

/// What a type cannot say of an event.
fn check(event: &ChronicleEvent) -> Result<(), EventError> {
    let words = [("type", &event.kind), ("actor.agent", &event.actor.agent), ("actor.id", &event.actor.id)];
    if let Some((name, _)) = words.iter().find(|(_, word)| word.is_empty()) {
        return Err(EventError::Empty(name));
    }
    if OffsetDateTime::parse(&event.timestamp, &Rfc3339).is_err() {
        return Err(EventError::Timestamp(event.timestamp.chars().take(64).collect()));
    }
    if let Some(name) = OWN_NAMES.iter().find(|name| event.fields.contains_key(**name)) {
        return Err(EventError::OwnName(name));
    }
    if is_deeper(&event.fields, MAX_DEPTH) {
        return Err(EventError::TooDeep);
    }
    Ok(())
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
