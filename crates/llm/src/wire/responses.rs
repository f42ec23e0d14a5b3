//! OpenAI's Responses, without state on the server: what it wants to see again is kept here and sent back.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tgp_contract::{Block, ChatOptions, ModelTool, Role, StopReason, StreamEvent};

use super::blocks::{Blocks, Call, Content, Slot, State};
use super::history::{RoleRun, argument_object, sides, tool_name};
use super::{
    Counted, Decoder, Dialect, Meter, Progress, kind, list, number, object, parse, reported, say, some_text,
    text, words,
};
use crate::failure::Failure;

pub(super) fn request(label: &str, options: &ChatOptions, dialect: Dialect) -> Value {
    let keeps = |owner: &str, value: &Value| owner == label && is_ours(value);
    let mut input = Vec::new();
    for side in sides(&options.messages, keeps) {
        match side.role {
            Role::User => user(&side, &mut input),
            Role::Assistant => assistant(&side, &mut input),
        }
    }
    let include = dialect.has_encrypted_thoughts.then(|| json!(["reasoning.encrypted_content"]));
    object([
        ("model", Some(options.model.as_str().into())),
        ("instructions", words(&options.system)),
        ("input", Some(input.into())),
        ("tools", list(&options.tools, tool)),
        ("store", Some(false.into())),
        ("include", include),
        ("stream", Some(true.into())),
        ("max_output_tokens", options.max_output_tokens.map(Value::from)),
        ("temperature", options.temperature.map(Value::from)),
    ])
}

/// What this wire makes opaque blocks of: thoughts, and the companions of texts and calls.
fn is_ours(value: &Value) -> bool {
    matches!(text(value, "/type"), Some("reasoning" | "message" | "function_call"))
}

/// Our schemas have optional fields, which the strict mode of this API does not allow.
fn tool(tool: &ModelTool) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": false,
    })
}

fn user(side: &RoleRun, input: &mut Vec<Value>) {
    let mut content = Vec::new();
    for block in &side.blocks {
        match block {
            Block::ToolResult { call_id, content, .. } => {
                input.push(json!({ "type": "function_call_output", "call_id": call_id, "output": content }));
            }
            Block::Text { text } => content.push(json!({ "type": "input_text", "text": text })),
            Block::ToolCall { .. } | Block::Opaque { .. } => {}
        }
    }
    if !content.is_empty() {
        input.push(json!({ "type": "message", "role": "user", "content": content }));
    }
}

/// Thoughts go back as they came. Beside them the API wants the ids of the items that followed, which are in opaque
/// blocks before their text or call; where those are gone, the items go without.
fn assistant(side: &RoleRun, input: &mut Vec<Value>) {
    let mut companion: Option<&Map<String, Value>> = None;
    for block in &side.blocks {
        let item = match block {
            Block::Opaque { value, .. } if text(value, "/type") == Some("reasoning") => value.clone(),
            Block::Opaque { value, .. } => {
                companion = value.as_object();
                continue;
            }
            Block::Text { text } => json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text, "annotations": [] }],
            }),
            Block::ToolCall { call_id, tool_name: name, arguments } => json!({
                "type": "function_call",
                "call_id": call_id,
                "name": tool_name(name),
                "arguments": argument_object(arguments).to_string(),
            }),
            Block::ToolResult { .. } => continue,
        };
        input.push(accompanied(item, companion.take()));
    }
}

/// Adds what the companion knows to the item that it precedes.
fn accompanied(mut item: Value, companion: Option<&Map<String, Value>>) -> Value {
    let (Some(companion), Some(fields)) = (companion, item.as_object_mut()) else { return item };
    let same = |name: &str| companion.get(name) == fields.get(name);
    if same("type") && same("call_id") {
        let is_message = !companion.contains_key("call_id");
        fields.extend(companion.iter().map(|(name, value)| (name.clone(), value.clone())));
        if is_message {
            fields.insert("status".to_owned(), "completed".into());
        }
    }
    item
}

const KNOWN: [&str; 12] = [
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
    "response.error",
    "error",
];

#[derive(Debug)]
pub(super) struct ResponsesDecoder {
    blocks: Blocks,
    meter: Meter,
    /// The items whose calls have begun, and whose text was received in pieces.
    called: BTreeSet<u64>,
    spoken: BTreeSet<u64>,
    /// The companion of a message that has said nothing yet.
    silent: Option<Value>,
    has_heard: bool,
    /// The last thought cannot be sent back. The ids of what followed it would make the API ask for it.
    has_lost_thought: bool,
    has_refused: bool,
}

impl ResponsesDecoder {
    pub(super) fn new(label: &str, turn: u64) -> Self {
        Self {
            blocks: Blocks::new(label, turn),
            meter: Meter::default(),
            called: BTreeSet::new(),
            spoken: BTreeSet::new(),
            silent: None,
            has_heard: false,
            has_lost_thought: false,
            has_refused: false,
        }
    }

    fn added(&mut self, event: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let Some(item) = event.get("item") else { return Ok(()) };
        self.blocks.settle();
        match text(item, "/type") {
            Some("function_call") => self.begin(index(event), item)?,
            Some("message") => self.silent = self.companion(item, &["type", "id", "phase"]),
            _ => {}
        }
        self.blocks.release(said);
        Ok(())
    }

    fn begin(&mut self, key: u64, item: &Value) -> Result<(), Failure> {
        let word = |pointer| text(item, pointer).unwrap_or_default().to_owned();
        let call = Call {
            id: word("/call_id"),
            name: word("/name"),
            arguments: String::new(),
            companion: some_text(item, "/call_id").and(self.companion(item, &["type", "id", "call_id"])),
        };
        self.called.insert(key);
        self.blocks.begin(Some(key), Content::Call(call), State::Open).map(drop)
    }

    fn speak(&mut self, event: &Value, said: &mut Vec<StreamEvent>) {
        let Some(delta) = some_text(event, "/delta") else { return };
        if self.spoken.len() < crate::limits::MAX_BLOCKS {
            self.spoken.insert(index(event));
        }
        self.introduce(said);
        say(delta, said);
    }

    fn introduce(&mut self, said: &mut Vec<StreamEvent>) {
        if let Some(value) = self.silent.take() {
            self.blocks.opaque(value, said);
        }
    }

    fn done(&mut self, event: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let key = index(event);
        let Some(item) = event.get("item") else { return Ok(()) };
        match text(item, "/type") {
            Some("function_call") => {
                if !self.called.contains(&key) {
                    self.begin(key, item)?;
                }
                let is_whole = text(item, "/status") != Some("incomplete");
                self.complete(
                    key,
                    text(item, "/arguments"),
                    if is_whole { State::Complete } else { State::Cut },
                )?;
            }
            // Without its encrypted content a thought lives on the server only, where nothing of ours is stored.
            Some("reasoning") => {
                self.has_lost_thought = some_text(item, "/encrypted_content").is_none();
                if !self.has_lost_thought {
                    self.blocks.begin(Some(key), Content::Opaque(item.clone()), State::Complete)?;
                }
            }
            Some("message") if !self.spoken.contains(&key) => {
                for part in item.get("content").and_then(Value::as_array).into_iter().flatten() {
                    if let Some(said_whole) = some_text(part, "/text").or_else(|| some_text(part, "/refusal"))
                    {
                        self.has_refused |= part.get("refusal").is_some();
                        self.introduce(said);
                        say(said_whole, said);
                    }
                }
            }
            _ => {}
        }
        self.blocks.release(said);
        Ok(())
    }

    /// Puts the whole arguments in place. A call that has left already is not touched again.
    fn complete(&mut self, key: u64, whole: Option<&str>, state: State) -> Result<(), Failure> {
        let Some(Slot { content: Content::Call(call), state: current, .. }) = self.blocks.of_key(Some(key))
        else {
            return Ok(());
        };
        if let Some(whole) = whole.filter(|whole| !whole.is_empty()) {
            call.rewrite(whole)?;
        }
        *current = state;
        Ok(())
    }

    fn arguments_done(&mut self, event: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let key = index(event);
        self.complete(key, text(event, "/arguments"), State::Complete)?;
        if let Some(Slot { content: Content::Call(call), state, .. }) = self.blocks.of_key(Some(key))
            && call.arguments.is_empty()
        {
            *state = State::EndedEmpty;
        }
        self.blocks.release(said);
        Ok(())
    }

    /// The fields of an item that are sent back with it; without an id there is nothing to send.
    fn companion(&self, item: &Value, names: &[&str]) -> Option<Value> {
        some_text(item, "/id").filter(|_| !self.has_lost_thought)?;
        let field = |name: &&str| {
            Some(((*name).to_owned(), item.get(*name).filter(|value| value.is_string())?.clone()))
        };
        Some(Value::Object(names.iter().filter_map(field).collect()))
    }

    /// Takes everything from the last event when it is the only one: some servers do not stream.
    fn catch_up(&mut self, event: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        if self.has_heard {
            return Ok(());
        }
        let output = event.pointer("/response/output").and_then(Value::as_array);
        for (index, item) in output.into_iter().flatten().enumerate() {
            let item = json!({ "output_index": index, "item": item });
            self.added(&item, said)?;
            self.done(&item, said)?;
        }
        Ok(())
    }

    fn finish(
        &mut self,
        event: &Value,
        reason: Option<StopReason>,
        said: &mut Vec<StreamEvent>,
    ) -> Result<Progress, Failure> {
        self.catch_up(event, said)?;
        let reason = reason.or(self.has_refused.then_some(StopReason::Refusal));
        self.blocks.finish(reason.is_some(), said);
        let usage = |pointer| number(event, pointer);
        let counted = Counted {
            input: usage("/response/usage/input_tokens"),
            cached: usage("/response/usage/input_tokens_details/cached_tokens"),
            cache_write: None,
            output: usage("/response/usage/output_tokens"),
        };
        self.meter.count(counted, said);
        Ok(Progress::Over(reason))
    }
}

/// The place of an event's item among all items.
fn index(event: &Value) -> u64 {
    number(event, "/output_index").unwrap_or_default()
}

impl Decoder for ResponsesDecoder {
    fn read(&mut self, name: &str, data: &str, said: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        if data.trim() == "[DONE]" {
            return Ok(Progress::GoOn);
        }
        let Some(event) = parse(name, data, KNOWN.contains(&name))? else { return Ok(Progress::GoOn) };
        let kind = kind(name, &event);
        // Deltas and items, of whatever kind.
        let is_last = matches!(kind, "response.completed" | "response.incomplete");
        self.has_heard |= !is_last && (event.get("item").is_some() || event.get("delta").is_some());
        match kind {
            "response.output_item.added" => self.added(&event, said)?,
            "response.output_item.done" => self.done(&event, said)?,
            "response.output_text.delta" => self.speak(&event, said),
            "response.refusal.delta" => {
                self.has_refused = true;
                self.speak(&event, said);
            }
            "response.function_call_arguments.delta" => {
                let fragment = text(&event, "/delta").unwrap_or_default();
                if let Some(Slot { content: Content::Call(call), .. }) =
                    self.blocks.of_key(Some(index(&event)))
                {
                    call.write(fragment)?;
                }
            }
            "response.function_call_arguments.done" => self.arguments_done(&event, said)?,
            "response.completed" => return self.finish(&event, None, said),
            "response.incomplete" => {
                let is_filtered =
                    text(&event, "/response/incomplete_details/reason") == Some("content_filter");
                let reason = if is_filtered { StopReason::Refusal } else { StopReason::Length };
                return self.finish(&event, Some(reason), said);
            }
            "response.failed" | "response.cancelled" => {
                return Err(reported(event.get("response").unwrap_or(&event)));
            }
            "error" | "response.error" => return Err(reported(&event)),
            _ => {}
        }
        Ok(Progress::GoOn)
    }
}
