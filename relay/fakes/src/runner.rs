//! An agent without memory: it asks the model, makes the calls, and stops when there are none.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use tgp_contract::{
    Actor, AgentFailure, AgentResult, AgentRunner, AgentTask, Block, CallContext, Cancellation, ChatOptions,
    Code, Message, ModelProvider, ModelTool, Role, SharedBudget, StreamEvent, ToolCall, ToolCaller,
    ToolError, Usage,
};

/// Bytes of one answer that are kept; a model that says more has lost its way.
const MAX_ANSWER: usize = 1 << 20;
/// Calls of one turn.
const MAX_CALLS: usize = 100;

/// Runs tasks with a model and tools, each from its beginning.
pub struct FakeRunner {
    model: Arc<dyn ModelProvider>,
    tools: Arc<dyn ToolCaller>,
}

impl FakeRunner {
    #[must_use]
    pub fn new(model: Arc<dyn ModelProvider>, tools: Arc<dyn ToolCaller>) -> Self {
        Self { model, tools }
    }

    async fn run(&self, task: AgentTask) -> Result<AgentResult, AgentFailure> {
        let tools: Vec<ModelTool> = self
            .tools
            .definitions()
            .iter()
            .filter(|definition| task.tools.iter().any(|name| definition.name.as_str() == name))
            .map(ModelTool::from)
            .collect();
        let prompt = task.correction.clone().unwrap_or_else(|| task.prompt.clone());
        let model = match &task.allowance {
            Some(allowance) => allowance.ration(Arc::clone(&self.model)),
            None => Arc::clone(&self.model),
        };
        let mut messages = vec![Message { role: Role::User, blocks: vec![Block::Text { text: prompt }] }];
        let mut work = AgentResult::default();
        while work.steps < task.max_steps {
            let options = ChatOptions {
                model: task.model.clone().unwrap_or_default(),
                system: task.system.clone().unwrap_or_default(),
                messages: messages.clone(),
                tools: tools.clone(),
                max_output_tokens: None,
                temperature: task.temperature,
                turn: work.steps,
            };
            let blocks = turn(model.as_ref(), options, &mut work.usage).await?;
            work.steps += 1;
            messages.push(Message { role: Role::Assistant, blocks: blocks.clone() });
            let mut results = Vec::new();
            for block in blocks {
                match block {
                    Block::Text { text } => work.answer = text,
                    Block::ToolCall { call_id, tool_name, arguments } => {
                        let call = ToolCall { id: call_id.clone(), tool: tool_name, arguments };
                        results.push(self.call(&task, call, call_id, &mut work).await);
                    }
                    Block::ToolResult { .. } | Block::Opaque { .. } => {}
                }
            }
            if results.is_empty() {
                return Ok(work);
            }
            messages.push(Message { role: Role::User, blocks: results });
        }
        let message = format!("the agent is not done after {} turns", task.max_steps);
        let error = ToolError::new(Code::Budget, message).help("allow more turns");
        Err(AgentFailure { usage: work.usage, calls: work.calls, files: work.files, ..error.into() })
    }

    async fn call(&self, task: &AgentTask, call: ToolCall, call_id: String, work: &mut AgentResult) -> Block {
        let context = CallContext {
            actor: Actor::Agent(task.actor.clone()),
            session: task.session.clone(),
            consent: task.consent,
            dry_run: false,
            depth: 0,
            token: task.token.clone(),
        };
        let is_told = task.tools.contains(&call.tool);
        if !is_told {
            work.calls += 1;
            let content = format!("the tool `{}` is not offered", call.tool);
            return Block::ToolResult { call_id, content, is_error: true };
        }
        if let Some(Err(error)) = task.allowance.as_ref().map(SharedBudget::take_call) {
            return Block::ToolResult { call_id, content: error.to_string(), is_error: true };
        }
        work.calls += 1;
        let record = self.tools.call(call, context, Box::pin(std::future::pending())).await;
        work.files.extend(record.files.clone());
        let is_error = !record.result.is_ok();
        let content = serde_json::to_string(&record.result).unwrap_or_default();
        Block::ToolResult { call_id, content, is_error }
    }
}

/// One turn of the model: what it says and which calls it wants.
async fn turn(
    model: &dyn ModelProvider,
    options: ChatOptions,
    usage: &mut Usage,
) -> Result<Vec<Block>, ToolError> {
    let mut stream = model.chat(options).await?;
    let (mut text, mut calls, mut spent) = (String::new(), Vec::new(), Usage::default());
    while let Some(event) = stream.next().await {
        match event {
            StreamEvent::Text { value } => text.push_str(&value),
            StreamEvent::ToolCall { tool_name, call_id, arguments } => {
                calls.push(Block::ToolCall { call_id, tool_name, arguments });
            }
            StreamEvent::Usage(so_far) => spent = so_far,
            StreamEvent::Error { error } => return Err(error),
            StreamEvent::End { .. } => break,
            StreamEvent::ToolResult { .. } | StreamEvent::Opaque { .. } => {}
        }
        if text.len() > MAX_ANSWER || calls.len() > MAX_CALLS {
            return Err(ToolError::new(Code::Provider, "the turn of the model is too long")
                .help("ask for less at once"));
        }
    }
    usage.input_tokens += spent.input_tokens;
    usage.output_tokens += spent.output_tokens;
    let said = (!text.is_empty()).then_some(Block::Text { text });
    Ok(said.into_iter().chain(calls).collect())
}

#[async_trait]
impl AgentRunner for FakeRunner {
    async fn work(
        &self,
        task: AgentTask,
        mut cancelled: Cancellation<'_>,
    ) -> Result<AgentResult, AgentFailure> {
        tokio::select! {
            done = self.run(task) => done,
            () = &mut cancelled => Err(ToolError::new(Code::Runtime, "the work was cancelled")
                .of_cancellation()
                .help("give the task again")
                .into()),
        }
    }
}
