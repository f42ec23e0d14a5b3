//! What is said to a model, and what a provider of models is.

use std::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model_schema::concise;
use crate::{StreamEvent, ToolDefinition, ToolError, ToolName};

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Block {
    Text {
        text: String,
    },
    /// A call that the model asked for. Arguments that were no JSON are one string, as the model wrote them.
    ToolCall {
        call_id: String,
        tool_name: String,
        arguments: Value,
    },
    /// What came of a call, as the model reads it.
    ToolResult {
        call_id: String,
        content: String,
        is_error: bool,
    },
    /// What one provider said and wants back unchanged, such as a signed thought; other providers never see it.
    Opaque {
        provider: String,
        value: Value,
    },
}

/// Something one side said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub blocks: Vec<Block>,
}

/// A tool as a model sees it: its name, what it does, and its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelTool {
    pub name: ToolName,
    pub description: String,
    pub input_schema: Value,
}

impl From<&ToolDefinition> for ModelTool {
    fn from(definition: &ToolDefinition) -> Self {
        Self {
            name: definition.name.clone(),
            description: definition.description.clone(),
            input_schema: concise(&definition.input_schema),
        }
    }
}

/// One request to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatOptions {
    pub model: String,
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ModelTool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How many turns the model has taken in this conversation, also those that are no longer among the messages.
    pub turn: u64,
}

/// What a provider reports about a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    pub name: String,
}

/// The events of one turn. The last one is [`StreamEvent::End`] or [`StreamEvent::Error`], and nothing comes after it.
/// Dropping the stream stops the request.
pub type EventStream = Pin<Box<dyn Stream<Item = StreamEvent> + Send>>;

/// Whoever can play the model.
#[async_trait]
pub trait ModelProvider: Send + Sync {
    /// Such as `anthropic`.
    fn name(&self) -> &str;

    /// Asks for one turn.
    ///
    /// # Errors
    /// `EPROVIDER` when nothing of the turn has been heard: the request was refused, or all attempts have failed.
    async fn chat(&self, options: ChatOptions) -> Result<EventStream, ToolError>;

    /// The models that can be asked for.
    ///
    /// # Errors
    /// `EPROVIDER`.
    async fn models(&self) -> Result<Vec<ModelInfo>, ToolError>;
}
