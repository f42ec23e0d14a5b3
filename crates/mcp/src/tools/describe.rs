//! `describe`: how tools are called.

use serde_json::{Map, Value, json};
use tgp_contract::{Code, ToolError};
use tgp_text::did_you_mean;

use super::indexed_tools;
use crate::arguments::{DescribeArgs, MAX_DESCRIBED};
use crate::client::Caller;
use crate::options::{is_forged, tool_name, tool_path};

pub(super) async fn describe(caller: &Caller, arguments: &DescribeArgs) -> Result<Value, ToolError> {
    if arguments.tools.is_empty() || arguments.tools.len() > MAX_DESCRIBED {
        let message = format!("`tools` has 1 to {MAX_DESCRIBED} names");
        return Err(ToolError::new(Code::Validation, message).help("describe fewer tools at a time"));
    }
    let needs_index = arguments.tools.iter().any(|name| kernel_tool(caller, name).is_none());
    let index = if needs_index { indexed_tools(caller).await? } else { Vec::new() };
    let mut described = Vec::new();
    for name in &arguments.tools {
        if let Some(known) = kernel_tool(caller, name) {
            described.push(known);
            continue;
        }
        let mut tool = forged_tool(&index, name)?;
        if arguments.source {
            let path = tool.get("path").cloned().unwrap_or_default();
            let source = caller.ask("read_file", json!({ "path": path })).await?;
            tool.insert("source".to_owned(), source);
        }
        described.push(Value::Object(tool));
    }
    Ok(json!({ "tools": described }))
}

fn kernel_tool(caller: &Caller, name: &str) -> Option<Value> {
    let shared = caller.shared();
    let definition = shared.kernel.definitions().find(|definition| definition.name.as_str() == name)?;
    let described = json!({
        "tool": definition.name,
        "effect": definition.effect.as_str(),
        "description": definition.description,
        "parameters": definition.input_schema,
        "result": shared.kernel.output_schema(name),
        "dry_run": definition.dry_run,
    });
    shared.is_allowed(name).then_some(described)
}

/// What the index says of a forged tool.
fn forged_tool(index: &[Value], name: &str) -> Result<Map<String, Value>, ToolError> {
    let found = find(index, name)?;
    let fields = ["path", "description", "signature", "parameters", "result", "imports", "problem"];
    let known = fields.iter().filter_map(|field| Some(((*field).to_owned(), found.get(field)?.clone())));
    let path = found.get("path").and_then(Value::as_str).unwrap_or_default();
    Ok([("tool".to_owned(), json!(tool_name(path)))].into_iter().chain(known).collect())
}

/// The tool with this path, or the only one with this name.
///
/// # Errors
/// `ENOTFOUND`, or `EVALIDATION` for a name that several tools have.
pub(super) fn find<'i>(index: &'i [Value], name: &str) -> Result<&'i Value, ToolError> {
    let text = |tool: &'i Value, field: &str| tool.get(field).and_then(Value::as_str).unwrap_or_default();
    let path = tool_path(name);
    if let Some(tool) = index.iter().find(|tool| text(tool, "path") == path) {
        return Ok(tool);
    }
    let same: Vec<&Value> =
        index.iter().filter(|tool| !is_forged(name) && text(tool, "name") == name).collect();
    match same.as_slice() {
        [tool] => Ok(tool),
        [] => {
            let names = index.iter().map(|tool| tool_name(text(tool, "path")));
            let help = did_you_mean(name, names).unwrap_or_else(|| "find tools with `search`".to_owned());
            Err(ToolError::new(Code::NotFound, format!("unknown tool `{name}`")).help(help))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|tool| tool_name(text(tool, "path"))).collect();
            Err(ToolError::new(Code::Validation, format!("{} tools are called `{name}`", names.len()))
                .help(format!("use one of: {}", names.join(", "))))
        }
    }
}
