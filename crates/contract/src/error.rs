//! The one error shape that crosses every wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Code;

/// A place in a source file. Lines and columns count from 1; a column counts characters, not bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct SourceLocation {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl std::fmt::Display for SourceLocation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// What went wrong, why, and what to do next.
///
/// `details` holds what a program can use: `place` (a [`SourceLocation`]), `help` (the next step, a sentence), `field`
/// (a path into the arguments), `logs`, and whatever else the code's documentation names.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ToolError {
    pub code: Code,
    pub message: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
    /// Only inside the process: on the wire the record says it, so that no tool and no client can claim it.
    #[serde(skip)]
    interruption: Option<Interruption>,
}

/// How the work ended that an error is about, where it did not fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// It was cancelled before it took effect.
    Cancelled,
    /// It cannot be known whether its effect is in place.
    UnknownOutcome,
    /// Its effect is in place; what failed came afterwards.
    TookEffect,
}

/// Two errors are the same when they are on the wire: one that was read from a journal is the one that was written.
impl PartialEq for ToolError {
    fn eq(&self, other: &Self) -> bool {
        (self.code, &self.message, &self.details) == (other.code, &other.message, &other.details)
    }
}

impl ToolError {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: Map::new(), interruption: None }
    }

    /// Marks an error after which it cannot be known whether the effect is in place: a connection that broke during
    /// COMMIT. `details.outcome` says so.
    #[must_use]
    pub fn of_unknown_outcome(mut self) -> Self {
        self.interruption = Some(Interruption::UnknownOutcome);
        self.detail("outcome", "unknown")
    }

    /// Whether it cannot be known whether the effect is in place.
    #[must_use]
    pub fn is_of_unknown_outcome(&self) -> bool {
        self.interruption == Some(Interruption::UnknownOutcome)
    }

    /// Marks an error of something that came after the effect, which is in place: a caller must not make the call
    /// again. `details.outcome` says so.
    #[must_use]
    pub fn after_effect(mut self) -> Self {
        self.interruption = Some(Interruption::TookEffect);
        self.detail("outcome", "done")
    }

    /// Whether the effect is in place, though something failed after it.
    #[must_use]
    pub fn is_after_effect(&self) -> bool {
        self.interruption == Some(Interruption::TookEffect)
    }

    /// Marks the error of work that was cancelled before it took effect. `details.cancelled` says so.
    #[must_use]
    pub fn of_cancellation(mut self) -> Self {
        self.interruption = Some(Interruption::Cancelled);
        self.detail("cancelled", true)
    }

    /// Whether the work was cancelled before it took effect.
    #[must_use]
    pub fn is_of_cancellation(&self) -> bool {
        self.interruption == Some(Interruption::Cancelled)
    }

    /// The same error under another code.
    #[must_use]
    pub fn with_code(mut self, code: Code) -> Self {
        self.code = code;
        self
    }

    /// The same error with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Says what the caller can do next.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        self.detail("help", help.into())
    }

    /// Says where it happened.
    #[must_use]
    pub fn place(self, place: &SourceLocation) -> Self {
        let value = serde_json::json!({ "file": place.file, "line": place.line, "column": place.column });
        self.detail("place", value)
    }

    /// Returns the error about a file whose text must not be shown: its code and its place remain.
    #[must_use]
    pub fn without_contents(self, file: &str) -> Self {
        let message = format!("`{file}` is outside the project and cannot be used");
        let bare =
            Self::new(self.code, message).help("correct it at the place that is named, or where it begins");
        match self.place_of() {
            Some(place) => bare.place(&place),
            None => bare,
        }
    }

    /// Adds one detail under `key`.
    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The same without long texts: an error may name a value that the caller has sent, but never repeats it whole.
    /// Details of errors that are not about arguments, such as the output of a command, are left as they are.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if matches!(self.code, Code::Validation | Code::NotFound | Code::Policy | Code::Permission) {
            cut(&mut self.message, MAX_ARGUMENT_TEXT);
            self.details.values_mut().for_each(cut_all);
        } else {
            cut(&mut self.message, MAX_MESSAGE);
        }
        self
    }

    /// The place, when one was given.
    #[must_use]
    pub fn place_of(&self) -> Option<SourceLocation> {
        self.details.get("place").and_then(|value| serde_json::from_value(value.clone()).ok())
    }

    /// The next step, when one was given.
    #[must_use]
    pub fn help_of(&self) -> Option<&str> {
        self.details.get("help").and_then(Value::as_str)
    }
}

/// The longest text of an error about arguments.
const MAX_ARGUMENT_TEXT: usize = 4 << 10;
/// The longest message of any error.
const MAX_MESSAGE: usize = 64 << 10;
/// What is kept of a longer text.
const KEPT_TEXT: usize = 1 << 10;

/// Cuts a text that is longer than `most` bytes, and says how long it was.
fn cut(text: &mut String, most: usize) {
    let length = text.len();
    if length > most {
        text.truncate(text.floor_char_boundary(KEPT_TEXT));
        // What was truncated stays reserved otherwise.
        text.shrink_to_fit();
        text.push_str(&format!("… [{length} bytes in all]"));
    }
}

fn cut_all(value: &mut Value) {
    match value {
        Value::String(text) => cut(text, MAX_ARGUMENT_TEXT),
        Value::Array(items) => items.iter_mut().for_each(cut_all),
        Value::Object(fields) => fields.values_mut().for_each(cut_all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
