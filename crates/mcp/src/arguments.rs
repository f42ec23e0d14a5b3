//! The arguments of the server's tools, and their JSON Schemas. The schemas are written by hand: every token of them is
//! paid in every conversation of a host. A test compares them with the types.

use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tgp_contract::{Code, LimitRequest, ToolError};

/// Results of a search where the host does not say how many.
const DEFAULT_RESULTS: usize = 5;
/// Results of one search.
pub(crate) const MAX_RESULTS: usize = 20;
/// Tools that one `describe` describes.
pub(crate) const MAX_DESCRIBED: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchArgs {
    pub(crate) query: String,
    #[serde(default = "default_results")]
    pub(crate) limit: usize,
}

fn default_results() -> usize {
    DEFAULT_RESULTS
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DescribeArgs {
    pub(crate) tools: Vec<String>,
    #[serde(default)]
    pub(crate) source: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunArgs {
    #[serde(default)]
    pub(crate) tool: Option<String>,
    #[serde(default)]
    pub(crate) code: Option<String>,
    #[serde(default)]
    pub(crate) args: Value,
    #[serde(default)]
    pub(crate) dry_run: bool,
    #[serde(default)]
    pub(crate) limits: Option<LimitRequest>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgeArgs {
    pub(crate) name: String,
    pub(crate) test: String,
    pub(crate) source: String,
    #[serde(default)]
    pub(crate) override_similar: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitArgs {
    #[serde(default)]
    pub(crate) run: Option<String>,
    #[serde(default)]
    pub(crate) cancel: bool,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalArgs {
    #[serde(default)]
    pub(crate) id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphArgs {
    pub(crate) query: String,
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
    #[serde(default)]
    pub(crate) commit: Option<String>,
}

/// Reads the arguments of a tool.
///
/// # Errors
/// `EVALIDATION` with what is wrong.
pub(crate) fn parse<T: DeserializeOwned>(tool: &str, arguments: Option<JsonObject>) -> Result<T, ToolError> {
    serde_json::from_value(Value::Object(arguments.unwrap_or_default())).map_err(|error| {
        ToolError::new(Code::Validation, format!("the arguments of `{tool}` do not fit: {error}"))
            .detail("tool", tool)
            .help("the tool's schema lists the arguments and their types")
    })
}

fn object(properties: Value, required: &[&str]) -> JsonObject {
    let mut schema = JsonObject::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), properties);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

pub(crate) fn search_schema() -> JsonObject {
    object(
        json!({
            "query": { "type": "string", "description": "What the tool should do, such as `convert a CSV file to JSON`." },
            "limit": { "type": "integer", "minimum": 1, "maximum": MAX_RESULTS },
        }),
        &["query"],
    )
}

pub(crate) fn describe_schema() -> JsonObject {
    object(
        json!({
            "tools": {
                "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": MAX_DESCRIBED,
                "description": "Names, such as `math/fib` or `exec_sql`.",
            },
            "source": { "type": "boolean", "description": "With the TypeScript source." },
        }),
        &["tools"],
    )
}

/// The limits of a run, as `exec_tool` has them.
fn limits() -> Value {
    json!({
        "type": "object",
        "description": "Limits of this run in place of the default ones; higher ones need approval.",
        "properties": {
            "cpuMs": { "type": "integer" }, "wallMs": { "type": "integer" }, "memoryMb": { "type": "integer" },
        },
        "additionalProperties": false,
    })
}

pub(crate) fn run_schema() -> JsonObject {
    object(
        json!({
            "code": { "type": "string", "description": "A TypeScript program: a script that ends in `return`, or a module with a default function. Give either `code` or `tool`." },
            "tool": { "type": "string", "description": "A tool to run, such as `math/fib` or `exec_sql`." },
            "args": { "description": "The arguments of the tool, or `args` of the program." },
            "dry_run": { "type": "boolean", "description": "Show what would change, and undo it." },
            "limits": limits(),
        }),
        &[],
    )
}

pub(crate) fn invoke_schema() -> JsonObject {
    object(
        json!({
            "tool": { "type": "string", "description": "Such as `math/fib` or `exec_sql`." },
            "args": { "description": "The arguments of the tool." },
            "dry_run": { "type": "boolean", "description": "Show what would change, and undo it." },
            "limits": limits(),
        }),
        &["tool"],
    )
}

pub(crate) fn forge_schema() -> JsonObject {
    object(
        json!({
            "name": { "type": "string", "description": "Such as `math/fib`." },
            "test": { "type": "string", "description": "The whole test: `test` and `expect` of `@tgp/test`, with `import fib from './fib.ts'`." },
            "source": { "type": "string", "description": "The whole tool: a default-exported function with one typed object as its parameter, a typed result and a doc comment." },
            "override_similar": { "type": "array", "items": { "type": "string" }, "description": "The `similar` tools of a refusal, which do something else." },
        }),
        &["name", "test", "source"],
    )
}

pub(crate) fn wait_schema() -> JsonObject {
    object(
        json!({
            "run": { "type": "string", "description": "The `run` of an earlier answer." },
            "cancel": { "type": "boolean", "description": "Cancel the run." },
            "cursor": { "type": "string", "description": "The `cursor` of a long answer, for its next part." },
        }),
        &[],
    )
}

pub(crate) fn approval_schema() -> JsonObject {
    object(json!({ "id": { "type": "string", "description": "One approval; default: all of them." } }), &[])
}

pub(crate) fn graph_schema() -> JsonObject {
    object(
        json!({
            "query": { "type": "string", "description": "Such as MATCH (f:File)-[:IMPORTS]->(:File {path: $path}) RETURN f.path" },
            "params": { "type": "object", "description": "Values for $names in the query." },
            "commit": { "type": "string", "description": "Any revision, or WORKTREE for the files as they are." },
        }),
        &["query"],
    )
}
