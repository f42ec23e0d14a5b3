//! What the suites share that talk to a model: events, contexts, and the loop of an agent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use tgp_agent::{
    AgentClock, AgentEvent, AgentLimits, AgentOptions, AgentPorts, Budgets, Ending, LineDurability,
    RecoveredOutcome, Recovery, StopSignal, Summary, TddStateSource, TranscriptJournal, TranscriptLine, run,
};
use tgp_contract::{
    Actor, AgentFailure, AgentResult, AgentRunner, AgentTask, CallContext, CallRecord, Cancellation,
    CapabilityToken, Code, Consent, ModelProvider, SharedBudget, StreamEvent, TddMode, TddState, ToolCall,
    ToolCaller, ToolDefinition, ToolError,
};
use tgp_relay_fakes::ScriptedModel;
use tokio::sync::mpsc;

use crate::fault::{Expecting, Fault};

/// Turns that a conversation of a case may take.
const MAX_STEPS: u64 = 60;
/// What the models of the suites can read at once.
const CONTEXT_TOKENS: u64 = 200_000;

pub(crate) fn say(text: impl Into<String>) -> StreamEvent {
    StreamEvent::Text { value: text.into() }
}

pub(crate) fn wants(tool: &str, id: &str, arguments: impl Into<Value>) -> StreamEvent {
    StreamEvent::ToolCall { tool_name: tool.to_owned(), call_id: id.to_owned(), arguments: arguments.into() }
}

pub(crate) fn end() -> StreamEvent {
    StreamEvent::End { reason: None }
}

/// A call of the kit itself, agreed to already.
pub(crate) fn context() -> CallContext {
    CallContext {
        actor: Actor::Agent("relay".to_owned()),
        session: "relay".to_owned(),
        consent: Consent::Given,
        dry_run: false,
        depth: 0,
        token: None,
    }
}

/// Makes one call.
pub(crate) async fn call(
    tools: &dyn ToolCaller,
    tool: &str,
    arguments: impl Into<Value>,
    context: CallContext,
) -> CallRecord {
    let call = ToolCall { id: "relay".to_owned(), tool: tool.to_owned(), arguments: arguments.into() };
    tools.call(call, context, Box::pin(std::future::pending())).await
}

/// Tools of another implementation, with every call counted.
pub(crate) struct Counted {
    inner: Arc<dyn ToolCaller>,
    made: Mutex<Vec<String>>,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn ToolCaller>) -> Self {
        Self { inner, made: Mutex::default() }
    }

    pub(crate) fn made(&self) -> Vec<String> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl ToolCaller for Counted {
    fn definitions(&self) -> Vec<ToolDefinition> {
        self.inner.definitions()
    }

    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(call.tool.clone());
        self.inner.call(call, context, cancelled).await
    }
}

/// Everything else that the loop needs, as little as it can be.
struct StubPorts;

impl TranscriptJournal for StubPorts {
    fn append(&self, _line: &TranscriptLine, _safety: LineDurability) -> Result<(), ToolError> {
        Ok(())
    }
}

impl AgentClock for StubPorts {
    fn now_ms(&self) -> u64 {
        0
    }
}

impl TddStateSource for StubPorts {
    fn state(&self) -> TddState {
        TddState::Idle
    }
}

#[async_trait]
impl Recovery for StubPorts {
    async fn fate(&self, _session: &str, _call_id: &str) -> Result<RecoveredOutcome, ToolError> {
        Ok(RecoveredOutcome::Unknown)
    }
}

/// How fast the events of a conversation are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Quick,
    /// Lets all other tasks work between any two events, and has room for one.
    Slow,
}

/// What an agent is given.
struct Told {
    session: String,
    actor: String,
    task: String,
    model: String,
    system: String,
    max_steps: u64,
    consent: Consent,
    token: Option<CapabilityToken>,
}

async fn work(
    model: &dyn ModelProvider,
    tools: &dyn ToolCaller,
    told: Told,
    reader: Reader,
) -> (Result<Summary, ToolError>, Vec<AgentEvent>) {
    let Told { session, actor, task, model: name, system, max_steps, consent, token } = told;
    let options = AgentOptions {
        session,
        actor,
        task,
        model: name,
        system,
        mode: TddMode::Explore,
        budgets: Budgets { max_steps, max_tokens: None, max_seconds: None, max_cost: None },
        limits: AgentLimits {
            context_tokens: CONTEXT_TOKENS,
            max_output_tokens: None,
            temperature: None,
            prices: None,
        },
        consent,
        token,
    };
    let rest = StubPorts;
    let ports =
        AgentPorts { provider: model, tools, journal: &rest, clock: &rest, standing: &rest, recovery: &rest };
    let (sender, mut receiver) = mpsc::channel(if reader == Reader::Slow { 1 } else { 16 });
    let (_handle, stop) = StopSignal::new();
    let listening = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            if reader == Reader::Slow {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            events.push(event);
        }
        events
    };
    tokio::join!(run(options, ports, sender, stop), listening)
}

/// Has an agent work on turns that its model is to take, and gives everything that was said.
pub(crate) async fn converse(
    model: &dyn ModelProvider,
    tools: &dyn ToolCaller,
    turns: &[Vec<StreamEvent>],
    reader: Reader,
) -> Result<(Summary, Vec<AgentEvent>), Fault> {
    let told = Told {
        session: "relay".to_owned(),
        actor: "relay".to_owned(),
        task: ScriptedModel::task(turns),
        model: "test-1".to_owned(),
        system: "You are part of a relay.".to_owned(),
        max_steps: MAX_STEPS,
        consent: Consent::Given,
        token: None,
    };
    let (summary, events) = work(model, tools, told, reader).await;
    Ok((summary.expecting("a conversation that ends")?, events))
}

/// The loop of this product as a runner of agents.
pub(crate) struct LoopRunner {
    pub(crate) model: Arc<dyn ModelProvider>,
    pub(crate) tools: Arc<dyn ToolCaller>,
}

/// The tools that one agent sees.
struct Offered<'a> {
    inner: &'a dyn ToolCaller,
    names: &'a [String],
    allowance: Option<&'a SharedBudget>,
}

#[async_trait]
impl ToolCaller for Offered<'_> {
    fn definitions(&self) -> Vec<ToolDefinition> {
        let mut all = self.inner.definitions();
        all.retain(|definition| self.names.iter().any(|name| definition.name.as_str() == name));
        all
    }

    async fn call(&self, call: ToolCall, context: CallContext, cancelled: Cancellation<'_>) -> CallRecord {
        if let Some(Err(error)) = self.allowance.map(SharedBudget::take_call) {
            return CallRecord::not_begun(call, context, error);
        }
        self.inner.call(call, context, cancelled).await
    }
}

#[async_trait]
impl AgentRunner for LoopRunner {
    async fn work(
        &self,
        task: AgentTask,
        mut cancelled: Cancellation<'_>,
    ) -> Result<AgentResult, AgentFailure> {
        let allowance = task.allowance.as_ref();
        let offered = Offered { inner: self.tools.as_ref(), names: &task.tools, allowance };
        let model = match allowance {
            Some(allowance) => allowance.ration(Arc::clone(&self.model)),
            None => Arc::clone(&self.model),
        };
        let told = Told {
            session: task.session.clone(),
            actor: task.actor.clone(),
            task: task.correction.clone().unwrap_or_else(|| task.prompt.clone()),
            model: task.model.clone().unwrap_or_default(),
            system: task.system.clone().unwrap_or_default(),
            max_steps: task.max_steps,
            consent: task.consent,
            token: task.token.clone(),
        };
        let working = work(model.as_ref(), &offered, told, Reader::Quick);
        let (summary, _) = tokio::select! {
            done = working => done,
            () = &mut cancelled => return Err(ToolError::new(Code::Runtime, "the work was cancelled").into()),
        };
        let summary = summary?;
        if summary.ending != Ending::Done {
            let message = format!("the agent ended otherwise than done: {:?}", summary.ending);
            return Err(ToolError::new(Code::Runtime, message).help("see what the model said").into());
        }
        Ok(AgentResult {
            answer: summary.answer,
            steps: summary.steps,
            calls: summary.calls,
            usage: summary.usage,
            files: Vec::new(),
        })
    }
}
