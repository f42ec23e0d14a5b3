//! OpenAI's Chat Completions, and the many servers that speak like it, each with an accent.

use serde_json::{Value, json};
use tgp_contract::{Block, ChatOptions, ModelTool, Role, StopReason, StreamEvent};

use super::blocks::{Blocks, Call, Content, Slot, State, extend_opaque};
use super::history::{RoleRun, argument_object, sides, tool_name};
use super::{
    Counted, Decoder, Dialect, Meter, Progress, list, number, object, parse, reported, say, some_text, text,
};
use crate::failure::Failure;
use crate::limits::MAX_OPAQUE_BYTES;

/// What this wire makes opaque blocks of: a thought, and what a server wants to see beside a call.
const THOUGHT: &str = "reasoning_content";
const COMPANION: &str = "extra_content";

pub(super) fn request(label: &str, options: &ChatOptions, dialect: Dialect) -> Value {
    let keeps = |owner: &str, value: &Value| owner == label && is_ours(value);
    let mut messages = Vec::new();
    if !options.system.is_empty() {
        messages.push(json!({ "role": "system", "content": options.system }));
    }
    // A thought is wanted back as long as calls belong to its turn, and refused or wasted where none do.
    let mut has_results = false;
    for side in sides(&options.messages, keeps) {
        match side.role {
            Role::User => {
                has_results = side.blocks.iter().any(|block| matches!(block, Block::ToolResult { .. }));
                user(&side, &mut messages);
            }
            Role::Assistant => messages.extend(assistant(&side, has_results)),
        }
    }
    // The newer models of OpenAI refuse the old name of the limit, and most other servers do not know the new one.
    let limit = options.max_output_tokens.map(Value::from);
    let (new_limit, old_limit) = if dialect.is_openai { (limit, None) } else { (None, limit) };
    object([
        ("model", Some(options.model.as_str().into())),
        ("messages", Some(messages.into())),
        ("tools", list(&options.tools, tool)),
        ("stream", Some(true.into())),
        ("stream_options", dialect.has_stream_options.then(|| json!({ "include_usage": true }))),
        ("max_completion_tokens", new_limit),
        ("max_tokens", old_limit),
        ("temperature", options.temperature.map(Value::from)),
    ])
}

fn is_ours(value: &Value) -> bool {
    matches!(text(value, "/type"), Some(THOUGHT | COMPANION))
}

fn tool(tool: &ModelTool) -> Value {
    json!({
        "type": "function",
        "function": { "name": tool.name, "description": tool.description, "parameters": tool.input_schema },
    })
}

/// The texts of one side as one string, the only form that every server reads.
fn joined(side: &RoleRun) -> Option<String> {
    let texts: Vec<&str> = side
        .blocks
        .iter()
        .filter_map(|block| if let Block::Text { text } = block { Some(text.as_str()) } else { None })
        .collect();
    if texts.is_empty() { None } else { Some(texts.join("\n\n")) }
}

fn user(side: &RoleRun, messages: &mut Vec<Value>) {
    for block in &side.blocks {
        if let Block::ToolResult { call_id, content, .. } = block {
            messages.push(json!({ "role": "tool", "tool_call_id": call_id, "content": content }));
        }
    }
    messages.extend(joined(side).map(|text| json!({ "role": "user", "content": text })));
}

fn assistant(side: &RoleRun, has_results: bool) -> Option<Value> {
    let mut calls: Vec<Value> = Vec::new();
    let mut thought = String::new();
    let mut companion: Option<&Value> = None;
    for block in &side.blocks {
        match block {
            Block::Opaque { value, .. } => {
                thought.push_str(text(value, "/reasoning_content").unwrap_or_default());
                companion = value.get(COMPANION);
                continue;
            }
            Block::ToolCall { call_id, tool_name: name, arguments } => calls.push(object([
                ("id", Some(call_id.as_str().into())),
                ("type", Some("function".into())),
                (
                    "function",
                    Some(json!({
                        "name": tool_name(name),
                        "arguments": argument_object(arguments).to_string(),
                    })),
                ),
                (COMPANION, companion.cloned()),
            ])),
            Block::Text { .. } | Block::ToolResult { .. } => {}
        }
        companion = None;
    }
    let text = joined(side);
    if text.is_none() && calls.is_empty() {
        return None;
    }
    let is_wanted = !thought.is_empty() && (has_results || !calls.is_empty());
    Some(object([
        ("role", Some("assistant".into())),
        ("content", Some(text.into())),
        (THOUGHT, is_wanted.then(|| thought.into())),
        ("tool_calls", list(&calls, Value::clone)),
    ]))
}

/// Reads `chat.completion.chunk` events.
#[derive(Debug)]
pub(super) struct ChatDecoder {
    blocks: Blocks,
    /// A thought that continues, as the block that it becomes.
    thought: Option<Value>,
    meter: Meter,
    has_refused: bool,
    finish: Option<Option<StopReason>>,
}

impl ChatDecoder {
    pub(super) fn new(label: &str, turn: u64) -> Self {
        Self {
            blocks: Blocks::new(label, turn),
            thought: None,
            meter: Meter::default(),
            has_refused: false,
            finish: None,
        }
    }

    fn think(&mut self, fragment: &str) -> Result<(), Failure> {
        let block = self.thought.get_or_insert_with(|| json!({ "type": THOUGHT }));
        extend_opaque(block, THOUGHT, fragment)
    }

    /// Something else follows: the thought is whole.
    fn end_thought(&mut self, said: &mut Vec<StreamEvent>) {
        if let Some(block) = self.thought.take() {
            self.blocks.opaque(block, said);
        }
    }

    fn delta(&mut self, delta: &Value, said: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        if let Some(fragment) = some_text(delta, "/reasoning_content") {
            self.think(fragment)?;
        }
        let has_words = match delta.get("content") {
            Some(Value::String(content)) => !content.is_empty(),
            Some(content) => content.is_array(),
            None => false,
        };
        if has_words || delta.get("tool_calls").is_some_and(Value::is_array) {
            self.end_thought(said);
        }
        match delta.get("content") {
            Some(Value::String(content)) => say(content, said),
            // Some servers write parts, of which only the text is for us.
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|part| text(part, "/text")).for_each(|part| say(part, said));
            }
            _ => {}
        }
        if let Some(refusal) = some_text(delta, "/refusal") {
            self.has_refused = true;
            say(refusal, said);
        }
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(call)?;
        }
        Ok(())
    }

    fn call(&mut self, fragment: &Value) -> Result<(), Failure> {
        let whose = FragmentOwner {
            index: number(fragment, "/index"),
            id: some_text(fragment, "/id"),
            name: some_text(fragment, "/function/name"),
        };
        let arguments = fragment.pointer("/function/arguments");
        let has_arguments = match arguments {
            Some(Value::String(arguments)) => !arguments.is_empty(),
            Some(arguments) => arguments.is_object(),
            None => false,
        };
        let says_nothing = whose.id.is_none() && whose.name.is_none() && !has_arguments;
        let named = self.blocks.position(|slot| whose.is_named(slot));
        let position = match named.or_else(|| self.blocks.position(|slot| whose.is_next_of(slot))) {
            Some(position) => position,
            // Some servers send such fragments beside an answer that calls nothing.
            None if says_nothing => return Ok(()),
            None => self.blocks.begin(whose.index, Content::Call(Call::default()), State::Open)?,
        };
        let FragmentOwner { id, name, .. } = whose;
        let Some(Slot { content: Content::Call(call), .. }) = self.blocks.at(position) else { return Ok(()) };
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            call.id = id.to_owned();
        }
        if let Some(name) = name.filter(|_| call.name.is_empty()) {
            call.name = name.to_owned();
        }
        if let Some(extra) = fragment.get(COMPANION).filter(|extra| !extra.is_null()) {
            call.companion = Some(companion(extra)?);
        }
        match arguments {
            Some(Value::String(arguments)) => call.write(arguments),
            Some(whole @ Value::Object(_)) => call.rewrite(&whole.to_string()),
            _ => Ok(()),
        }
    }

    fn finish(
        &mut self,
        reason: Option<StopReason>,
        is_cut: bool,
        said: &mut Vec<StreamEvent>,
    ) -> Option<StopReason> {
        if self.finish.is_none() {
            self.end_thought(said);
            self.blocks.finish(is_cut, said);
        }
        *self.finish.get_or_insert(reason)
    }
}

fn companion(extra: &Value) -> Result<Value, Failure> {
    let companion = json!({ "type": COMPANION, COMPANION: extra });
    if companion.to_string().len() > MAX_OPAQUE_BYTES {
        return Err(Failure::TooLarge { what: "a block", limit: MAX_OPAQUE_BYTES as u64 });
    }
    Ok(companion)
}

/// What a fragment of a call says of whose fragment it is.
struct FragmentOwner<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
}

impl FragmentOwner<'_> {
    /// The fragment names this very call.
    fn is_named(&self, slot: &Slot) -> bool {
        let Content::Call(call) = &slot.content else { return false };
        self.id.is_some_and(|id| id == call.id) && (self.index.is_none() || self.index == slot.key)
    }

    /// The fragment continues where this call is the newest candidate. The index says it, where there is one; a new
    /// id or name begins another call even so, because some servers number all calls 0.
    fn is_next_of(&self, slot: &Slot) -> bool {
        let Content::Call(call) = &slot.content else { return false };
        let Some(name) = self.name else { return self.index.is_none() || self.index == slot.key };
        let has_other_id = self.id.is_some() && !call.id.is_empty();
        let has_other_name = !call.name.is_empty() && call.name != name;
        self.index.is_some() && self.index == slot.key && !has_other_id && !has_other_name
    }
}

impl Decoder for ChatDecoder {
    fn read(&mut self, name: &str, data: &str, said: &mut Vec<StreamEvent>) -> Result<Progress, Failure> {
        if data.trim() == "[DONE]" {
            let reason = self.has_refused.then_some(StopReason::Refusal);
            // The server has not said that the answer is complete; a call is, when its arguments are.
            return Ok(Progress::Over(self.finish(reason, true, said)));
        }
        let Some(value) = parse(name, data, matches!(name, "message" | "error"))? else {
            return Ok(Progress::GoOn);
        };
        if name == "error" || value.get("error").is_some_and(|error| !error.is_null()) {
            return Err(reported(&value));
        }
        let choices = value.get("choices").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let choice = choices.iter().find(|choice| number(choice, "/index").unwrap_or_default() == 0);
        let mut progress = Progress::GoOn;
        if let Some(choice) = choice.filter(|_| self.finish.is_none()) {
            if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
                self.delta(delta, said)?;
            }
            if let Some(finish) = some_text(choice, "/finish_reason") {
                let reason = match finish {
                    "error" => return Err(reported(choice)),
                    "length" => Some(StopReason::Length),
                    "content_filter" => Some(StopReason::Refusal),
                    _ => self.has_refused.then_some(StopReason::Refusal),
                };
                progress = Progress::Finished(self.finish(reason, reason.is_some(), said));
            }
        }
        let usage = |pointer| number(&value, pointer);
        let counted = Counted {
            input: usage("/usage/prompt_tokens"),
            // DeepSeek has its own name for it.
            cached: usage("/usage/prompt_tokens_details/cached_tokens")
                .or_else(|| usage("/usage/prompt_cache_hit_tokens")),
            cache_write: None,
            output: usage("/usage/completion_tokens"),
        };
        self.meter.count(counted, said);
        Ok(progress)
    }
}
