//! A JSON Schema as a TypeScript type.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Levels of a type; what is deeper is `unknown`. Schemas that refer to themselves end here, too.
const MAX_DEPTH: usize = 8;
/// Characters of one type; a longer one is `unknown`, so that a schema cannot flood a prompt.
const MAX_TYPE_CHARS: usize = 8 * 1024;
/// Alternatives and fields that are written out.
const MAX_MEMBERS: usize = 100;
/// What is said where nothing better is known.
pub(crate) const UNKNOWN: &str = "unknown";

/// The type of values that fit a schema. What cannot be said in TypeScript is wider, never narrower.
pub(crate) fn type_of(schema: &Value) -> String {
    let mut writer = Writer { root: schema, left: MAX_TYPE_CHARS };
    writer.any(schema, 0).unwrap_or_else(|| UNKNOWN.to_owned())
}

struct Writer<'a> {
    root: &'a Value,
    /// Characters that may still be written.
    left: usize,
}

impl<'a> Writer<'a> {
    /// `None` when the room is used up.
    fn any(&mut self, schema: &'a Value, depth: usize) -> Option<String> {
        let text = match schema {
            Value::Bool(true) => UNKNOWN.to_owned(),
            Value::Bool(false) => "never".to_owned(),
            Value::Object(fields) if depth < MAX_DEPTH => self.object_schema(fields, depth)?,
            _ => UNKNOWN.to_owned(),
        };
        self.left = self.left.checked_sub(text.len())?;
        Some(text)
    }

    fn object_schema(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Option<String> {
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            return match self.target(reference) {
                Some(target) => self.any(target, depth + 1),
                None => Some(UNKNOWN.to_owned()),
            };
        }
        if let Some(value) = fields.get("const") {
            return Some(literal(value));
        }
        if let Some(values) = fields.get("enum").and_then(Value::as_array) {
            return Some(union(values.iter().take(MAX_MEMBERS).map(literal).collect(), values.len()));
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(parts) = fields.get(name).and_then(Value::as_array).filter(|parts| !parts.is_empty())
            {
                let types = self.each(parts, depth)?;
                return Some(union(types, parts.len()));
            }
        }
        if let Some(parts) = fields.get("allOf").and_then(Value::as_array).filter(|parts| !parts.is_empty()) {
            let mut types = self.each(parts, depth)?;
            if fields.contains_key("properties") {
                types.push(self.object(fields, depth)?);
            }
            types.retain(|part| part != UNKNOWN);
            return Some(if types.is_empty() { UNKNOWN.to_owned() } else { joined(&types, " & ") });
        }
        match fields.get("type") {
            Some(Value::String(kind)) => self.kind(kind, fields, depth),
            Some(Value::Array(kinds)) => {
                let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).take(MAX_MEMBERS).collect();
                let types =
                    kinds.iter().map(|kind| self.kind(kind, fields, depth)).collect::<Option<Vec<_>>>()?;
                Some(union(types, kinds.len()))
            }
            _ if fields.contains_key("properties") => self.object(fields, depth),
            _ => Some(UNKNOWN.to_owned()),
        }
    }

    fn each(&mut self, parts: &'a [Value], depth: usize) -> Option<Vec<String>> {
        parts.iter().take(MAX_MEMBERS).map(|part| self.any(part, depth + 1)).collect()
    }

    fn kind(&mut self, kind: &str, fields: &'a Map<String, Value>, depth: usize) -> Option<String> {
        Some(match kind {
            "string" => "string".to_owned(),
            "number" | "integer" => "number".to_owned(),
            "boolean" => "boolean".to_owned(),
            "null" => "null".to_owned(),
            "array" => self.array(fields, depth)?,
            "object" => self.object(fields, depth)?,
            _ => UNKNOWN.to_owned(),
        })
    }

    fn array(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Option<String> {
        if let Some(parts) = fields.get("prefixItems").and_then(Value::as_array) {
            // Items may be left out, and others may follow.
            let mut types: Vec<String> =
                self.each(parts, depth)?.into_iter().map(|item| format!("({item})?")).collect();
            let rest = match fields.get("items") {
                Some(Value::Bool(false)) => None,
                Some(items) => Some(self.any(items, depth + 1)?),
                None => Some(UNKNOWN.to_owned()),
            };
            types.extend(rest.map(|rest| format!("...({rest})[]")));
            return Some(format!("[{}]", types.join(", ")));
        }
        let items = match fields.get("items") {
            Some(items) => self.any(items, depth + 1)?,
            None => UNKNOWN.to_owned(),
        };
        Some(if is_word(&items) { format!("{items}[]") } else { format!("({items})[]") })
    }

    fn object(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Option<String> {
        let required: Vec<&str> = fields
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = fields.get("properties").and_then(Value::as_object);
        let mut members = Vec::new();
        for (name, schema) in properties.into_iter().flatten().take(MAX_MEMBERS) {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            members.push(format!("{}{mark}: {}", property(name), self.any(schema, depth + 1)?));
        }
        let is_cut = properties.is_some_and(|properties| properties.len() > MAX_MEMBERS);
        let others = match fields.get("additionalProperties") {
            Some(Value::Bool(false)) if !is_cut => None,
            // Beside named fields only the widest type holds for all of them.
            Some(schema @ Value::Object(_)) if members.is_empty() => Some(self.any(schema, depth + 1)?),
            Some(_) => Some(UNKNOWN.to_owned()),
            None if members.is_empty() || is_cut => Some(UNKNOWN.to_owned()),
            None => None,
        };
        members.extend(others.map(|others| format!("[name: string]: {others}")));
        Some(if members.is_empty() {
            "Record<string, never>".to_owned()
        } else {
            format!("{{ {} }}", members.join("; "))
        })
    }

    /// What a reference inside the schema leads to.
    fn target(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }
}

fn union(mut types: Vec<String>, all: usize) -> String {
    // What is left out could be anything.
    if all > types.len() || types.iter().any(|part| part == UNKNOWN) {
        return UNKNOWN.to_owned();
    }
    let mut seen = Vec::new();
    types.retain(|part| {
        let is_new = !seen.contains(part);
        seen.push(part.clone());
        is_new
    });
    if types.is_empty() { "never".to_owned() } else { joined(&types, " | ") }
}

fn joined(types: &[String], sign: &str) -> String {
    match types {
        [one] => one.clone(),
        _ => types
            .iter()
            .map(|part| if is_word(part) { part.clone() } else { format!("({part})") })
            .collect::<Vec<_>>()
            .join(sign),
    }
}

/// Whether a type is one word, or one pair of braces, so that it needs no brackets.
fn is_word(text: &str) -> bool {
    is_literal(text)
        || !text.contains([' ', '|', '&'])
        || (text.starts_with("{ ") && text.find('}') == Some(text.len() - 1))
}

/// Whether a type is one text between its quotes.
fn is_literal(text: &str) -> bool {
    let inner = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    inner.is_some_and(|inner| !inner.replace("\\\\", "").replace("\\'", "").contains('\''))
}

/// A value as a type. Numbers that JavaScript cannot hold, and structures, are wider.
fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Bool(_) | Value::Null => value.to_string(),
        Value::Number(number) if number.as_f64().is_some_and(f64::is_finite) => number.to_string(),
        Value::Number(_) => "number".to_owned(),
        Value::Array(_) | Value::Object(_) => UNKNOWN.to_owned(),
    }
}

/// The name of a field.
fn property(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
    let is_name = !name.is_empty()
        && name.chars().all(is_plain)
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_name { name.to_owned() } else { quoted(name) }
}

/// A text as a literal of TypeScript, in ASCII: nothing in it can end the literal or deceive a reader.
fn quoted(text: &str) -> String {
    let mut literal = String::from("'");
    for letter in text.chars() {
        match letter {
            '\'' | '\\' => {
                literal.push('\\');
                literal.push(letter);
            }
            ' '..='~' => literal.push(letter),
            _ => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(literal, "\\u{unit:04x}");
                }
            }
        }
    }
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{MAX_TYPE_CHARS, type_of};

    #[test]
    fn schemas_become_types() {
        for (schema, expected) in [
            (json!(true), "unknown"),
            (json!(false), "never"),
            (json!({}), "unknown"),
            (json!({ "type": "string" }), "string"),
            (json!({ "type": "integer", "minimum": 1 }), "number"),
            (json!({ "type": ["string", "null"] }), "string | null"),
            (json!({ "enum": ["a", "it's", 1, null] }), "'a' | 'it\\'s' | 1 | null"),
            (json!({ "const": "\u{202e}x*/" }), "'\\u202ex*/'"),
            (json!({ "enum": ["New York", "it's | 'x'"] }), "'New York' | 'it\\'s | \\'x\\''"),
            (json!({ "type": "array" }), "unknown[]"),
            (json!({ "type": "array", "items": { "type": "string" } }), "string[]"),
            (json!({ "type": "array", "items": { "enum": ["a", "b"] } }), "('a' | 'b')[]"),
            (
                json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false }),
                "[(string)?]",
            ),
            (json!({ "type": "object" }), "{ [name: string]: unknown }"),
            (json!({ "type": "object", "additionalProperties": false }), "Record<string, never>"),
            (
                json!({ "type": "object", "additionalProperties": { "type": "number" } }),
                "{ [name: string]: number }",
            ),
            (
                json!({ "type": "object", "required": ["title"], "properties": { "title": { "type": "string" }, "due-date": { "type": "string" } } }),
                "{ title: string; 'due-date'?: string }",
            ),
            (json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }), "string | number"),
            (json!({ "oneOf": [{ "type": "string" }, {}] }), "unknown"),
            (json!({ "allOf": [{ "properties": { "a": { "type": "string" } } }, {}] }), "{ a?: string }"),
            (
                json!({ "$defs": { "user": { "type": "object", "properties": { "name": { "type": "string" } } } }, "$ref": "#/$defs/user" }),
                "{ name?: string }",
            ),
            (json!({ "$ref": "https://elsewhere.example/schema" }), "unknown"),
            (json!({ "type": "frob" }), "unknown"),
        ] {
            assert_eq!(type_of(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_or_floods_ends() {
        let list = json!({ "$defs": { "list": { "type": "object", "properties": { "next": { "$ref": "#/$defs/list" } } } }, "$ref": "#/$defs/list" });
        let shown = type_of(&list);
        assert!(shown.starts_with("{ next?: { next?:") && shown.contains("unknown"), "{shown}");
        let circle = json!({ "$ref": "#" });
        assert_eq!(type_of(&circle), "unknown");
        let mut bomb = json!({ "type": "string" });
        for _ in 0..7 {
            bomb = json!({ "anyOf": [bomb.clone(), { "type": "array", "items": bomb.clone() }, { "type": "object", "properties": { "a": bomb.clone(), "b": bomb } }] });
        }
        assert!(type_of(&bomb).len() <= MAX_TYPE_CHARS);
        let many: Vec<String> = (0..1_000).map(|number| format!("value {number}")).collect();
        assert_eq!(type_of(&json!({ "enum": many })), "unknown");
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            "[ -~]{0,8}".prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            prop_oneof![Just("string"), Just("object"), Just("array"), Just("frob")]
                .prop_map(|kind| json!({ "type": kind })),
        ];
        leaf.prop_recursive(4, 40, 4, |inner| {
            let keys = prop_oneof![
                Just("type"),
                Just("properties"),
                Just("items"),
                Just("anyOf"),
                Just("allOf"),
                Just("enum"),
                Just("$ref"),
                Just("prefixItems"),
                Just("required"),
                Just("additionalProperties")
            ];
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((keys, inner), 0..4).prop_map(|fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_server_sends_becomes_a_short_type_in_ascii(schema in any_schema()) {
            let shown = type_of(&schema);
            prop_assert!(shown.is_ascii() && !shown.contains('\n') && shown.len() <= MAX_TYPE_CHARS + 16, "{}", shown);
        }
    }
}
