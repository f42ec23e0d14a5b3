//! `run`: a program, a forged tool or a kernel tool.

use serde_json::{Value, json};
use tgp_contract::{Code, LimitRequest, ToolError, ToolResult};
use tgp_text::did_you_mean;

use super::describe::find;
use super::indexed_tools;
use crate::arguments::RunArgs;
use crate::client::{Caller, Effects};
use crate::options::{is_forged, tool_path};

pub(super) async fn run(caller: &Caller, arguments: RunArgs) -> ToolResult {
    let RunArgs { tool, code, args, dry_run, limits } = arguments;
    let effects = Effects::of(dry_run);
    match (tool, code) {
        (None, Some(code)) => {
            let call = with_limits(json!({ "code": code, "args": object_or(args) }), limits);
            caller.call("exec_code", call, effects).await
        }
        (Some(tool), None) => run_tool(caller, &tool, args, limits, effects).await,
        _ => ToolResult::Failed(
            ToolError::new(Code::Validation, "give either `code` or `tool`")
                .help("`code` is a TypeScript program, `tool` the name of a tool"),
        ),
    }
}

/// Runs a tool by its name. The path is tried first, so that most runs are one call.
pub(super) async fn run_tool(
    caller: &Caller,
    tool: &str,
    args: Value,
    limits: Option<LimitRequest>,
    effects: Effects,
) -> ToolResult {
    let shared = caller.shared();
    let is_kernel = !is_forged(tool) && shared.kernel.definitions().any(|known| known.name.as_str() == tool);
    if is_kernel {
        if limits.is_some() {
            let error = ToolError::new(Code::Validation, "`limits` are for programs and forged tools");
            return ToolResult::Failed(
                error.help("leave `limits` out, or pass the tool's own arguments in `args`"),
            );
        }
        return caller.call(tool, object_or(args), effects).await;
    }
    let exec = async |path: &str| {
        let call = with_limits(json!({ "path": path, "args": object_or(args.clone()) }), limits);
        caller.call("exec_tool", call, effects).await
    };
    let path = tool_path(tool);
    let result = exec(&path).await;
    let is_missing = result.error().is_some_and(|error| error.code == Code::NotFound);
    if !is_missing || is_forged(tool) {
        return result;
    }
    let known_names = || shared.kernel.definitions().map(|known| known.name.as_str());
    // A bare name is looked up in the folders.
    let Ok(index) = indexed_tools(caller).await else { return result };
    match find(&index, tool) {
        Ok(known) => {
            let known = known.get("path").and_then(Value::as_str).unwrap_or_default();
            if known == path { result } else { exec(known).await }
        }
        Err(error) if error.code == Code::Validation => ToolResult::Failed(error),
        Err(_) => match (did_you_mean(tool, known_names()), result) {
            (Some(hint), ToolResult::Failed(error)) => ToolResult::Failed(error.help(hint)),
            (_, result) => result,
        },
    }
}

fn with_limits(mut call: Value, limits: Option<LimitRequest>) -> Value {
    if let (Some(fields), Some(limits)) = (call.as_object_mut(), limits) {
        fields.insert("limits".to_owned(), json!(limits));
    }
    call
}

/// Arguments that were left out are none.
fn object_or(args: Value) -> Value {
    if args.is_null() { json!({}) } else { args }
}
