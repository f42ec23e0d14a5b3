//! Models and runners of agents with one fault each.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tgp_contract::{
    AgentFailure, AgentResult, AgentRunner, AgentTask, Block, Cancellation, ChatOptions, Code, EventStream,
    ModelInfo, ModelProvider, StreamEvent, ToolError,
};
use tgp_relay::{RunnerGround, Substitutes};
use tgp_relay_fakes::{FakeModel, FakeRunner};

use super::{Line, Mutant, corpus};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Reorders,
    DropsPieces,
    SaysTwice,
    CutsLongTurns,
    NoEnd,
    TalksAfterTheEnd,
    CallsNothing,
    LosesArguments,
    ArgumentsAsText,
    OtherTool,
    NoCallId,
    NeverGoesOn,
    IgnoresTurns,
    SaysLess,
    RepairsArguments,
    CallsFirst,
}

const TABLE: &[Line<Fault>] = &[
    (Fault::Reorders, "reorders", "events come in their order", &["t1.backpressure"]),
    (Fault::DropsPieces, "drops-pieces", "no event is left out", &["t1.backpressure"]),
    (Fault::SaysTwice, "says-twice", "no event comes twice", &["t1.backpressure", "t1.loop"]),
    (Fault::CutsLongTurns, "cuts-long-turns", "a long turn is whole", &["t1.backpressure"]),
    (Fault::NoEnd, "no-end", "a turn ends with an end", &["t1.loop"]),
    (Fault::TalksAfterTheEnd, "talks-after-the-end", "nothing comes after the end", &["t1.loop"]),
    (Fault::CallsNothing, "calls-nothing", "a tool that is offered is called", &["t1.loop"]),
    (Fault::LosesArguments, "loses-arguments", "a call has its arguments", &["t1.loop"]),
    (Fault::ArgumentsAsText, "arguments-as-text", "arguments that are JSON are no text", &["t1.loop"]),
    (Fault::OtherTool, "other-tool", "a call names the tool that was offered", &["t1.loop"]),
    (Fault::NoCallId, "no-call-id", "a call has an id", &["t1.loop"]),
    (Fault::NeverGoesOn, "never-goes-on", "a conversation goes on with its next turn", &["t1.loop"]),
    (
        Fault::IgnoresTurns,
        "ignores-turns",
        "a puppet plays the turns of its task",
        &["t1.loop", "t1.backpressure"],
    ),
    (Fault::SaysLess, "says-less", "a puppet says what it was told", &["t4.execute", "t4.parallel"]),
    (
        Fault::RepairsArguments,
        "repairs-arguments",
        "broken arguments arrive as they are",
        &["t1.malformed-arguments"],
    ),
    (Fault::CallsFirst, "calls-first", "text before a call comes before it", &["t1.backpressure"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunnerFault {
    None,
    SaysNothing,
    OwnPrompt,
    Fails,
}

const RUNNERS: &[Line<RunnerFault>] = &[
    (
        RunnerFault::SaysNothing,
        "says-nothing",
        "an agent's answer is its last words",
        &["t4.execute", "t4.parallel"],
    ),
    (RunnerFault::OwnPrompt, "own-prompt", "an agent works on the prompt", &["t4.execute"]),
    (RunnerFault::Fails, "fails", "an agent that can work does", &["t4.execute", "t4.parallel"]),
];

fn part(fault: Fault) -> Substitutes {
    let make = move |_: &Path| -> Result<Arc<dyn ModelProvider>, ToolError> {
        Ok(Arc::new(FaultyModel { fault, inner: FakeModel::new() }))
    };
    Substitutes { llm: Some(Arc::new(make)), ..Substitutes::default() }
}

fn runner(fault: RunnerFault) -> Substitutes {
    let make = move |ground: RunnerGround| -> Result<Arc<dyn AgentRunner>, ToolError> {
        Ok(Arc::new(FaultyRunner { fault, inner: FakeRunner::new(ground.model, ground.tools) }))
    };
    Substitutes { agents: Some(Arc::new(make)), ..Substitutes::default() }
}

pub(super) fn sound() -> [Substitutes; 2] {
    [part(Fault::None), runner(RunnerFault::None)]
}

pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = corpus("llm", TABLE, part);
    all.extend(corpus("agents", RUNNERS, runner));
    all
}

struct FaultyModel {
    fault: Fault,
    inner: FakeModel,
}

fn said(text: &str) -> StreamEvent {
    StreamEvent::Text { value: text.to_owned() }
}

#[async_trait]
impl ModelProvider for FaultyModel {
    fn name(&self) -> &str {
        "faulty"
    }

    async fn chat(&self, mut options: ChatOptions) -> Result<EventStream, ToolError> {
        match self.fault {
            Fault::NeverGoesOn => options.messages.truncate(1),
            Fault::IgnoresTurns => {
                for block in options.messages.iter_mut().flat_map(|message| &mut message.blocks) {
                    if let Block::Text { text } = block {
                        *text = text.replace("\"relay\"", "\"turns\"");
                    }
                }
            }
            _ => {}
        }
        let mut events: Vec<StreamEvent> = self.inner.chat(options).await?.collect().await;
        match self.fault {
            Fault::Reorders if events.len() > 3 => events.swap(0, 1),
            Fault::DropsPieces if events.len() > 50 => drop(events.remove(40)),
            Fault::SaysTwice => events.insert(0, events[0].clone()),
            Fault::CutsLongTurns if events.len() > 100 => drop(events.drain(100..events.len() - 1)),
            Fault::NoEnd => drop(events.pop()),
            Fault::TalksAfterTheEnd => events.push(said("one more thing")),
            Fault::CallsFirst => {
                events.sort_by_key(|event| match event {
                    StreamEvent::ToolCall { .. } => 0,
                    StreamEvent::End { .. } => 2,
                    _ => 1,
                });
            }
            Fault::SaysLess => {
                for event in &mut events {
                    if let StreamEvent::Text { value } = event
                        && value.starts_with("ok:")
                    {
                        *value = "ok".to_owned();
                    }
                }
            }
            _ => {}
        }
        for event in &mut events {
            let StreamEvent::ToolCall { tool_name, call_id, arguments } = event else { continue };
            match self.fault {
                Fault::CallsNothing => *event = said("no"),
                Fault::LosesArguments => *arguments = json!({}),
                Fault::ArgumentsAsText if arguments.is_object() => {
                    *arguments = Value::String(arguments.to_string());
                }
                Fault::OtherTool => *tool_name = "Say".to_owned(),
                Fault::NoCallId => call_id.clear(),
                Fault::RepairsArguments if !arguments.is_object() => {
                    *arguments = json!({ "path": "a.md", "content": "" });
                }
                _ => {}
            }
        }
        Ok(Box::pin(futures_util::stream::iter(events)))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        self.inner.models().await
    }
}

struct FaultyRunner {
    fault: RunnerFault,
    inner: FakeRunner,
}

#[async_trait]
impl AgentRunner for FaultyRunner {
    async fn work(
        &self,
        mut task: AgentTask,
        cancelled: Cancellation<'_>,
    ) -> Result<AgentResult, AgentFailure> {
        match self.fault {
            RunnerFault::Fails => return Err(ToolError::new(Code::Runtime, "it does not work").into()),
            RunnerFault::OwnPrompt => task.prompt = "something else".to_owned(),
            _ => {}
        }
        let mut result = self.inner.work(task, cancelled).await?;
        if self.fault == RunnerFault::SaysNothing {
            result.answer.clear();
        }
        Ok(result)
    }
}
