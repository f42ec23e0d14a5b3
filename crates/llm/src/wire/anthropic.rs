//! Anthropic's Messages, with thoughts that are kept and sent back as they came.

use serde_json::{Value, json};
use tgp_contract::{Block, ChatOptions, ModelTool, Role, StopReason, StreamEvent};

use super::blocks::{Blocks, Call, Content, Slot, State, extend_opaque};
use super::history::{RoleRun, argument_object, fit, sides, tool_name};
use super::{
    Counted, Decoder, Dialect, Meter, Progress, kind, list, number, object, parse, reported, say, some_text,
    text,
};
use crate::failure::Failure;

/// What tools, system prompt and conversation have in common with the request before is read from the cache: each of
/// the three ends with a mark, and the API allows four.
pub(super) fn request(label: &str, options: &ChatOptions, dialect: Dialect) -> Value {
    let keeps = |owner: &str, value: &Value| owner == label && is_thought(value);
    let mut messages: Vec<Value> = sides(&options.messages, keeps).iter().map(message).collect();
    let content = messages.last_mut().and_then(|message| message.get_mut("content"));
    mark(content.and_then(Value::as_array_mut).and_then(|parts| parts.last_mut()));
    let mut tools = list(&options.tools, tool);
    mark(tools.as_mut().and_then(Value::as_array_mut).and_then(|tools| tools.last_mut()));
    let mut system =
        (!options.system.is_empty()).then(|| json!([{ "type": "text", "text": options.system }]));
    mark(system.as_mut().and_then(Value::as_array_mut).and_then(|parts| parts.last_mut()));
    object([
        ("model", Some(options.model.as_str().into())),
        ("max_tokens", Some(options.max_output_tokens.unwrap_or(dialect.default_limit).into())),
        ("system", system),
        ("messages", Some(messages.into())),
        ("tools", tools),
        ("stream", Some(true.into())),
        ("temperature", options.temperature.map(Value::from)),
    ])
}

/// Everything up to here may be kept by the API.
fn mark(part: Option<&mut Value>) {
    if let Some(part) = part.and_then(Value::as_object_mut) {
        part.insert("cache_control".to_owned(), json!({ "type": "ephemeral" }));
    }
}

fn tool(tool: &ModelTool) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema })
}

fn message(side: &RoleRun) -> Value {
    let role = match side.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    json!({ "role": role, "content": side.blocks.iter().map(part).collect::<Vec<Value>>() })
}

fn part(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::ToolCall { call_id, tool_name: name, arguments } => json!({
            "type": "tool_use",
            "id": fit(call_id),
            "name": tool_name(name),
            "input": argument_object(arguments),
        }),
        Block::ToolResult { call_id, content, is_error } => object([
            ("type", Some("tool_result".into())),
            ("tool_use_id", Some(fit(call_id).into())),
            ("content", Some(content.as_str().into())),
            ("is_error", is_error.then(|| true.into())),
        ]),
        Block::Opaque { value, .. } => value.clone(),
    }
}

fn is_thought(part: &Value) -> bool {
    matches!(text(part, "/type"), Some("thinking" | "redacted_thinking"))
}

/// The events of a message that came at once.
pub(super) fn events_of(answer: &Value, content: &[Value]) -> Option<Vec<Value>> {
    let reason = some_text(answer, "/stop_reason")?;
    let mut events = vec![json!({ "type": "message_start", "message": { "usage": answer.get("usage") } })];
    for (index, block) in content.iter().enumerate() {
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    events.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason } }));
    events.push(json!({ "type": "message_stop" }));
    Some(events)
}

/// The events of this API; others are ignored.
const KNOWN: [&str; 8] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
    "error",
];

#[derive(Debug)]
pub(super) struct AnthropicDecoder {
    blocks: Blocks,
    meter: Meter,
    reason: Option<StopReason>,
}

impl AnthropicDecoder {
    pub(super) fn new(label: &str, turn: u64) -> Self {
        Self { blocks: Blocks::new(label, turn), meter: Meter::default(), reason: None }
    }

    fn start(&mut self, event: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let key = number(event, "/index");
        let Some(block) = event.get("content_block") else { return Ok(()) };
        self.blocks.settle();
        match text(block, "/type") {
            Some("text") => say(text(block, "/text").unwrap_or_default(), said),
            Some("tool_use") => {
                let word = |pointer| text(block, pointer).unwrap_or_default().to_owned();
                let mut call = Call { id: word("/id"), name: word("/name"), ..Call::default() };
                // Some gateways write the whole input here and no fragments.
                if let Some(input) = block.get("input").filter(|input| !is_empty(input)) {
                    call.write(&input.to_string())?;
                }
                self.blocks.begin(key, Content::Call(call), State::Open)?;
            }
            Some("thinking" | "redacted_thinking") => {
                self.blocks.begin(key, Content::Opaque(block.clone()), State::Open)?;
            }
            // Blocks of tools that the server runs itself; no request of ours asks for them.
            _ => {}
        }
        self.blocks.release(said);
        Ok(())
    }

    fn delta(&mut self, event: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let fragment = |pointer| text(event, pointer).unwrap_or_default();
        let slot = self.blocks.of_key(number(event, "/index")).map(|slot| &mut slot.content);
        match (text(event, "/delta/type"), slot) {
            (Some("text_delta"), _) => say(fragment("/delta/text"), said),
            (Some("input_json_delta"), Some(Content::Call(call))) => {
                call.write(fragment("/delta/partial_json"))?
            }
            (Some("thinking_delta"), Some(Content::Opaque(block))) => {
                extend_opaque(block, "thinking", fragment("/delta/thinking"))?;
            }
            (Some("signature_delta"), Some(Content::Opaque(block))) => {
                extend_opaque(block, "signature", fragment("/delta/signature"))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn stop(&mut self, event: &Value, said: &mut Vec<StreamEvent>) {
        let key = number(event, "/index");
        if let Some(Slot { content, state, .. }) = self.blocks.of_key(key) {
            let is_silent = matches!(content, Content::Call(call) if call.arguments.is_empty());
            *state = if is_silent { State::EndedEmpty } else { State::Complete };
        }
        self.blocks.discard(|slot| slot.key == key && is_unsigned(slot));
        self.blocks.release(said);
    }

    fn finish(&mut self, said: &mut Vec<StreamEvent>) {
        self.blocks.discard(is_unsigned);
        self.blocks.finish(self.reason.is_some(), said);
    }

    fn count(&mut self, usage: Option<&Value>, said: &mut Vec<StreamEvent>) {
        let Some(usage) = usage else { return };
        let cached = number(usage, "/cache_read_input_tokens");
        let cache_write = number(usage, "/cache_creation_input_tokens");
        // What was read from or written to the cache was read by the model, too.
        let parts = [number(usage, "/input_tokens"), cached, cache_write];
        let input = parts.into_iter().flatten().fold(0, u64::saturating_add);
        let output = number(usage, "/output_tokens");
        self.meter.count(Counted { input: Some(input), cached, cache_write, output }, said);
    }
}

/// A thought that was cut off has no signature, and the API does not accept it.
fn is_unsigned(slot: &Slot) -> bool {
    let Content::Opaque(block) = &slot.content else { return false };
    some_text(block, "/signature").is_none() && some_text(block, "/data").is_none()
}

fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

impl Decoder for AnthropicDecoder {
    fn read(&mut self, name: &str, data: &str, said: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        let Some(event) = parse(name, data, KNOWN.contains(&name))? else { return Ok(Progress::GoOn) };
        match kind(name, &event) {
            "message_start" => self.count(event.pointer("/message/usage"), said),
            "content_block_start" => self.start(&event, said)?,
            "content_block_delta" => self.delta(&event, said)?,
            "content_block_stop" => self.stop(&event, said),
            "message_delta" => {
                let stop = text(&event, "/delta/stop_reason");
                self.reason = match stop {
                    Some("max_tokens" | "model_context_window_exceeded") => Some(StopReason::Length),
                    Some("refusal") => Some(StopReason::Refusal),
                    _ => self.reason,
                };
                if stop.is_some() {
                    self.finish(said);
                }
                self.count(event.get("usage"), said);
                if stop.is_some() {
                    return Ok(Progress::Finished(self.reason));
                }
            }
            "message_stop" => {
                self.finish(said);
                return Ok(Progress::Over(self.reason));
            }
            "error" => return Err(reported(&event)),
            _ => {}
        }
        Ok(Progress::GoOn)
    }
}
