//! Values that are nested too deeply become texts: a line of the transcript must be readable again.

use serde_json::Value;
use tgp_contract::ToolError;

/// Levels of a value in a line. A reader of JSON stops at 128, and the line has some of its own.
const MAX_DEPTH: usize = 64;

pub(crate) fn is_too_deep(value: &Value) -> bool {
    deeper_than(value, MAX_DEPTH)
}

/// The value, or its JSON as one text.
pub(crate) fn flatten(value: Value) -> Value {
    if is_too_deep(&value) { Value::String(value.to_string()) } else { value }
}

pub(crate) fn flatten_error(mut error: ToolError) -> ToolError {
    for (_, value) in &mut error.details {
        *value = flatten(value.take());
    }
    error
}

fn deeper_than(value: &Value, most: usize) -> bool {
    let inner = |value: &Value| most == 0 || deeper_than(value, most - 1);
    match value {
        Value::Array(items) => items.iter().any(inner),
        Value::Object(fields) => fields.values().any(inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
