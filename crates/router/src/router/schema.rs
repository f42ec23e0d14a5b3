//! Arguments against a tool's JSON Schema.

use std::fmt::{self, Display, Write};
use std::sync::OnceLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use serde_json::Value;
use tgp_contract::{Code, ToolDefinition, ToolError};
use tgp_text::did_you_mean;

/// The most errors that are reported; more would not help.
const MAX_REPORTED: usize = 8;

/// Longest text of a value or a path in a message; the caller knows the rest.
const MAX_SHOWN_BYTES: usize = 400;

/// A schema that is compiled when it is needed first: a command that makes one call needs one of them.
#[derive(Default)]
pub struct LazySchema(OnceLock<Result<Schema, String>>);

impl LazySchema {
    /// # Errors
    /// Why it is not a schema.
    fn get(&self, schema: &Value) -> Result<&Schema, &str> {
        self.0.get_or_init(|| Schema::new(schema)).as_ref().map_err(String::as_str)
    }

    /// Compiles it now.
    ///
    /// # Errors
    /// Why it is not a schema.
    pub fn compile(&self, schema: &Value) -> Result<(), &str> {
        self.get(schema).map(|_| ())
    }

    /// Checks arguments for `name` against its schema; `help` says where the schema can be seen.
    ///
    /// # Errors
    /// `EVALIDATION` with the fields that do not fit.
    pub fn check_value(
        &self,
        name: &str,
        schema: &Value,
        arguments: &Value,
        help: &str,
    ) -> Result<(), ToolError> {
        let compiled = self.get(schema).map_err(|reason| {
            ToolError::new(Code::Internal, format!("the input schema of `{name}` cannot be used: {reason}"))
        })?;
        compiled.check(name, schema, arguments).map_err(|error| error.help(help))
    }

    pub(super) fn check(&self, definition: &ToolDefinition, arguments: &Value) -> Result<(), ToolError> {
        let tool = definition.name.as_str();
        let schema = &definition.input_schema;
        self.check_value(
            tool,
            schema,
            arguments,
            &format!("`tgp tools --format json` shows the schema of `{tool}`"),
        )
    }
}

struct Schema(Validator);

impl Schema {
    fn new(schema: &Value) -> Result<Self, String> {
        let validator = if means_the_same_in_draft_7(schema) {
            // Its schema of schemas is small; that of the current draft takes milliseconds of every start.
            jsonschema::options().with_draft(Draft::Draft7).should_validate_formats(false).build(schema)
        } else {
            jsonschema::validator_for(schema)
        };
        validator.map(Self).map_err(|error| error.to_string())
    }

    fn check(&self, tool: &str, schema: &Value, arguments: &Value) -> Result<(), ToolError> {
        if self.0.is_valid(arguments) {
            return Ok(());
        }
        let found = self.0.iter_errors(arguments).take(MAX_REPORTED);
        let mut problems: Vec<(bool, String, String)> = found
            .map(|error| {
                let unknown = unknown_field(&error, schema);
                let (is_other, message) = (unknown.is_none(), unknown.unwrap_or_else(|| shortened(&error)));
                (is_other, shortened(error.instance_path()), message)
            })
            .collect();
        // A field that is missing is often there under another name.
        problems.sort_by_key(|(is_other, ..)| *is_other);
        let problems: Vec<(String, String)> =
            problems.into_iter().map(|(_, field, message)| (field, message)).collect();
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
        .detail("problems", all))
    }
}

/// What draft 7 of JSON Schema does not know, or understands in another way than the current one.
const OTHER_MEANING: [&str; 22] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "id",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Whether a schema has none of those words, not even as the name of a field.
fn means_the_same_in_draft_7(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().all(|(key, value)| {
            let is_list_of_items = key == "items" && value.is_array();
            !OTHER_MEANING.contains(&key.as_str()) && !is_list_of_items && means_the_same_in_draft_7(value)
        }),
        Value::Array(items) => items.iter().all(means_the_same_in_draft_7),
        _ => true,
    }
}

/// The message for fields that the schema does not have, with the name that was probably meant.
fn unknown_field(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() else { return None };
    let name = unexpected.first()?;
    let names = unexpected
        .iter()
        .take(MAX_REPORTED)
        .map(|name| format!("`{}`", name.escape_debug()))
        .collect::<Vec<_>>();
    let plural = if names.len() > 1 { "s" } else { "" };
    let message = format!("unknown field{plural} {}", shortened(&names.join(", ")));
    // Names of the fields of inner objects are not at hand.
    let is_outermost = error.instance_path().as_str().is_empty();
    let fields = schema.get("properties").and_then(Value::as_object).filter(|_| is_outermost);
    let known = fields.into_iter().flat_map(|fields| fields.keys().map(String::as_str));
    Some(match did_you_mean(name, known) {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_drafts_say_the_same_of_a_plain_schema() {
        let schemas = [
            json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 0, "format": "uint8" } },
                    "required": ["n"], "additionalProperties": false }),
            json!({ "anyOf": [{ "type": "string", "minLength": 2, "format": "email" }, { "type": "null" }] }),
            json!({ "type": "array", "items": { "enum": ["a", 1, null] }, "uniqueItems": true, "maxItems": 2 }),
            json!({ "if": { "type": "string" }, "then": { "pattern": "^a" }, "else": { "const": 1 } }),
            json!({ "contains": { "type": "number" } }),
            json!(true),
            json!(false),
        ];
        let values = [
            json!({ "n": 300 }),
            json!({ "n": -1 }),
            json!({ "n": 1.0 }),
            json!({ "n": 1.5 }),
            json!({}),
            json!({ "n": 1, "m": 2 }),
            json!("x"),
            json!("not an address"),
            json!("abc"),
            json!(null),
            json!(1),
            json!(["a", 1]),
            json!(["a", "a"]),
            json!(["b"]),
            json!(["a", 1, null]),
            json!([]),
            json!(["x", 7]),
        ];
        for schema in &schemas {
            assert!(means_the_same_in_draft_7(schema), "{schema}");
            let (ours, current) = (Schema::new(schema).unwrap(), jsonschema::validator_for(schema).unwrap());
            for value in &values {
                assert_eq!(ours.0.is_valid(value), current.is_valid(value), "{schema} {value}");
            }
        }
    }

    #[test]
    fn a_word_with_another_meaning_keeps_the_current_draft() {
        let tuple = json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false });
        assert!(!Schema::new(&tuple).unwrap().0.is_valid(&json!(["a", "b"])));
        let required = json!({ "dependentRequired": { "a": ["b"] } });
        assert!(!Schema::new(&required).unwrap().0.is_valid(&json!({ "a": 1 })));
        let beside =
            json!({ "$ref": "#/$defs/text", "maxLength": 1, "$defs": { "text": { "type": "string" } } });
        assert!(!Schema::new(&beside).unwrap().0.is_valid(&json!("ab")));
        assert!(Schema::new(&json!({ "type": "no such type" })).is_err());
        assert!(Schema::new(&json!({ "items": [{ "type": "string" }] })).is_err());
    }
}
