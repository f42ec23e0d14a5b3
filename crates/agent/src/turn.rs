//! A turn of the model as it was received, and what it means for the conversation.

use std::collections::BTreeSet;

use serde_json::Value;
use tgp_contract::{Block, Effect, StopReason, StreamEvent, ToolDefinition, ToolName, Usage};
use tgp_text::head;

use crate::render::ends;

/// Calls of one turn that are made; what a model wants beyond them it can want again.
pub(crate) const MAX_CALLS: usize = 64;
/// The longest id that every provider accepts; a longer one is replaced.
const MAX_CALL_ID_BYTES: usize = 40;
/// Arguments that were not JSON, as the model is shown them again: enough to see what it wrote and where it
/// stopped.
const MAX_RAW_BYTES: usize = 2 << 10;
/// The longest tool name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;

/// A call that the model wants and that has no result yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PendingCall {
    /// Ours, such as `r3.1`.
    pub(crate) id: String,
    /// The one on the wire: the provider's, unless that was none.
    pub(crate) call_id: String,
    /// As the model named it.
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// `None` when there is no such tool; the router says so.
    pub(crate) effect: Option<Effect>,
    /// Whether the model's answer reached its limit in the middle of it.
    pub(crate) is_cut: bool,
    /// Whether its line is written, so that it may have happened.
    pub(crate) begun: bool,
}

impl PendingCall {
    /// Whether making it twice changes nothing. A tool that does not exist does nothing at all.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.effect, None | Some(Effect::Read))
    }
}

/// A complete turn, taken apart.
pub(crate) struct ParsedTurn {
    pub(crate) said: Vec<Block>,
    pub(crate) calls: Vec<PendingCall>,
    pub(crate) text: String,
    pub(crate) reason: Option<StopReason>,
    /// How many calls there were beyond the bound.
    pub(crate) left_out: usize,
}

/// The definition that a model means by a name or an alias.
pub(crate) fn definition<'a>(tools: &'a [ToolDefinition], name: &str) -> Option<&'a ToolDefinition> {
    let known =
        |tool: &&ToolDefinition| tool.name.as_str() == name || tool.aliases.iter().any(|alias| alias == name);
    tools.iter().find(known)
}

/// Takes a turn apart. `is_used` reports which ids are on the wire already.
pub(crate) fn take(
    step: u64,
    events: &[StreamEvent],
    tools: &[ToolDefinition],
    is_used: impl Fn(&str) -> bool,
) -> ParsedTurn {
    let mut taken =
        ParsedTurn { said: Vec::new(), calls: Vec::new(), text: String::new(), reason: None, left_out: 0 };
    let mut ids = BTreeSet::new();
    for event in events {
        match event {
            StreamEvent::Text { value } => {
                taken.text.push_str(value);
                // Providers refuse a block of nothing but white space.
                if !value.trim().is_empty() {
                    taken.said.push(Block::Text { text: value.clone() });
                }
            }
            StreamEvent::Opaque { provider, value } => {
                taken.said.push(Block::Opaque { provider: provider.clone(), value: value.clone() });
            }
            StreamEvent::ToolCall { .. } if taken.calls.len() >= MAX_CALLS => taken.left_out += 1,
            StreamEvent::ToolCall { tool_name, call_id, arguments } => {
                let number = taken.calls.len() + 1;
                let call_id = wire_id(call_id, step, number, |id| ids.contains(id) || is_used(id));
                ids.insert(call_id.clone());
                let known = definition(tools, tool_name);
                taken.said.push(Block::ToolCall {
                    call_id: call_id.clone(),
                    tool_name: known.map_or_else(|| wire_name(tool_name), |tool| tool.name.to_string()),
                    arguments: wire_arguments(arguments),
                });
                taken.calls.push(PendingCall {
                    id: format!("r{step}.{number}"),
                    call_id,
                    tool: tool_name.clone(),
                    arguments: arguments.clone(),
                    effect: known.map(|tool| tool.effect),
                    is_cut: false,
                    begun: false,
                });
            }
            StreamEvent::End { reason } => taken.reason = *reason,
            StreamEvent::ToolResult { .. } | StreamEvent::Usage(_) | StreamEvent::Error { .. } => {}
        }
    }
    // What a limit has cut is what came last, and of a call it leaves no JSON. Calls beyond the bound came later still.
    if let Some(last) = taken.calls.last_mut() {
        let is_last = taken.reason == Some(StopReason::Length) && taken.left_out == 0;
        last.is_cut = is_last && last.arguments.is_string();
    }
    taken
}

/// What a turn has cost, if the provider said so.
pub(crate) fn usage(events: &[StreamEvent]) -> Option<Usage> {
    events.iter().rev().find_map(|event| match event {
        StreamEvent::Usage(usage) if usage.input_tokens > 0 || usage.output_tokens > 0 => Some(*usage),
        _ => None,
    })
}

/// How many calls of a turn are beyond the bound.
pub(crate) fn left_out(events: &[StreamEvent]) -> usize {
    let calls = events.iter().filter(|event| matches!(event, StreamEvent::ToolCall { .. })).count();
    calls.saturating_sub(MAX_CALLS)
}

/// Bytes that the model has written.
pub(crate) fn heard_bytes(events: &[StreamEvent]) -> usize {
    events.iter().map(event_bytes).sum()
}

/// Bytes of one event, about as the model wrote it.
pub(crate) fn event_bytes(event: &StreamEvent) -> usize {
    match event {
        StreamEvent::Text { value } => value.len(),
        StreamEvent::ToolCall { tool_name, call_id, arguments } => {
            tool_name.len() + call_id.len() + arguments.to_string().len()
        }
        StreamEvent::Opaque { value, .. } => value.to_string().len(),
        StreamEvent::ToolResult { result, .. } => result.to_string().len(),
        StreamEvent::Usage(_) | StreamEvent::Error { .. } | StreamEvent::End { .. } => 0,
    }
}

/// The provider's id, or one of ours where that is empty, overlong or taken: a result must belong to one call only.
fn wire_id(theirs: &str, step: u64, number: usize, is_taken: impl Fn(&str) -> bool) -> String {
    if !theirs.is_empty() && theirs.len() <= MAX_CALL_ID_BYTES && !is_taken(theirs) {
        return theirs.to_owned();
    }
    let ours = format!("call_r{step}_{number}");
    // A provider that has used our form already is met by a longer one; each round is another id.
    let longer = (2..=MAX_CALLS * 2).map(|round| format!("{ours}_{round}"));
    std::iter::once(ours.clone()).chain(longer).find(|id| !is_taken(id)).unwrap_or(ours)
}

/// Arguments as they are in the conversation. A text that was to be JSON may be as long as a whole answer.
fn wire_arguments(arguments: &Value) -> Value {
    match arguments {
        Value::String(raw) if raw.len() > MAX_RAW_BYTES => {
            let (start, end) = ends(raw, MAX_RAW_BYTES);
            let left_out = raw.len() - start.len() - end.len();
            Value::String(format!("{start} [… {left_out} bytes are left out here …] {end}"))
        }
        other => other.clone(),
    }
}

/// A name that no tool has, in a form that a provider accepts.
fn wire_name(name: &str) -> String {
    if ToolName::new(name).is_ok() {
        return name.to_owned();
    }
    let fits = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == '-';
    let plain: String =
        name.chars().take(MAX_NAME_BYTES).map(|one| if fits(one) { one } else { '_' }).collect();
    if plain.is_empty() { "unknown".to_owned() } else { head(&plain, MAX_NAME_BYTES).to_owned() }
}
