//! What the tests of all wires share: providers, conversations, recorded streams.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use tgp_contract::{
    Block, ChatOptions, EventStream, Message, ModelProvider, ModelTool, Role, StreamEvent, ToolError,
    ToolName,
};
use tgp_llm::{HttpOptions, Jitter, Retries, Wire, provider};
use tgp_net::Secret;

pub const KEY: &str = "sk-test-0123456789-secret";

/// The wires with their names, which are also the names of their files.
pub const WIRES: [(&str, Wire); 3] =
    [("chat", Wire::OpenAiChat), ("responses", Wire::OpenAiResponses), ("anthropic", Wire::Anthropic)];

pub fn options(wire: Wire, base: &str) -> HttpOptions {
    HttpOptions {
        base_url: Some(if wire == Wire::Anthropic { base.to_owned() } else { format!("{base}/v1") }),
        key: Some(Secret::new(KEY)),
        retries: Retries {
            attempts: 1,
            first_delay: Duration::ZERO,
            longest_delay: Duration::ZERO,
            rate_limit_delay: Duration::ZERO,
            jitter: Jitter::Fixed(1.0),
        },
        ..HttpOptions::new(wire)
    }
}

pub fn patient(wire: Wire, base: &str, attempts: u32) -> Arc<dyn ModelProvider> {
    let mut options = options(wire, base);
    options.retries.attempts = attempts;
    provider("mine", options).unwrap()
}

pub fn once(wire: Wire, base: &str) -> Arc<dyn ModelProvider> {
    patient(wire, base, 1)
}

pub fn user(text: &str) -> Message {
    Message { role: Role::User, blocks: vec![Block::Text { text: text.to_owned() }] }
}

pub fn conversation(messages: Vec<Message>) -> ChatOptions {
    ChatOptions {
        model: "m-1".to_owned(),
        system: "You are careful.".to_owned(),
        messages,
        tools: vec![ModelTool {
            name: ToolName::new("fs_read").unwrap(),
            description: "Reads a file.".to_owned(),
            input_schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        }],
        max_output_tokens: Some(1000),
        temperature: Some(0.5),
        turn: 3,
    }
}

pub fn hello() -> ChatOptions {
    conversation(vec![user("Hello")])
}

pub async fn collect(stream: EventStream) -> Vec<StreamEvent> {
    tokio::time::timeout(Duration::from_secs(60), stream.collect()).await.unwrap()
}

/// All events of a turn; a turn of which nothing was received is its error.
pub async fn play(provider: &dyn ModelProvider, options: ChatOptions) -> Result<Vec<StreamEvent>, ToolError> {
    let chat = tokio::time::timeout(Duration::from_secs(60), provider.chat(options)).await.unwrap();
    Ok(collect(chat?).await)
}

/// The URL by which a provider of [`options`] is called, and the mark of what only `m-1` gets back from it.
pub fn called(wire: Wire, base: &str) -> String {
    options(wire, base).base_url.unwrap()
}

pub fn label(wire: Wire, base: &str) -> String {
    format!("{}/m-1", called(wire, base))
}

/// The port of a server is another one each time.
pub fn without_port(events: Vec<StreamEvent>, base: &str) -> Vec<StreamEvent> {
    let text = serde_json::to_string(&events).unwrap().replace(base, "http://server");
    serde_json::from_str(&text).unwrap()
}

/// Plays an answer and gives everything that was received; a turn of which nothing was received is its error.
pub async fn heard(wire: Wire, answer: crate::server::Answer) -> Result<Value, ToolError> {
    let server = crate::server::Server::start(vec![answer]).await;
    let events = play(&*once(wire, &server.base), hello()).await?;
    Ok(json_of(&without_port(events, &server.base)))
}

pub fn json_of(events: &[StreamEvent]) -> Value {
    serde_json::to_value(events).unwrap()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/llm")
}

/// A stream as a server sends it, in its plainest form: lines end with LF, events with an empty line.
pub fn recorded(name: &str) -> String {
    std::fs::read_to_string(folder().join(format!("streams/{name}.txt"))).unwrap()
}

/// Compares with the golden file, or writes it with `UPDATE_GOLDEN=1`.
pub fn golden(name: &str, value: &Value) {
    let path = folder().join(format!("golden/{name}.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, format!("{}\n", serde_json::to_string_pretty(value).unwrap())).unwrap();
    }
    let expected: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(value, &expected, "{name}: {}", serde_json::to_string_pretty(value).unwrap());
}

/// What a session keeps of a turn: the pieces of a text are one block, everything else stays where it was.
pub fn remembered(events: &[StreamEvent]) -> Message {
    let mut blocks: Vec<Block> = Vec::new();
    for event in events {
        match (event, blocks.last_mut()) {
            (StreamEvent::Text { value }, Some(Block::Text { text })) => text.push_str(value),
            (StreamEvent::Text { value }, _) => blocks.push(Block::Text { text: value.clone() }),
            (StreamEvent::ToolCall { tool_name, call_id, arguments }, _) => blocks.push(Block::ToolCall {
                call_id: call_id.clone(),
                tool_name: tool_name.clone(),
                arguments: arguments.clone(),
            }),
            (StreamEvent::Opaque { provider, value }, _) => {
                blocks.push(Block::Opaque { provider: provider.clone(), value: value.clone() });
            }
            _ => {}
        }
    }
    Message { role: Role::Assistant, blocks }
}
