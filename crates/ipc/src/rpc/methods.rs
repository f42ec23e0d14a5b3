//! What a client can ask a booted kernel for.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::{Map, Value};
use tgp::Kernel;
use tgp::agent::{AgentEvent, Bounds, ModelChoice, SessionRequest, StopLevel, StopSignal, static_prompt};
use tgp_contract::{
    CallContext, Code, Consent, Effect, ToolCall, ToolDefinition, ToolError, ToolResult, canonical,
};
use tokio::sync::mpsc;

use super::envelope::{number, params};
use super::peer::Peer;
use super::protocol::{
    ClientInfo, HostConsent, InitializeResult, KernelInfo, PROTOCOL_VERSION, PromptGetResult, RequestId,
    RpcError, SessionEvent, SessionRunParams, SessionRunResult, ToolInfo, ToolsCallParams, ToolsCallResult,
    ToolsListResult, method, notification,
};
use super::requests::OpenRequest;

/// Events of a session that the client has not taken yet; the agent waits for room.
const EVENT_ROOM: usize = 64;

/// A kernel for one client.
#[derive(Clone)]
pub(crate) struct Methods {
    pub(crate) kernel: Arc<Kernel>,
    /// What each call of the client carries.
    pub(crate) context: CallContext,
    pub(crate) peer: Peer,
    /// The client has started this kernel: it may have an agent work, and see what no token covers.
    pub(crate) is_host: bool,
}

impl Methods {
    pub(crate) fn welcome(&self, client: &ClientInfo) -> Result<InitializeResult, ToolError> {
        tracing::debug!(target: "kernel", client = client.name.as_str(), "a client has begun");
        Ok(InitializeResult {
            protocol_version: PROTOCOL_VERSION,
            kernel: kernel_info(&self.kernel)?,
            session: self.context.session.clone(),
            project: self.kernel.project().display().to_string(),
            notices: if self.is_host { self.kernel.notices().to_vec() } else { Vec::new() },
        })
    }

    /// Serves one request, and answers it.
    pub(crate) async fn serve(self, mut request: OpenRequest, method: String, value: Value) {
        let answer = match method.as_str() {
            method::TOOLS_LIST => encode(&self.tools()),
            method::TOOLS_CALL => match params(value) {
                Ok(call) => encode(&self.call(&mut request, call).await),
                Err(error) => Err(error),
            },
            method::PROMPT_GET if self.is_host => {
                encode(&PromptGetResult { prompt: self.kernel.system_prompt().await })
            }
            method::SESSION_RUN if self.is_host => match params(value) {
                Ok(task) => self.run_session(&mut request, task).await.map_err(RpcError::from),
                Err(error) => Err(error),
            },
            method::INITIALIZE => Err(RpcError::new(number::INVALID, "`initialize` was sent already")),
            other => Err(unknown_method(other)),
        };
        // A client that has its answer may use the id again.
        let (id, _unanswered) = request.done();
        self.peer.answer(&id, answer).await;
    }

    fn tools(&self) -> ToolsListResult {
        ToolsListResult { tools: self.kernel.definitions().map(tool_info).collect() }
    }

    async fn call(&self, request: &mut OpenRequest, params: ToolsCallParams) -> ToolsCallResult {
        let id = match &request.id {
            RequestId::Number(number) => number.to_string(),
            RequestId::Text(text) => text.clone(),
        };
        let context = CallContext { dry_run: params.dry_run, ..self.context.clone() };
        let may_have_changed = self.may_change(&params);
        let call = ToolCall { id, tool: params.tool, arguments: Value::Object(params.arguments) };
        let result = tokio::select! {
            result = self.kernel.call_with(call, context) => result,
            // Dropping the call cancels it; the audit says so.
            () = request.cancelled() => ToolResult::Failed(cancelled(may_have_changed)),
        };
        match result {
            ToolResult::Done(data) => ToolsCallResult { ok: true, data: Some(data), error: None },
            ToolResult::Failed(error) => {
                ToolsCallResult { ok: false, data: None, error: Some(error.bounded()) }
            }
        }
    }

    /// Whether such a call can have changed something when it is cancelled. A tool that is not known changes nothing.
    fn may_change(&self, call: &ToolsCallParams) -> bool {
        let named = |definition: &&ToolDefinition| {
            definition.name.as_str() == call.tool || definition.aliases.contains(&call.tool)
        };
        let known = self.kernel.definitions().find(named);
        !call.dry_run && known.is_some_and(|definition| definition.effect != Effect::Read)
    }

    /// Has the agent work; its events go to the client as they come.
    async fn run_session(
        &self,
        request: &mut OpenRequest,
        params: SessionRunParams,
    ) -> Result<Value, ToolError> {
        let (sender, mut events) = mpsc::channel::<AgentEvent>(EVENT_ROOM);
        let (handle, stop) = StopSignal::new();
        let id = request.id.clone();
        let wanted = SessionRequest {
            model: ModelChoice { provider: params.provider, model: params.model, ..ModelChoice::default() },
            bounds: Bounds { max_steps: params.max_steps.map(u64::from), ..Bounds::default() },
            // A model makes these calls, so that they are made agrees to nothing.
            consent: consent(params.consent == HostConsent::Effects),
            ..SessionRequest::new(params.task)
        };
        let forward = async {
            while let Some(event) = events.recv().await {
                let event = SessionEvent { request: id.clone(), event: object(&event) };
                self.peer.notify(notification::SESSION_EVENT, &event).await;
            }
        };
        // The session ends by itself then, and says how.
        let cancelled = async {
            request.cancelled().await;
            handle.request(StopLevel::Now);
            std::future::pending::<Infallible>().await
        };
        let work = async { tokio::join!(self.kernel.run_session(wanted, sender, stop), forward).0 };
        let summary = tokio::select! {
            summary = work => summary?,
            never = cancelled => match never {},
        };
        Ok(serde_json::to_value(SessionRunResult { summary: object(&summary) }).unwrap_or_default())
    }
}

/// What a client without an agent's tools is told of an unknown method.
pub(crate) fn unknown_method(name: &str) -> RpcError {
    let name = tgp_text::one_line(name, 64);
    RpcError::new(number::UNKNOWN_METHOD, format!("there is no method `{name}`"))
}

fn cancelled(may_have_changed: bool) -> ToolError {
    let error =
        ToolError::new(Code::Runtime, "the call was cancelled by its client").detail("cancelled", true);
    if !may_have_changed {
        return error;
    }
    // It may have been about to answer.
    error.of_unknown_outcome().help("`tgp audit tail` shows whether it took effect")
}

fn encode(value: &impl serde::Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(value).map_err(|error| RpcError::new(number::FAILED, error.to_string()))
}

fn object(value: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn tool_info(definition: &ToolDefinition) -> ToolInfo {
    ToolInfo {
        name: definition.name.to_string(),
        aliases: definition.aliases.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.as_object().cloned().unwrap_or_default(),
        effect: definition.effect.into(),
        dry_run: definition.dry_run,
    }
}

/// What generated clients are compared with.
fn kernel_info(kernel: &Kernel) -> Result<KernelInfo, ToolError> {
    let tools: Vec<ToolInfo> = kernel.definitions().map(tool_info).collect();
    let tools = serde_json::to_value(tools).unwrap_or_default();
    let text = canonical::to_string(&tools)
        .map_err(|error| ToolError::new(Code::Internal, format!("the definitions: {error}")))?;
    Ok(KernelInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        definitions_hash: canonical::sha256_hex(text.as_bytes()),
        static_prompt: static_prompt(),
    })
}

/// What the calls of a host are agreed to beforehand.
pub(crate) fn consent(asks_for_effects: bool) -> Consent {
    if asks_for_effects { Consent::Ask } else { Consent::Outer }
}
