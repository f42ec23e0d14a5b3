//! `search`: forged tools by meaning, kernel tools by words.

use serde_json::{Value, json};
use tgp_contract::{Code, ToolError};
use tgp_text::truncate;

use crate::arguments::{MAX_RESULTS, SearchArgs};
use crate::client::Caller;
use crate::options::tool_name;

/// Characters of a description in a list of results.
const MAX_DESCRIPTION: usize = 200;
/// Words shorter than this match too much.
const MIN_WORD: usize = 3;

/// The index of the forged tools.
const INDEX: &str = "meta.json";

pub(super) async fn search(caller: &Caller, arguments: &SearchArgs) -> Result<Value, ToolError> {
    let limit = arguments.limit.clamp(1, MAX_RESULTS);
    let found = caller.ask("search", json!({ "query": arguments.query, "limit": limit })).await?;
    let forged: Vec<Value> = list(&found, "results").iter().map(shown).collect();
    let mut answer = json!({ "verdict": found.get("verdict"), "tools": forged });
    let kernel = kernel_tools(caller, &arguments.query, limit);
    if let Some(fields) = answer.as_object_mut() {
        if !kernel.is_empty() {
            fields.insert("kernel_tools".to_owned(), Value::Array(kernel));
        }
        if let Some(warnings) = found.get("warnings") {
            fields.insert("warnings".to_owned(), warnings.clone());
        }
    }
    Ok(answer)
}

/// A forged tool with the name by which it is run.
fn shown(hit: &Value) -> Value {
    let text = |name: &str| hit.get(name).and_then(Value::as_str).unwrap_or_default();
    json!({
        "tool": tool_name(text("path")),
        "score": hit.get("score"),
        "verdict": hit.get("verdict"),
        "description": truncate(text("description"), MAX_DESCRIPTION),
        "signature": text("signature"),
    })
}

/// The kernel tools of this connection that the words of a query name, most words first.
fn kernel_tools(caller: &Caller, query: &str, limit: usize) -> Vec<Value> {
    let words: Vec<String> = query
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.chars().count() >= MIN_WORD)
        .map(str::to_lowercase)
        .collect();
    let shared = caller.shared();
    let mut found: Vec<(usize, Value)> = shared
        .kernel
        .definitions()
        .filter(|definition| shared.is_allowed(definition.name.as_str()))
        .filter_map(|definition| {
            let text = format!("{} {}", definition.name, definition.description).to_lowercase();
            let score = words.iter().filter(|word| text.contains(word.as_str())).count();
            let shown = json!({
                "tool": definition.name,
                "effect": definition.effect.as_str(),
                "description": truncate(&definition.description, MAX_DESCRIPTION),
            });
            (score > 0).then_some((score, shown))
        })
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(limit).map(|(_, shown)| shown).collect()
}

/// What is known of the forged tools that this connection may see.
///
/// # Errors
/// When the index cannot be read. A repository without tools has none.
pub(crate) async fn indexed_tools(caller: &Caller) -> Result<Vec<Value>, ToolError> {
    let text = match caller.ask("read_file", json!({ "path": INDEX })).await {
        Ok(text) => text,
        Err(error) if error.code == Code::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let index: Value = text.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Ok(list(&index, "tools").to_vec())
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
