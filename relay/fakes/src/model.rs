//! A model that does what the conversation says: the scripted model that every suite can use.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Value, json};
use tgp_contract::{
    Block, ChatOptions, Code, EventStream, Message, ModelInfo, ModelProvider, Role, StreamEvent, ToolError,
};

/// The tool that the puppet calls by itself.
const ECHO: &str = "Echo";
/// The field of a task that holds turns.
const TURNS: &str = "relay";
/// The only model there is.
const MODEL: &str = "test-1";

/// What the puppet says next in a conversation. There are three rules, and the first that fits is taken:
///
/// 1. The last text of the user that is a JSON object with the field `relay` holds a list of turns, each a list of stream
///    events. The turn is played whose number is the number of assistant messages after that text.
/// 2. `Echo` is offered and the last thing said is a text of the user: `Echo` is called with `{"text": …}`.
/// 3. Otherwise the answer is `ok:` and the last thing said, be it a text or a tool's result.
pub struct ScriptedModel;

impl ScriptedModel {
    /// A task that makes a puppet play these turns.
    #[must_use]
    pub fn task(turns: &[Vec<StreamEvent>]) -> String {
        json!({ TURNS: turns }).to_string()
    }

    /// The events of the next turn; the last of them is the end.
    ///
    /// # Errors
    /// `EVALIDATION` when the turns of the task are not events.
    pub fn turn(options: &ChatOptions) -> Result<Vec<StreamEvent>, ToolError> {
        if let Some(events) = told(&options.messages)? {
            return Ok(ended(events));
        }
        let last = options.messages.last();
        let block = last.and_then(|message| message.blocks.last());
        let is_user = last.is_some_and(|message| message.role == Role::User);
        let said = match block {
            Some(Block::Text { text }) => text.as_str(),
            Some(Block::ToolResult { content, .. }) => content.as_str(),
            _ => "",
        };
        let echo = options.tools.iter().any(|tool| tool.name.as_str() == ECHO);
        let event = match block {
            Some(Block::Text { .. }) if echo && is_user => StreamEvent::ToolCall {
                tool_name: ECHO.to_owned(),
                call_id: format!("call_{}", options.turn),
                arguments: json!({ "text": said }),
            },
            _ => StreamEvent::Text { value: format!("ok:{said}") },
        };
        Ok(ended(vec![event]))
    }
}

/// The turn that the task of this conversation wants now; none when it wants nothing or no more.
fn told(messages: &[Message]) -> Result<Option<Vec<StreamEvent>>, ToolError> {
    let mut answers = 0;
    for message in messages.iter().rev() {
        if message.role == Role::Assistant {
            answers += 1;
            continue;
        }
        let texts = message.blocks.iter().rev().filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        });
        for text in texts {
            let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else { continue };
            let Some(Value::Array(turns)) = fields.get(TURNS) else { continue };
            let Some(turn) = turns.get(answers) else { return Ok(None) };
            return serde_json::from_value(turn.clone()).map(Some).map_err(|error| {
                let message = format!("turn {answers} of the task is not a list of stream events: {error}");
                ToolError::new(Code::Validation, message).help("give each turn as a list of stream events")
            });
        }
    }
    Ok(None)
}

fn ended(mut events: Vec<StreamEvent>) -> Vec<StreamEvent> {
    if !matches!(events.last(), Some(StreamEvent::End { .. } | StreamEvent::Error { .. })) {
        events.push(StreamEvent::End { reason: None });
    }
    events
}

/// A model in memory: first the turns it was given, then what [`ScriptedModel`] says.
#[derive(Default)]
pub struct FakeModel {
    turns: Mutex<VecDeque<Vec<StreamEvent>>>,
}

impl FakeModel {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A model that plays these turns, one for each request, before it is a puppet.
    #[must_use]
    pub fn with_turns(turns: impl IntoIterator<Item = Vec<StreamEvent>>) -> Self {
        Self { turns: Mutex::new(turns.into_iter().collect()) }
    }
}

#[async_trait]
impl ModelProvider for FakeModel {
    fn name(&self) -> &str {
        "fake"
    }

    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError> {
        let given = self.turns.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let events = match given {
            Some(events) => ended(events),
            None => ScriptedModel::turn(&options)?,
        };
        Ok(Box::pin(futures_util::stream::iter(events)))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError> {
        Ok(vec![ModelInfo { name: MODEL.to_owned() }])
    }
}
