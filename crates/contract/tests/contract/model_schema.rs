//! A model sees the names, types and descriptions of arguments, without the checks that the kernel makes anyway.

use serde_json::{Value, json};
use tgp_contract::{Effect, ExecutionPath, ModelTool, ToolDefinition, ToolName};

fn seen_by_a_model(input_schema: Value) -> Value {
    let definition = ToolDefinition {
        name: ToolName::new("search_grep").unwrap(),
        aliases: Vec::new(),
        description: "Search.".to_owned(),
        input_schema,
        effect: Effect::Read,
        path: ExecutionPath::Fast,
        dry_run: false,
    };
    ModelTool::from(&definition).input_schema
}

#[test]
fn checks_are_left_out_and_arguments_with_their_names_stay() {
    let schema = json!({
        "$schema": "x", "type": "object", "additionalProperties": false, "required": ["pattern"],
        "properties": {
            "pattern": { "type": "string", "description": "A regular expression.", "minLength": 1, "pattern": "^a" },
            "format": { "type": "string", "format": "uri", "enum": ["minLength", "pattern"] },
            "limit": { "type": "integer", "default": 200, "minimum": 1, "maximum": 2000 },
            "offset": { "type": "integer", "default": 0, "minimum": 0 },
            "literal": { "type": "boolean", "default": false },
            "headers": { "type": "object", "additionalProperties": { "type": "string", "maxLength": 9 } },
            "choice": { "anyOf": [{ "type": "array", "items": { "type": "string", "minLength": 1 }, "maxItems": 2 }] },
        },
    });
    let expected = json!({
        "type": "object", "required": ["pattern"],
        "properties": {
            "pattern": { "type": "string", "description": "A regular expression." },
            "format": { "type": "string", "enum": ["minLength", "pattern"] },
            "limit": { "type": "integer", "default": 200, "maximum": 2000 },
            "offset": { "type": "integer" },
            "literal": { "type": "boolean" },
            "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            "choice": { "anyOf": [{ "type": "array", "items": { "type": "string" } }] },
        },
    });
    assert_eq!(seen_by_a_model(schema), expected);
}

#[test]
fn a_schema_of_any_depth_has_an_end() {
    let mut schema = json!({ "minLength": 1 });
    for _ in 0..100 {
        schema = json!({ "type": "array", "items": schema });
    }
    assert_eq!(seen_by_a_model(schema)["type"], "array");
}
