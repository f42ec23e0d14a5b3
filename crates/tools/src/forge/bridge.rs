//! The kernel functions a running tool can call.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Actor, CallContext, Code, Consent, RelativePath, ToolCall, ToolError};
use tgp_sandbox::{Bridge, FetchClient, FetchRequest};
use tokio::sync::Semaphore;

use crate::Workspace;
use crate::files::Mounts;
use crate::router::{Invocation, Router};

/// How many tools one run may have running at a time; those may run one each. Every one is a process with a heap of
/// its own, so a tool that starts a thousand must not have them all at once.
const PARALLEL_TOOLS: usize = 4;

/// One run's bridge.
pub(super) struct ToolBridge {
    tool: RelativePath,
    mounts: Mounts,
    workspace: Workspace,
    context: CallContext,
    call_id: String,
    router: Arc<Router>,
    fetch: Arc<FetchClient>,
    running: Semaphore,
}

impl ToolBridge {
    pub(super) fn new(
        tool: RelativePath,
        workspace: Workspace,
        invocation: Invocation<'_>,
        fetch: Arc<FetchClient>,
    ) -> Self {
        Self {
            tool,
            mounts: Mounts::new(workspace.clone()),
            workspace,
            context: invocation.context.clone(),
            call_id: invocation.call_id.to_owned(),
            router: Arc::clone(invocation.router),
            fetch,
            running: Semaphore::new(if invocation.context.depth == 0 { PARALLEL_TOOLS } else { 1 }),
        }
    }

    /// Another tool, through the router like any other call, on this run's view of the files.
    async fn exec_tool(&self, path: &str, arguments: Value) -> Result<Value, ToolError> {
        let call = ToolCall {
            id: format!("{}/{}", self.call_id, path),
            tool: "exec_tool".to_owned(),
            arguments: json!({ "path": path, "args": arguments }),
        };
        let context = CallContext {
            actor: Actor::Tool(self.tool.clone()),
            // Whoever agreed to run the outer tool agreed to what it does.
            consent: Consent::Given,
            depth: self.context.depth + 1,
            ..self.context.clone()
        };
        let data = self.router.call_within(call, context, &self.workspace).await.into_result()?;
        Ok(data.get("result").cloned().unwrap_or_default())
    }
}

#[async_trait]
impl Bridge for ToolBridge {
    async fn call(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError> {
        let mut arguments = arguments.into_iter();
        match name {
            "read_file" => Ok(json!(self.mounts.read(&text(name, "path", arguments.next())?)?)),
            "write_file" => {
                let path = text(name, "path", arguments.next())?;
                let content = text(name, "content", arguments.next())?;
                self.mounts.write(&path, &content)?;
                Ok(Value::Null)
            }
            "list_files" => Ok(json!(self.mounts.list(&text(name, "dir", arguments.next())?)?)),
            "exec_tool" => {
                let path = text(name, "path", arguments.next())?;
                let values = arguments.next().unwrap_or_else(|| json!({}));
                // It is never closed, so there always is a permit to wait for. Only then the large future is made: a
                // thousand calls may wait.
                let _permit = self.running.acquire().await;
                Box::pin(self.exec_tool(&path, values)).await
            }
            "fetch" => {
                let request = FetchRequest::from_json(arguments.next().unwrap_or_default())?;
                if self.context.dry_run && !["GET", "HEAD"].contains(&request.method.as_str()) {
                    return Err(ToolError::new(
                        Code::Permission,
                        format!("a dry run changes nothing, so it sends no {} request", request.method),
                    ));
                }
                let response = Box::pin(self.fetch.fetch(request)).await?;
                serde_json::to_value(response)
                    .map_err(|error| ToolError::new(Code::Internal, error.to_string()))
            }
            "exec_sql" => Err(ToolError::new(Code::Sql, "no database is configured")
                .help("this kernel has no database; pass the rows as arguments")),
            other => Err(ToolError::new(Code::NotFound, format!("tgp.{other} does not exist"))),
        }
    }
}

fn text(function: &str, name: &str, value: Option<Value>) -> Result<String, ToolError> {
    match value {
        Some(Value::String(text)) => Ok(text),
        other => {
            let got = match other {
                None | Some(Value::Null) => "nothing".to_owned(),
                Some(value) => value.to_string(),
            };
            Err(ToolError::new(
                Code::Validation,
                format!("tgp.{function} takes a string as `{name}`, not {got}"),
            ))
        }
    }
}

/// For code that may call nothing: configuration files.
pub(super) struct NoBridge;

#[async_trait]
impl Bridge for NoBridge {
    async fn call(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, ToolError> {
        Err(ToolError::new(
            Code::Permission,
            format!("tgp.{name} is not there while a configuration is read"),
        ))
    }
}
