//! JSON Schemas of the types of tools, in the small form that every model provider accepts.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of a type that is read: what a caller may send.
pub(super) fn arguments_schema<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_deserialize())
}

/// The schema of a type that is written: what a caller gets.
pub(super) fn result_schema<T: JsonSchema>() -> Value {
    generate::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        // References are more than some providers understand.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    Plain.transform(&mut schema);
    if let Some(fields) = schema.as_object_mut() {
        // What the whole is for is the tool's own description.
        fields.remove("description");
        // Providers expect the properties of an object even where it has none.
        if fields.get("type").is_some_and(|kind| kind == "object") && !fields.contains_key("oneOf") {
            fields.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
        }
    }
    schema.to_value()
}

/// Leaves out what is useless to a model: titles, formats of numbers, empty defaults, further fields that are allowed,
/// and `null` as another way to leave an optional field out.
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(fields) = schema.as_object_mut() else { return };
        fields.remove("title");
        if fields.get("format").and_then(Value::as_str).is_some_and(is_number_format) {
            fields.remove("format");
        }
        if fields.get("default").is_some_and(is_empty) {
            fields.remove("default");
        }
        if fields.get("additionalProperties") == Some(&Value::Bool(true)) {
            fields.remove("additionalProperties");
        }
        let optional = fields.get("properties").and_then(Value::as_object).map(|all| {
            let required = fields.get("required").and_then(Value::as_array);
            let is_required = |name: &&String| {
                required.is_some_and(|names| names.iter().any(|other| other == name.as_str()))
            };
            all.keys().filter(|name| !is_required(name)).cloned().collect::<Vec<String>>()
        });
        if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
            for name in optional.unwrap_or_default() {
                properties.entry(name).and_modify(remove_null);
            }
        }
    }
}

fn is_number_format(format: &str) -> bool {
    ["uint", "int", "float", "double"].iter().any(|prefix| format.starts_with(prefix))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// `null` beside one other type. Beside several, it is a separate value.
fn remove_null(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(kinds)) = fields.get("type")
        && let [kind, null] = kinds.as_slice()
        && null == "null"
    {
        let kind = kind.clone();
        fields.insert("type".to_owned(), kind);
        if let Some(Value::Array(values)) = fields.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
    }
    if let Some(Value::Array(choices)) = fields.get("anyOf")
        && let [Value::Object(choice), null] = choices.as_slice()
        && null.get("type").is_some_and(|kind| kind == "null")
    {
        let choice = choice.clone();
        fields.remove("anyOf");
        for (name, value) in choice {
            fields.entry(name).or_insert(value);
        }
    }
}
