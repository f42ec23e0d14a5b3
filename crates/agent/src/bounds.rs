//! What a line of the transcript can hold: it must be possible to read it again, and a session whose lines cannot be
//! written could never be resumed.

use serde_json::{Value, json};
use tgp_contract::{FileEffect, ToolError, ToolResult};
use tgp_text::head;

/// Nesting levels of a value in a line. A JSON parser stops at 128, and the line adds some.
const MAX_DEPTH: usize = 64;
/// What one result takes. Tools bound their answers far below.
const MAX_RESULT_BYTES: usize = 4 << 20;
/// What is kept of a larger one.
const KEPT_BYTES: usize = 1 << 20;
/// Files that a line names; a command may touch a whole tree.
const MAX_FILES: usize = 10_000;
/// And what they may take in it: paths can be long.
const MAX_FILES_BYTES: usize = 1 << 20;

pub(crate) fn is_too_deep(value: &Value) -> bool {
    deeper_than(value, MAX_DEPTH)
}

/// The value, or its JSON as one text where it is nested too deeply.
pub(crate) fn flatten(value: Value) -> Value {
    if is_too_deep(&value) { Value::String(value.to_string()) } else { value }
}

pub(crate) fn flatten_error(mut error: ToolError) -> ToolError {
    for (_, value) in &mut error.details {
        *value = flatten(value.take());
    }
    error
}

/// A result that a line can hold.
pub(crate) fn fit_result(result: ToolResult) -> ToolResult {
    let result = match result {
        ToolResult::Done(data) => ToolResult::Done(flatten(data)),
        ToolResult::Failed(error) => ToolResult::Failed(flatten_error(error)),
    };
    let bytes = serde_json::to_string(&result).map_or(usize::MAX, |text| text.len());
    if bytes <= MAX_RESULT_BYTES {
        return result;
    }
    let why = format!("{bytes} bytes are too many to be kept; ask for a part");
    match result {
        ToolResult::Done(data) => {
            ToolResult::Done(json!({ "cut": why, "begins": head(&data.to_string(), KEPT_BYTES) }))
        }
        ToolResult::Failed(error) => {
            let help = head(error.help_of().unwrap_or_default(), KEPT_BYTES / 4).to_owned();
            let message = head(&error.message, KEPT_BYTES / 4);
            ToolResult::Failed(ToolError::new(error.code, message).help(help).detail("cut", why))
        }
    }
}

/// The files that a line names, and how many it does not.
pub(crate) fn fit_files(mut files: Vec<FileEffect>) -> (Vec<FileEffect>, u64) {
    let mut bytes = 0;
    let mut has_room = |file: &FileEffect| {
        // With the comma after it.
        bytes += serde_json::to_string(file).map_or(MAX_FILES_BYTES, |text| text.len() + 1);
        bytes <= MAX_FILES_BYTES
    };
    let kept = files.iter().take(MAX_FILES).map_while(|file| has_room(file).then_some(())).count();
    let omitted = files.len() - kept;
    files.truncate(kept);
    (files, omitted as u64)
}

fn deeper_than(value: &Value, most: usize) -> bool {
    let inner = |value: &Value| most == 0 || deeper_than(value, most - 1);
    match value {
        Value::Array(items) => items.iter().any(inner),
        Value::Object(fields) => fields.values().any(inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
