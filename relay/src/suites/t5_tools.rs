//! T5: what the command line lets a model do unasked, over every tool that it offers, whatever their names are.

use serde_json::{Map, Value, json};
use tgp_contract::{Effect, ToolDefinition};

use crate::fault::{Fault, holds};
use crate::program::run;
use crate::world::World;

/// A forged tool that is there, and can be changed.
pub(super) const FORGED: &str = "tools/relay.ts";
/// Schemas inside of each other.
const MAX_DEPTH: usize = 16;
/// Items of a list.
const MAX_ITEMS: u64 = 4;

/// Every tool that the command line offers.
pub(super) async fn offered(world: &World) -> Result<Vec<ToolDefinition>, Fault> {
    let ran = run(world, &["tools", "--format", "json"]).await?;
    ran.ended_well("tools")?;
    let list: Vec<Value> = serde_json::from_str(&ran.stdout)
        .map_err(|error| Fault::new("a list of tools as JSON", format!("{error} in `{}`", ran.stdout)))?;
    let tool = |value: &Value| {
        let mut own = value.clone();
        // What a tool answers is beside its definition.
        own.as_object_mut().map(|fields| fields.remove("output_schema"));
        serde_json::from_value::<ToolDefinition>(own)
            .map_err(|error| Fault::new("the definition of a tool", format!("{error} in {value}")))
    };
    let tools: Vec<ToolDefinition> = list.iter().map(tool).collect::<Result<_, _>>()?;
    for effect in [Effect::Read, Effect::Write, Effect::Execute] {
        let is_there = tools.iter().any(|tool| tool.effect == effect);
        holds(is_there, format!("a tool of the effect {}", effect.as_str()), tools.len())?;
    }
    Ok(tools)
}

/// Arguments that fit the schema of a tool: what is required, as little of it as can be. Values mean something where
/// their name says what they are, because what cannot be done at all is not asked for.
pub(super) fn fitting(tool: &ToolDefinition, session: &str) -> Value {
    let schema = &tool.input_schema;
    let mut arguments = Filler { root: schema, session }.value("", schema, 0);
    // Required in one of two forms, which no schema of a tool says.
    for name in ["search", "replace"] {
        let property = schema.get("properties").and_then(|all| all.get(name));
        if let (Some(property), Some(fields)) = (property, arguments.as_object_mut()) {
            fields.insert(name.to_owned(), Filler { root: schema, session }.value(name, property, 0));
        }
    }
    arguments
}

struct Filler<'s> {
    root: &'s Value,
    /// A session that has ended.
    session: &'s str,
}

impl Filler<'_> {
    fn required(&self, schema: &Value, depth: usize) -> Value {
        let names = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let property = |name: &str| schema.get("properties").and_then(|all| all.get(name)).cloned();
        let fields = names.iter().filter_map(Value::as_str);
        let fields: Map<String, Value> = fields
            .map(|name| (name.to_owned(), self.value(name, &property(name).unwrap_or_default(), depth + 1)))
            .collect();
        Value::Object(fields)
    }

    fn value(&self, name: &str, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let found = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return found.map_or(Value::Null, |schema| self.value(name, schema, depth + 1));
        }
        let constant = schema.get("const").or(schema.get("enum").and_then(|values| values.get(0)));
        if let Some(constant) = constant {
            return constant.clone();
        }
        let kind = match schema.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
            kind => kind.and_then(Value::as_str),
        };
        match kind {
            Some("string") => json!(self.text(name, schema)),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("boolean") => json!(false),
            Some("array") => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MAX_ITEMS);
                let item = schema.get("items").cloned().unwrap_or_default();
                json!((0..least).map(|_| self.value(name, &item, depth + 1)).collect::<Vec<_>>())
            }
            Some("object") => self.required(schema, depth),
            _ => match schema.get("anyOf").or(schema.get("oneOf")).and_then(|forms| forms.get(0)) {
                Some(form) => self.value(name, form, depth + 1),
                None => json!({}),
            },
        }
    }

    /// A text that means something for a field of this name.
    fn text(&self, name: &str, schema: &Value) -> String {
        let is_about = |part: &str, word: &str| {
            schema.get(part).and_then(Value::as_str).is_some_and(|text| text.contains(word))
        };
        if is_about("pattern", "0-9a-f") {
            return "0".repeat(64);
        }
        match name {
            "path" if is_about("description", "tools/") => FORGED,
            "path" => "notes.md",
            "search" => "42",
            "command" => "rm notes.md",
            "url" => "http://127.0.0.1:9/",
            "sql" => "CREATE TABLE relay (id INTEGER)",
            "query" => "MATCH (f:File) RETURN f.path AS path",
            "code" => "return 1;",
            "timestamp" => "2026-01-01T00:00:00Z",
            "type" => "NOTE",
            "session" => self.session,
            _ => "relay",
        }
        .to_owned()
    }
}
