//! The kernel functions a running tool can call.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex as BlockingMutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{Actor, CallContext, Code, RelativePath, ToolCall, ToolError, background};
use tgp_sandbox::{Bridge, RunLimits};
use tokio::sync::{Mutex, Semaphore};

use super::limits::RunAllowance;
use super::mounts::Mounts;
use tgp_router::Workspace;
use tgp_router::{Invocation, OuterCall, Router};

/// How many tools one run may have running at a time; those may run one each. Every one is a process with its own
/// heap, so a tool that starts a thousand must not have them all at once.
const PARALLEL_TOOLS: usize = 4;

/// One run's bridge.
pub(super) struct ToolBridge {
    tool: RelativePath,
    mounts: Arc<Mutex<Mounts>>,
    workspace: Workspace,
    context: CallContext,
    call_id: String,
    router: Arc<Router>,
    outer: OuterCall,
    /// How long the call had waited for approvals before it ran.
    waited_before: Duration,
    running: Semaphore,
    allowance: RunAllowance,
    /// The codes this bridge has really answered with.
    answered: BlockingMutex<BTreeSet<Code>>,
}

impl ToolBridge {
    pub(super) fn new(
        tool: RelativePath,
        workspace: Workspace,
        invocation: Invocation<'_>,
        limits: RunLimits,
    ) -> Self {
        let outer = invocation.as_outer();
        Self {
            tool,
            mounts: Arc::new(Mutex::new(Mounts::new(workspace.clone()))),
            workspace,
            context: invocation.context.clone(),
            call_id: invocation.call.id.to_owned(),
            router: Arc::clone(invocation.router),
            waited_before: outer.waited(),
            outer,
            running: Semaphore::new(if invocation.context.depth == 0 { PARALLEL_TOOLS } else { 1 }),
            allowance: RunAllowance::new(limits),
            answered: BlockingMutex::default(),
        }
    }

    /// Whether an error with this code came from the kernel, and was not made up by the tool.
    pub(super) fn has_answered(&self, code: Code) -> bool {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).contains(&code)
    }

    /// A call of another tool, through the router like any other, on this run's view of the files.
    async fn inner_call(&self, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.inner_call_in(&self.workspace, tool, arguments).await
    }

    async fn inner_call_in(
        &self,
        workspace: &Workspace,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, ToolError> {
        let call = ToolCall { id: format!("{}/{tool}", self.call_id), tool: tool.to_owned(), arguments };
        let context = CallContext {
            actor: Actor::Tool(self.tool.clone()),
            // The approval of the outer tool covers what no rule asks about.
            consent: self.context.consent.for_inner_calls(),
            depth: self.context.depth + 1,
            ..self.context.clone()
        };
        Box::pin(self.router.call_in(call, context, workspace, &self.outer)).await.into_result()
    }

    /// Another tool. What it may use is bounded by this run: by all that it has, or by what is left of it where the call
    /// asks for limits.
    async fn exec_tool(
        &self,
        path: String,
        values: Value,
        limits: Option<Value>,
    ) -> Result<Value, ToolError> {
        let asks = limits.is_some();
        let left = if asks { self.allowance.left(self.waited()) } else { self.allowance.whole() };
        let mut workspace = self.workspace.clone();
        workspace.outer_limits = Some(left);
        let mut arguments = json!({ "path": path, "args": values });
        if let (Some(limits), Some(fields)) = (limits, arguments.as_object_mut()) {
            fields.insert("limits".to_owned(), limits);
        }
        let ran = self.inner_call_in(&workspace, "exec_tool", arguments).await;
        if asks {
            let stats = match &ran {
                Ok(data) => data.get("stats"),
                Err(error) => error.details.get("stats"),
            };
            let cpu = stats.and_then(|stats| stats.get("cpu_ms")).and_then(Value::as_f64);
            self.allowance.spend_cpu(cpu.unwrap_or_default());
        }
        Ok(ran?.get("result").cloned().unwrap_or_default())
    }

    /// Work on files, one piece after the other in the order of the calls, and off the threads that serve others.
    async fn on_files(
        &self,
        work: impl FnOnce(&Mounts) -> Result<Value, ToolError> + Send + 'static,
    ) -> Result<Value, ToolError> {
        let mounts = Arc::clone(&self.mounts).lock_owned().await;
        background::run(move || work(&mounts)).await
    }

    async fn answer(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError> {
        let mut arguments = arguments.into_iter();
        match name {
            "read_file" => {
                let path = text(name, "path", arguments.next())?;
                self.on_files(move |mounts| Ok(json!(mounts.read(&path)?))).await
            }
            "write_file" => {
                let path = text(name, "path", arguments.next())?;
                let content = text(name, "content", arguments.next())?;
                self.on_files(move |mounts| mounts.write(&path, &content).map(|()| Value::Null)).await
            }
            "list_files" => {
                let directory = text(name, "dir", arguments.next())?;
                self.on_files(move |mounts| Ok(json!(mounts.list(&directory)?))).await
            }
            "exec_tool" => {
                let path = text(name, "path", arguments.next())?;
                let values = arguments.next().unwrap_or_else(|| json!({}));
                let limits = limits_of(arguments.next())?;
                // It is never closed, so there always is a permit to wait for. Only then the large future is made: a
                // thousand calls may wait.
                let _permit = self.running.acquire().await;
                self.exec_tool(path, values, limits).await
            }
            "fetch" => self.inner_call("fetch", arguments.next().unwrap_or_default()).await,
            "exec_sql" => {
                let sql = text(name, "sql", arguments.next())?;
                let params = arguments.next().unwrap_or_default();
                self.inner_call("exec_sql", json!({ "sql": sql, "params": params })).await
            }
            other => Err(ToolError::new(Code::NotFound, format!("tgp.{other} does not exist"))),
        }
    }
}

#[async_trait]
impl Bridge for ToolBridge {
    async fn call(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError> {
        let result = self.answer(name, arguments).await;
        if let Err(error) = &result {
            self.answered.lock().unwrap_or_else(PoisonError::into_inner).insert(error.code);
        }
        result
    }

    fn waited(&self) -> Duration {
        self.outer.waited().saturating_sub(self.waited_before)
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

/// The limits among the options of `tgp.exec_tool`. The schema of the call checks their values.
fn limits_of(options: Option<Value>) -> Result<Option<Value>, ToolError> {
    let Some(mut options) = options.filter(|options| !options.is_null()) else { return Ok(None) };
    let limits = options.as_object_mut().and_then(|fields| fields.remove("limits"));
    if options.as_object().is_none_or(|fields| !fields.is_empty()) {
        let message = format!("tgp.exec_tool takes `{{ limits }}` as its third argument, not {options}");
        return Err(ToolError::new(Code::Validation, message)
            .help("write `tgp.exec_tool(path, args, { limits: { cpuMs: 5000 } })`"));
    }
    Ok(limits.filter(|limits| !limits.is_null()))
}

/// For code that may call nothing, such as configuration files; it says when.
pub(super) struct NoBridge(pub(super) &'static str);

#[async_trait]
impl Bridge for NoBridge {
    async fn call(&self, name: &str, _arguments: Vec<Value>) -> Result<Value, ToolError> {
        Err(ToolError::new(Code::Permission, format!("tgp.{name} is not there while {}", self.0)))
    }
}
