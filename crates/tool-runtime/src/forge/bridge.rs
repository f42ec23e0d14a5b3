//! The kernel functions a running tool can call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_compiler::ForeignModules;
use tgp_contract::{Actor, CallContext, Code, RelativePath, ToolCall, ToolError, background};
use tgp_sandbox::{Bridge, BridgeAnswer, RunLimits};
use tokio::sync::{Mutex, Semaphore};

use super::answered::{AnsweredErrors, INNER_TOOL};
use super::limits::RunAllowance;
use super::mounts::Mounts;
use super::sql_options::{RowOptions, batch_size, cursor_number, no_database};
use tgp_router::Workspace;
use tgp_router::database::SqlRun;
use tgp_router::{InnerCall, Invocation, OuterCall, Router};

/// How many tools one run may have running at a time; those may run one each. Every one is a process with its own
/// heap, so a tool that starts a thousand must not have them all at once.
const PARALLEL_TOOLS: usize = 4;
/// How many requests one run may have open at a time, and how many the runs inside it: each holds a connection and up to
/// the largest answer in the kernel's memory. The others wait for their turn.
const PARALLEL_REQUESTS: (usize, usize) = (16, 4);

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
    requests: Semaphore,
    allowance: RunAllowance,
    /// Statements are executed in the order of the calls; the gates alone would let one overtake another.
    statements: tokio::sync::Mutex<()>,
    foreign: Option<Arc<dyn ForeignModules>>,
    /// The errors this bridge has really answered with.
    pub(super) answered: AnsweredErrors,
}

impl ToolBridge {
    pub(super) fn new(
        tool: RelativePath,
        workspace: Workspace,
        invocation: Invocation<'_>,
        limits: RunLimits,
        foreign: Option<Arc<dyn ForeignModules>>,
    ) -> Self {
        let outer = invocation.as_outer();
        let around = workspace.cpu_around.clone();
        let (tools, requests) = match invocation.context.depth {
            0 => (PARALLEL_TOOLS, PARALLEL_REQUESTS.0),
            _ => (1, PARALLEL_REQUESTS.1),
        };
        Self {
            tool,
            mounts: Arc::new(Mutex::new(Mounts::new(workspace.clone()))),
            workspace,
            context: invocation.context.clone(),
            call_id: invocation.call.id.to_owned(),
            router: Arc::clone(invocation.router),
            waited_before: outer.waited(),
            outer,
            running: Semaphore::new(tools),
            requests: Semaphore::new(requests),
            allowance: RunAllowance::new(limits, around),
            statements: tokio::sync::Mutex::default(),
            foreign,
            answered: AnsweredErrors::default(),
        }
    }

    /// A call of another tool, through the router like any other, on this run's view of the files.
    async fn inner_call(&self, place: InnerCall, tool: &str, arguments: Value) -> Result<Value, ToolError> {
        self.inner_call_in(place, &self.workspace, tool, arguments).await
    }

    async fn inner_call_in(
        &self,
        place: InnerCall,
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
        Box::pin(self.router.call_in(call, context, workspace, place)).await.into_result()
    }

    /// Another tool. What it may use is bounded by this run: by all that it has, or by what is left of it where the call
    /// asks for limits.
    async fn exec_tool(
        &self,
        place: InnerCall,
        path: String,
        values: Value,
        limits: Option<Value>,
    ) -> Result<Value, ToolError> {
        let asks = limits.is_some();
        let left = if asks { self.allowance.left(self.waited()) } else { self.allowance.whole() };
        let asked = limits.as_ref().and_then(|limits| limits.get("cpuMs")).and_then(Value::as_u64);
        // One that asks for more than is left is refused, and one that names no CPU time has at most what every run has.
        let reserved = asked.filter(|asked| left.cpu_ms.is_some_and(|left| *asked <= left));
        let reserved = Duration::from_millis(reserved.unwrap_or_default());
        let mut workspace = self.workspace.clone();
        workspace.outer_limits = Some(left);
        workspace.cpu_around = self.allowance.counters();
        let mut arguments = json!({ "path": &path, "args": values });
        if let (Some(limits), Some(fields)) = (limits, arguments.as_object_mut()) {
            fields.insert("limits".to_owned(), limits);
        }
        self.allowance.reserve(reserved);
        let ran = self.inner_call_in(place, &workspace, "exec_tool", arguments).await;
        let stats = match &ran {
            Ok(data) => data.get("stats"),
            Err(error) => error.details.get("stats"),
        };
        let used = stats.and_then(|stats| stats.get("cpu_ms")).and_then(Value::as_f64).unwrap_or_default();
        self.allowance.settle(reserved, Duration::from_secs_f64(used.clamp(0.0, 1e9) / 1000.0));
        let ran = ran.map_err(|error| match error.place_of() {
            Some(_) => error.detail(INNER_TOOL, path),
            None => error,
        })?;
        Ok(ran.get("result").cloned().unwrap_or_default())
    }

    /// Work on files, one piece after the other in the order of the calls, and off the threads that serve others.
    async fn on_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Mounts) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let mounts = Arc::clone(&self.mounts).lock_owned().await;
        background::run(move || work(&mounts)).await
    }

    async fn read_file(&self, arguments: Vec<Value>) -> Result<BridgeAnswer, ToolError> {
        let mut arguments = arguments.into_iter();
        let path = text("read_file", "path", arguments.next())?;
        let as_bytes = arguments.next().is_some_and(|form| form == "bytes");
        self.on_files(move |mounts| {
            Ok(if as_bytes {
                BridgeAnswer::Bytes(mounts.read_bytes(&path)?)
            } else {
                BridgeAnswer::Json(json!(mounts.read(&path)?))
            })
        })
        .await
    }

    async fn write_file(&self, arguments: Vec<Value>, bytes: Option<Vec<u8>>) -> Result<Value, ToolError> {
        let mut arguments = arguments.into_iter();
        let path = text("write_file", "path", arguments.next())?;
        let content = match (bytes, arguments.next()) {
            (Some(bytes), _) => bytes,
            (None, Some(Value::String(content))) => content.into_bytes(),
            (None, other) => {
                return Err(wrong("write_file", "text or bytes (a Uint8Array)", "content", other));
            }
        };
        self.on_files(move |mounts| mounts.write(&path, &content).map(|()| Value::Null)).await
    }

    async fn answer(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError> {
        let mut arguments = arguments.into_iter();
        match name {
            "list_files" => {
                let directory = text(name, "dir", arguments.next())?;
                self.on_files(move |mounts| Ok(json!(mounts.list(&directory)?))).await
            }
            "exec_tool" => {
                let path = text(name, "path", arguments.next())?;
                let values = arguments.next().unwrap_or_else(|| json!({}));
                let limits = limits_of(arguments.next())?;
                let place = self.outer.next_call();
                // It is never closed, so there always is a permit to wait for. Only then the large future is made: a
                // thousand calls may wait.
                let _permit = self.running.acquire().await;
                self.exec_tool(place, path, values, limits).await
            }
            "fetch" => {
                let place = self.outer.next_call();
                let _permit = self.requests.acquire().await;
                self.inner_call(place, "fetch", arguments.next().unwrap_or_default()).await
            }
            "call_upstream" => {
                let server = text(name, "server", arguments.next())?;
                let tool = text(name, "tool", arguments.next())?;
                let values = arguments.next().unwrap_or_else(|| json!({}));
                let place = self.outer.next_call();
                let _permit = self.requests.acquire().await;
                let pin = self.pin(&server, &tool).await;
                let mut arguments = json!({ "server": server, "tool": tool, "arguments": values });
                // Without one the call is refused with the reason.
                if let (Some(pin), Some(fields)) = (pin, arguments.as_object_mut()) {
                    fields.insert("pin".to_owned(), pin.into());
                }
                let answer = self.inner_call(place, "call_upstream", arguments).await?;
                Ok(answer.get("result").cloned().unwrap_or_default())
            }
            "call_host" => {
                let module = text(name, "module", arguments.next())?;
                let function = text(name, "name", arguments.next())?;
                let values = arguments.next().unwrap_or_else(|| json!({}));
                let place = self.outer.next_call();
                let _permit = self.requests.acquire().await;
                let arguments = json!({ "module": module, "name": function, "arguments": values });
                let answer = self.inner_call(place, "call_host", arguments).await?;
                Ok(answer.get("result").cloned().unwrap_or_default())
            }
            "exec_sql" => {
                let sql = text(name, "sql", arguments.next())?;
                let params = arguments.next().unwrap_or_default();
                let options = RowOptions::read(arguments.next())?;
                let place = self.outer.next_call();
                let _turn = self.statements.lock().await;
                let answer =
                    self.inner_call(place, "exec_sql", json!({ "sql": sql, "params": params })).await?;
                options.apply(answer)
            }
            "query" => {
                let sql = text(name, "sql", arguments.next())?;
                let params = arguments.next().unwrap_or_default();
                let rows = batch_size(arguments.next())?;
                let place = self.outer.next_call();
                let _turn = self.statements.lock().await;
                self.query(place, &sql, params, rows).await
            }
            "query_next" => {
                let cursor = cursor_number(arguments.next().as_ref())?;
                let rows = batch_size(arguments.next())?;
                let batch = self.sql_run()?.fetch(cursor, rows).await?;
                Ok(json!({ "rows": batch.rows, "done": !batch.truncated }))
            }
            "query_close" => {
                let cursor = cursor_number(arguments.next().as_ref())?;
                self.sql_run()?.close_cursor(cursor).await.map(|()| Value::Null)
            }
            other => Err(ToolError::new(Code::NotFound, format!("tgp.{other} does not exist"))),
        }
    }

    /// The first batch of a query, as a statement that passes the gates and is recorded. Those after it are parts of it.
    async fn query(
        &self,
        place: InnerCall,
        sql: &str,
        params: Value,
        rows: usize,
    ) -> Result<Value, ToolError> {
        let Some((view, request)) = self.workspace.sql.in_batches(rows) else { return Err(no_database()) };
        let mut workspace = self.workspace.clone();
        workspace.sql = view;
        let arguments = json!({ "sql": sql, "params": params });
        let mut answer = self.inner_call_in(place, &workspace, "exec_sql", arguments).await?;
        let rows = answer.get_mut("rows").map(Value::take).unwrap_or_else(|| json!([]));
        Ok(json!({ "rows": rows, "cursor": request.cursor() }))
    }

    /// The definition that a call of an upstream server is about, for its record.
    async fn pin(&self, server: &str, tool: &str) -> Option<String> {
        let modules = self.foreign.clone()?;
        let (server, tool) = (server.to_owned(), tool.to_owned());
        background::run(move || Ok(modules.pin(&server, &tool))).await.ok().flatten()
    }

    fn sql_run(&self) -> Result<&SqlRun, ToolError> {
        self.workspace.sql.run().ok_or_else(no_database)
    }
}

#[async_trait]
impl Bridge for ToolBridge {
    async fn call(&self, name: &str, arguments: Vec<Value>) -> Result<Value, ToolError> {
        match self.transfer(name, arguments, None).await? {
            BridgeAnswer::Json(value) => Ok(value),
            BridgeAnswer::Bytes(_) => {
                Err(ToolError::new(Code::Internal, format!("tgp.{name} gave bytes instead of JSON")))
            }
        }
    }

    async fn transfer(
        &self,
        name: &str,
        arguments: Vec<Value>,
        bytes: Option<Vec<u8>>,
    ) -> Result<BridgeAnswer, ToolError> {
        let result = match (name, bytes) {
            ("read_file", None) => self.read_file(arguments).await,
            ("write_file", bytes) => self.write_file(arguments, bytes).await.map(BridgeAnswer::Json),
            (_, None) => self.answer(name, arguments).await.map(BridgeAnswer::Json),
            (_, Some(_)) => Err(ToolError::new(Code::Validation, format!("tgp.{name} takes no bytes"))),
        };
        if let Err(error) = &result {
            self.answered.note(error);
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
        other => Err(wrong(function, "a string", name, other)),
    }
}

/// Bytes of a wrong argument that its message shows.
const MAX_SHOWN_ARGUMENT: usize = 200;

fn wrong(function: &str, wanted: &str, name: &str, value: Option<Value>) -> ToolError {
    let got = match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(value) => value.to_string(),
    };
    let got = tgp_text::head(&got, MAX_SHOWN_ARGUMENT);
    ToolError::new(Code::Validation, format!("tgp.{function} takes {wanted} as `{name}`, not {got}"))
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
