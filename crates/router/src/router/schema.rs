//! Arguments against a tool's JSON Schema.

use std::fmt::{self, Display, Write};
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;
use tgp_contract::{Code, ToolDefinition, ToolError};

/// The most errors that are reported; more would not help.
const MAX_REPORTED: usize = 8;

/// Longest text of a value or a path in a message; the caller knows the rest.
const MAX_SHOWN_BYTES: usize = 400;

/// A schema that is compiled when it is needed first: a command that makes one call needs one of them.
#[derive(Default)]
pub(super) struct LazySchema(OnceLock<Result<Schema, String>>);

impl LazySchema {
    /// # Errors
    /// Why it is not a schema.
    pub(super) fn get(&self, schema: &Value) -> Result<&Schema, &str> {
        self.0.get_or_init(|| Schema::new(schema)).as_ref().map_err(String::as_str)
    }

    pub(super) fn check(&self, definition: &ToolDefinition, arguments: &Value) -> Result<(), ToolError> {
        let tool = definition.name.as_str();
        let schema = self.get(&definition.input_schema).map_err(|reason| {
            ToolError::new(Code::Internal, format!("the input schema of `{tool}` cannot be used: {reason}"))
        })?;
        schema.check(tool, arguments)
    }
}

pub(super) struct Schema(Validator);

impl Schema {
    fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::validator_for(schema).map(Self).map_err(|error| error.to_string())
    }

    fn check(&self, tool: &str, arguments: &Value) -> Result<(), ToolError> {
        if self.0.is_valid(arguments) {
            return Ok(());
        }
        let problems: Vec<(String, String)> = self
            .0
            .iter_errors(arguments)
            .take(MAX_REPORTED)
            .map(|error| (shortened(error.instance_path()), shortened(&error)))
            .collect();
        let (field, message) = problems.first().cloned().unwrap_or_default();
        let place = if field.is_empty() { String::new() } else { format!(" at `{field}`") };
        let all: Vec<Value> = problems
            .into_iter()
            .map(|(field, message)| serde_json::json!({ "field": field, "message": message }))
            .collect();
        Err(ToolError::new(
            Code::Validation,
            format!("the arguments of `{tool}` do not fit{place}: {message}"),
        )
        .detail("field", field)
        .detail("problems", all)
        .help(format!("`tgp tools --format json` shows the schema of `{tool}`")))
    }
}

/// The beginning of a text, written no further than it is wanted: a message about a value of many megabytes would be as
/// long, eight times.
fn shortened(value: &dyn Display) -> String {
    let mut beginning = Beginning(String::new());
    if write!(beginning, "{value}").is_err() {
        beginning.0.push('…');
    }
    beginning.0
}

/// A text that takes a bounded number of bytes, and ends the writing then.
struct Beginning(String);

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_SHOWN_BYTES.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(tgp_text::head(text, room));
        Err(fmt::Error)
    }
}
