//! From JSON Schema to a type, as well as it can be said. What cannot be said is `Any`, and shows when it is used.

use serde_json::{Map, Value};

use crate::types::{MAX_SIZE, union};
use crate::{Field, QueryType, Record};

/// Schemas inside of each other. References may be circular.
const MAX_DEPTH: usize = 16;

pub(super) fn to_type(schema: &Value) -> QueryType {
    Reader { root: schema, left: MAX_SIZE }.read(schema, 0)
}

struct Reader<'a> {
    root: &'a Value,
    /// How many more nodes are read: a schema can refer to one part from many others.
    left: usize,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value, depth: usize) -> QueryType {
        let Some(left) = self.left.checked_sub(1) else { return QueryType::Any };
        self.left = left;
        let Some(object) = schema.as_object().filter(|_| depth < MAX_DEPTH) else { return QueryType::Any };
        if let Some(reference) = object.get("$ref") {
            let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#'));
            let found = pointer.and_then(|pointer| self.root.pointer(pointer)).cloned();
            return found.map_or(QueryType::Any, |schema| self.read(&schema, depth + 1));
        }
        if let Some(value) = object.get("const") {
            return constant(value);
        }
        if let Some(values) = object.get("enum").and_then(Value::as_array) {
            return union(values.iter().map(constant));
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(schemas) = object.get(several).and_then(Value::as_array) {
                // Beside a `type`, the alternatives only narrow it further.
                if object.contains_key("type") || object.contains_key("properties") {
                    break;
                }
                let types: Vec<QueryType> =
                    schemas.iter().map(|schema| self.read(schema, depth + 1)).collect();
                return union(types);
            }
        }
        match object.get("type") {
            Some(Value::String(name)) => self.named(name, object, depth),
            Some(Value::Array(names)) => {
                let types: Vec<QueryType> = names
                    .iter()
                    .map(|name| name.as_str().map_or(QueryType::Any, |name| self.named(name, object, depth)))
                    .collect();
                union(types)
            }
            _ if object.contains_key("properties") => self.named("object", object, depth),
            _ => QueryType::Any,
        }
    }

    fn named(&mut self, name: &str, schema: &Map<String, Value>, depth: usize) -> QueryType {
        match name {
            "string" => QueryType::String,
            "integer" => QueryType::Int,
            "number" => QueryType::Float,
            "boolean" => QueryType::Bool,
            "null" => QueryType::Null,
            "array" => {
                let item = schema.get("items").filter(|_| !schema.contains_key("prefixItems"));
                QueryType::list(item.map_or(QueryType::Any, |item| self.read(item, depth + 1)))
            }
            "object" => self.object(schema, depth),
            _ => QueryType::Any,
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> QueryType {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut record = Record { open: true, ..Record::default() };
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let ty = self.read(property, depth + 1);
            let optional = !required.contains(&name.as_str());
            record.fields.insert(name.clone(), Field { ty, optional });
        }
        for name in required {
            let field = Field { ty: QueryType::Any, optional: false };
            record.fields.entry(name.to_owned()).or_insert(field);
        }
        let closed = ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|key| schema.get(*key) == Some(&Value::Bool(false)));
        record.open = !closed || schema.contains_key("patternProperties");
        QueryType::Record(record)
    }
}

fn constant(value: &Value) -> QueryType {
    match value {
        Value::Null => QueryType::Null,
        Value::Bool(_) => QueryType::Bool,
        Value::Number(number) if number.is_f64() => QueryType::Float,
        Value::Number(_) => QueryType::Int,
        Value::String(text) => QueryType::Choice(vec![text.clone()]),
        Value::Array(_) | Value::Object(_) => QueryType::Any,
    }
}
