//! How large what a run holds may become: a line of the journal must be possible to write and to read again.

use std::borrow::Cow;

use serde_json::Value;
use tgp_contract::{Code, ToolError};
use tgp_text::truncate_bytes;

/// One value of a step, as JSON. The journal keeps each, and a `map` holds one for each item at once.
pub(super) const MAX_VALUE_BYTES: usize = 8 << 20;
/// Nesting levels of a value. A JSON parser stops at 128, and the journal line adds some.
pub(super) const MAX_DEPTH: usize = 64;
/// A text with values in it, and the input of one agent: far beyond what a model can read.
pub(super) const MAX_TEXT_BYTES: usize = 2 << 20;
/// Items of one `map`.
pub(super) const MAX_ITEMS: usize = 10_000;
/// Items of all maps that are worked on at the same time, in addition to one for each map.
pub(super) const MAX_LIVE_ITEMS: usize = 1_024;
/// Steps that one run takes. Queries that use queries can multiply without calls, which no other budget would count.
pub(super) const MAX_STEPS: u64 = 100_000;
/// Steps that run at the same time, whatever the budget says: each may be a process.
pub(super) const MAX_PARALLEL: usize = 64;
/// Details of an error that are kept; logs can be long.
const MAX_DETAIL_BYTES: usize = 64 << 10;

/// What a value takes as JSON, roughly. `None` when it is nested too deeply.
pub(super) fn measure(value: &Value) -> Option<usize> {
    within(value, MAX_DEPTH)
}

fn within(value: &Value, levels: usize) -> Option<usize> {
    // Quotes, commas and brackets count two.
    Some(match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => {
            let levels = levels.checked_sub(1)?;
            let mut bytes = 2;
            for item in items {
                bytes += within(item, levels)? + 1;
            }
            bytes
        }
        Value::Object(fields) => {
            let levels = levels.checked_sub(1)?;
            let mut bytes = 2;
            for (name, item) in fields {
                bytes += name.len() + 4 + within(item, levels)?;
            }
            bytes
        }
    })
}

/// Whether a value can be kept.
pub(super) fn check(value: &Value) -> Result<usize, ToolError> {
    match measure(value) {
        Some(bytes) if bytes <= MAX_VALUE_BYTES => Ok(bytes),
        Some(bytes) => Err(too_large(bytes)),
        None => Err(ToolError::new(
            Code::Validation,
            format!("the value is nested deeper than {MAX_DEPTH} levels, which cannot be kept"),
        )
        .help("have the step answer with less, or with a text")),
    }
}

pub(super) fn too_large(bytes: usize) -> ToolError {
    let message = format!("a value of {bytes} bytes is too large: at most {MAX_VALUE_BYTES} can be kept");
    ToolError::new(Code::Validation, message).help("have the step answer with a part of it")
}

/// An error that a line can hold.
pub(super) fn fit_error(mut error: ToolError) -> ToolError {
    error.details.retain(|_, value| measure(value).is_some_and(|bytes| bytes <= MAX_DETAIL_BYTES));
    if let Cow::Owned(short) = truncate_bytes(&error.message, MAX_DETAIL_BYTES) {
        error.message = short;
    }
    error
}
