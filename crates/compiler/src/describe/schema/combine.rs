//! Schemas as values: how two become one.

use serde_json::{Map, Value, json};

use super::super::doc::Doc;
use super::super::values::number;

/// The schema of a union.
pub(in super::super) fn join(options: Vec<Value>) -> Value {
    let mut kinds: Vec<Value> = Vec::new();
    let mut literals: Vec<Value> = Vec::new();
    let mut others: Vec<Value> = Vec::new();
    for option in options {
        match option {
            Value::Bool(true) => return Value::Bool(true),
            Value::Object(fields) => sort_in(fields, &mut kinds, &mut literals, &mut others),
            _ => {}
        }
    }
    if [true, false].iter().all(|value| literals.contains(&Value::Bool(*value))) {
        literals.retain(|literal| !literal.is_boolean());
        add(&mut kinds, json!("boolean"));
    }
    literals.retain(|literal| !kinds.iter().any(|kind| kind == kind_of(literal)));
    let null = json!("null");
    if !literals.is_empty() && kinds == [null.clone()] {
        kinds.clear();
        literals.push(Value::Null);
    }
    // `{ … } | null` stays one schema: its other keywords say nothing of null.
    if literals.is_empty()
        && kinds == [null.clone()]
        && let [Value::Object(only)] = others.as_mut_slice()
        && let Some(Value::String(kind)) = only.get("type")
    {
        let both = json!([kind, "null"]);
        only.insert("type".to_owned(), both);
        kinds.clear();
    }
    let mut parts = Vec::new();
    match kinds.as_slice() {
        [] => {}
        [kind] => parts.push(json!({ "type": kind })),
        _ => parts.push(json!({ "type": kinds })),
    }
    parts.extend(enumeration(&literals));
    parts.extend(others);
    match parts.len() {
        0 => Value::Bool(true),
        1 => parts.pop().unwrap_or(Value::Bool(true)),
        _ => json!({ "anyOf": parts }),
    }
}

/// Puts one option of a union where it belongs.
fn sort_in(
    fields: Map<String, Value>,
    kinds: &mut Vec<Value>,
    literals: &mut Vec<Value>,
    others: &mut Vec<Value>,
) {
    let only = |names: &[&str]| fields.keys().all(|key| names.contains(&key.as_str()));
    if let (true, Some(constant)) = (only(&["const"]), fields.get("const")) {
        return add(literals, constant.clone());
    }
    if let (true, Some(Value::Array(values))) = (only(&["type", "enum"]), fields.get("enum")) {
        values.iter().for_each(|value| add(literals, value.clone()));
        return;
    }
    if let (true, Some(kind)) = (only(&["type"]), fields.get("type")) {
        match kind {
            Value::Array(several) => several.iter().for_each(|kind| add(kinds, kind.clone())),
            kind => add(kinds, kind.clone()),
        }
        return;
    }
    if let (true, Some(Value::Array(inner))) = (only(&["anyOf"]), fields.get("anyOf")) {
        for option in inner {
            match option {
                Value::Object(fields) => sort_in(fields.clone(), kinds, literals, others),
                other => add(others, other.clone()),
            }
        }
        return;
    }
    add(others, Value::Object(fields));
}

fn add(list: &mut Vec<Value>, value: Value) {
    if !list.contains(&value) {
        list.push(value);
    }
}

fn kind_of(literal: &Value) -> &'static str {
    match literal {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null => "null",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `const` for one literal, `enum` for several, with their type when it is the same.
pub(super) fn enumeration(literals: &[Value]) -> Option<Value> {
    let first = kind_of(literals.first()?);
    if let [only] = literals {
        return Some(json!({ "const": only }));
    }
    let is_uniform = literals.iter().all(|literal| kind_of(literal) == first);
    Some(if is_uniform { json!({ "type": first, "enum": literals }) } else { json!({ "enum": literals }) })
}

/// The literals a schema enumerates, when it does nothing else.
pub(super) fn literals(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(constant), _) => Some(vec![constant.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

/// The schema of an intersection.
pub(super) fn meet(options: Vec<Value>) -> Value {
    let mut options: Vec<Value> = options.into_iter().filter(|option| *option != Value::Bool(true)).collect();
    if options.len() > 1 {
        // `string & { brand: … }` is a string to everyone but the type checker.
        let plain = options.iter().position(|option| {
            option.get("type").is_some_and(|kind| !matches!(kind.as_str(), Some("object" | "array") | None))
        });
        if let Some(at) = plain {
            return options.swap_remove(at);
        }
    }
    if options.iter().all(is_object) {
        return options.into_iter().reduce(merge).unwrap_or(Value::Bool(true));
    }
    match options.len() {
        1 => options.pop().unwrap_or(Value::Bool(true)),
        _ => json!({ "allOf": options }),
    }
}

/// Both at once: one object where both are objects.
pub(in super::super) fn merged(first: Value, second: Value) -> Value {
    meet(vec![first, second])
}

fn is_object(schema: &Value) -> bool {
    let keywords = ["type", "properties", "required", "additionalProperties", "description"];
    schema.get("type") == Some(&json!("object"))
        && schema.as_object().is_some_and(|fields| fields.keys().all(|key| keywords.contains(&key.as_str())))
}

/// Two object schemas as one; what the second says of a property wins.
pub(super) fn merge(first: Value, second: Value) -> Value {
    let (Value::Object(mut first), Value::Object(second)) = (first, second) else { return Value::Bool(true) };
    for (key, value) in second {
        match (first.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => known.extend(more),
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                more.into_iter().for_each(|name| add(known, name));
            }
            (_, value) => {
                first.insert(key, value);
            }
        }
    }
    Value::Object(first)
}

/// Adds a keyword that the schema does not have yet.
pub(in super::super) fn annotate(schema: Value, keyword: &str, value: Value) -> Value {
    match schema {
        Value::Bool(true) => Value::Object(Map::from_iter([(keyword.to_owned(), value)])),
        Value::Object(mut fields) => {
            fields.entry(keyword).or_insert(value);
            Value::Object(fields)
        }
        other => other,
    }
}

/// What the comment of a property adds to its schema.
pub(super) fn document(schema: Value, doc: &Doc) -> Value {
    let mut schema = schema;
    let words = doc.property_words();
    if !words.is_empty() {
        schema = annotate(schema, "description", Value::String(words));
    }
    for tag in &doc.tags {
        let text = tag.text.trim();
        let value = match tag.name.as_str() {
            "default" | "defaultvalue" | "defaultValue" => stated(text),
            "minimum" | "maximum" => text.parse().ok().and_then(number),
            "minLength" | "maxLength" | "minItems" | "maxItems" => text.parse::<u32>().ok().map(Value::from),
            "deprecated" => Some(Value::Bool(true)),
            _ => None,
        };
        if let Some(value) = value {
            let keyword = if tag.name.starts_with("default") { "default" } else { &tag.name };
            schema = annotate(schema, keyword, value);
        }
    }
    schema
}

/// A value that a comment writes down: JSON, or a string in quotes of any kind.
pub(in super::super) fn stated(text: &str) -> Option<Value> {
    // A default longer than this is not a value but an explanation.
    const MAX_BYTES: usize = 200;
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    let quoted = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    if let Some(inner) = quoted('\'').or_else(|| quoted('`')) {
        // Code in backticks is a value like any other.
        return if text.starts_with('`') { stated(inner) } else { Some(Value::String(inner.to_owned())) };
    }
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Number(value)) => value.as_f64().and_then(number),
        Ok(value) => Some(value),
        Err(_) if text.contains(char::is_whitespace) => None,
        Err(_) => Some(Value::String(text.to_owned())),
    }
}
