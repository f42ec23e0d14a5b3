//! Schemas of arguments in the few tokens that a model needs.

use serde_json::Value;

/// Keywords that only say what the kernel checks anyway. A model pays for each of them in every request, and an error
/// names the one that an argument breaks.
const CHECKED_ANYWAY: [&str; 8] =
    ["$schema", "format", "maxItems", "maxLength", "minItems", "minLength", "minimum", "pattern"];
/// A schema of a tool is written by us or generated from a tool's types; neither is as deep as this.
const MAX_SCHEMA_DEPTH: usize = 32;

/// The schema of a tool's arguments as a model needs it: names, types, descriptions, what is required.
pub(crate) fn concise(schema: &Value) -> Value {
    without_checks(schema, 0)
}

fn without_checks(schema: &Value, depth: usize) -> Value {
    if depth > MAX_SCHEMA_DEPTH {
        return schema.clone();
    }
    match schema {
        Value::Array(schemas) => schemas.iter().map(|schema| without_checks(schema, depth + 1)).collect(),
        Value::Object(keywords) => Value::Object(
            keywords
                .iter()
                .filter(|(keyword, value)| !is_checked_anyway(keyword, value))
                .map(|(keyword, value)| (keyword.clone(), without_checks_below(keyword, value, depth)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// The names below `properties` are arguments, whatever they are called; values below `enum` and `default` are data.
fn without_checks_below(keyword: &str, value: &Value, depth: usize) -> Value {
    match (keyword, value) {
        ("properties" | "$defs" | "definitions", Value::Object(named)) => Value::Object(
            named.iter().map(|(name, schema)| (name.clone(), without_checks(schema, depth + 1))).collect(),
        ),
        ("enum" | "const" | "default" | "required" | "examples", _) => value.clone(),
        _ => without_checks(value, depth + 1),
    }
}

/// A schema below `additionalProperties` says what a map holds, and stays.
fn is_checked_anyway(keyword: &str, value: &Value) -> bool {
    match keyword {
        "additionalProperties" => value.is_boolean(),
        "default" => matches!(value, Value::Null | Value::Bool(false)) || value.as_u64() == Some(0),
        _ => CHECKED_ANYWAY.contains(&keyword),
    }
}
